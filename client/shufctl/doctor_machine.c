/* SPDX-License-Identifier: MIT
 *
 * Checks of the machine: kernel, driver, device files, huge pages and pressure.
 */
#include "doctor.h"
#include "membership.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { LEAST_KERNEL = 503 }; /* 5.3, with pidfd_open() */

static void check_kernel(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    (void)patient;
    uname(&name);
    if (sscanf(name.release, "%u.%u", &major, &minor) == 2 && major * 100 + minor >= LEAST_KERNEL)
        shuf__find(finding, SHUF__FINDING_OK, NULL, "Linux %s", name.release);
    else
        shuf__find(finding, SHUF__FINDING_FAULT, "update the kernel", "Linux %s, expected 5.3",
                   name.release);
}

static bool has_driver(const struct shuf__patient *patient)
{
    char text[16];
    return shuf__patient_read(patient, "/proc/driver/nvidia/version", text, sizeof text);
}

static void check_driver(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char text[256];
    if (!shuf__patient_read(patient, "/proc/driver/nvidia/version", text, sizeof text)) {
        shuf__find(finding, SHUF__FINDING_OK, NULL,
                   "no NVIDIA driver is loaded: only the backend cpu works");
        return;
    }
    text[strcspn(text, "\n")] = '\0';
    shuf__find(finding, SHUF__FINDING_OK, NULL, "%s", text);
}

static void advise_access(const char *path, const struct stat *status,
                          struct shuf__finding *finding)
{
    char advice[SHUF__FINDING_TEXT], own[SHUF__MEMBERSHIP_ADVICE];
    shuf__advise_membership(status->st_gid, own);
    snprintf(advice, sizeof advice, "%s; the same for the user of shufd", own);
    shuf__find(finding, SHUF__FINDING_FAULT, advice, "%s: no permission, its mode is %04o", path,
               (unsigned)status->st_mode & 07777);
}

/* False after the first finding. */
static bool check_device(const struct shuf__patient *patient, const char *path,
                         struct shuf__finding *finding)
{
    char full[PATH_MAX];
    struct stat status;
    snprintf(full, sizeof full, "%s%s", patient->root, path);
    if (stat(full, &status) != 0) {
        shuf__find(finding, SHUF__FINDING_FAULT, "nvidia-modprobe -u -c 0, as root", "%s: %s", path,
                   strerror(errno));
        return false;
    }
    if (access(full, R_OK | W_OK) == 0)
        return true;
    advise_access(path, &status, finding);
    return false;
}

/* Which GPU files there are depends on the container, so only the common ones are checked. */
static void check_devices(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    if (!has_driver(patient)) {
        shuf__find(finding, SHUF__FINDING_OK, NULL, "none needed without a driver");
        return;
    }
    if (check_device(patient, "/dev/nvidiactl", finding) &&
        check_device(patient, "/dev/nvidia-uvm", finding))
        shuf__find(finding, SHUF__FINDING_OK, NULL,
                   "/dev/nvidiactl and /dev/nvidia-uvm can be read and written");
}

static void check_huge_pages(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    char text[128];
    if (!shuf__patient_read(patient, path, text, sizeof text)) {
        shuf__find(finding, SHUF__FINDING_NOTE, NULL, "%s: this kernel has none", path);
        return;
    }
    text[strcspn(text, "\n")] = '\0';
    if (strstr(text, "[never]") || strstr(text, "[deny]"))
        shuf__find(finding, SHUF__FINDING_NOTE,
                   "echo advise >/sys/kernel/mm/transparent_hugepage/shmem_enabled, as root: the "
                   "first use of host memory becomes faster",
                   "results in host memory have small pages: shmem_enabled is %s", text);
    else
        shuf__find(finding, SHUF__FINDING_OK, NULL, "shmem_enabled is %s", text);
}

static void check_pressure(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char text[32];
    if (shuf__patient_read(patient, "/proc/pressure/memory", text, sizeof text))
        shuf__find(finding, SHUF__FINDING_OK, NULL, "the kernel reports shortages of memory");
    else
        shuf__find(finding, SHUF__FINDING_NOTE,
                   "add psi=1 to the command line of the kernel: shufd then sees a shortage sooner",
                   "/proc/pressure/memory is missing");
}

const struct shuf__check shuf__machine_checks[] = {
    {"kernel", check_kernel},         {"driver", check_driver},     {"devices", check_devices},
    {"huge pages", check_huge_pages}, {"pressure", check_pressure}, {NULL, NULL}};
