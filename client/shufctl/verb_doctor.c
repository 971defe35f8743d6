/* SPDX-License-Identifier: MIT
 *
 * `shufctl doctor`: checks the machine and the daemon, and says what to do. The checks of the
 * machine are here: kernel, driver, device files, huge pages and pressure.
 */
#include "connect.h"
#include "doctor.h"
#include "error.h"
#include "exit.h"
#include "identity.h"
#include "json.h"
#include "verb_options.h"
#include "verbs.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Findings ---- */

void shuf__find(struct shuf__finding *finding, enum shuf__finding_level level, const char *advice,
                const char *format, ...)
{
    va_list args;
    finding->level = level;
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
    snprintf(finding->advice, sizeof finding->advice, "%s", advice ? advice : "");
    shuf__make_printable(finding->text);
    shuf__make_printable(finding->advice);
}

/* A file that the system cannot read now must not count as missing. */
static void end_on_system_failure(const char *path)
{
    const int cause = errno;
    if (shuf__is_system_failure(cause))
        exit(shuf__fail_with(EX_OSERR, "doctor: %s: %s", path, strerror(cause)));
}

FILE *shuf__patient_open(const char *path)
{
    struct stat file;
    const bool is_file = stat(path, &file) == 0 && S_ISREG(file.st_mode);
    return is_file ? fopen(path, "re") : NULL;
}

bool shuf__patient_read(const struct shuf__patient *patient, const char *path, char *text,
                        size_t size)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s%s", patient->root, path);
    FILE *file = fopen(full, "re");
    if (!file) {
        end_on_system_failure(full);
        return false;
    }
    text[fread(text, 1, size - 1, file)] = '\0';
    if (ferror(file))
        end_on_system_failure(full);
    fclose(file);
    return *text != '\0';
}

/* ---- The machine ---- */

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

/* ---- The verb ---- */

static const char *const level_names[] = {"ok", "note", "FAULT"};

static void print_finding(const char *name, const struct shuf__finding *finding)
{
    printf("%-6s %-11s %s\n", level_names[finding->level], name, finding->text);
    if (finding->advice[0])
        printf("%-6s %-11s -> %s\n", "", "", finding->advice);
}

static void add_finding(json_t *to, const char *name, const struct shuf__finding *finding)
{
    static const char *const levels[] = {"ok", "note", "fault"};
    json_t *object = json_object();
    shuf__json_text(object, "check", name);
    shuf__json_text(object, "level", levels[finding->level]);
    shuf__json_text(object, "text", finding->text);
    shuf__json_text(object, "advice", finding->advice);
    json_array_append_new(to, object);
}

/* Runs the checks, with `stop_at_fault` only up to the first fault. Returns the number of
 * faults. */
static unsigned run_checks(const struct shuf__patient *patient, const struct shuf__check *checks,
                           bool stop_at_fault, json_t *json)
{
    unsigned faults = 0;
    for (; checks->name && !(stop_at_fault && faults); checks++) {
        struct shuf__finding finding = {0};
        checks->run(patient, &finding);
        faults += finding.level == SHUF__FINDING_FAULT;
        if (json)
            add_finding(json, checks->name, &finding);
        else
            print_finding(checks->name, &finding);
    }
    return faults;
}

/* Checks the machine first. The checks of the daemon stop at the first fault, because later ones
 * need a daemon that answers. */
static unsigned examine(const struct shuf__patient *patient, bool json)
{
    json_t *findings = json ? json_array() : NULL;
    unsigned faults = run_checks(patient, shuf__machine_checks, false, findings);
    faults += run_checks(patient, shuf__daemon_checks, true, findings);
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "findings", findings);
        shuf__json_integer(object, "faults", faults);
        shuf__json_print(object, stdout);
    }
    return faults;
}

int shuf__verb_doctor(int argc, char **argv)
{
    struct shuf__daemon_options options;
    struct shuf__patient patient = {.root = ""};
    shuf__daemon_options(argc, argv,
                         "Checks the driver, device files, limits, huge pages and the daemon with "
                         "its version and sandbox, and says what to do. Exit status: 0 without a "
                         "FAULT, whatever the notes; else 69.",
                         &options);
    patient.given_socket = options.socket;
    patient.status = shuf__connect(&patient.handle, &options);
    if (patient.status == SHUF_OK)
        patient.status = shuf_daemon_status(patient.handle, &patient.daemon);
    const unsigned faults = examine(&patient, options.json);
    shuf_close(patient.handle);
    return faults ? EX_UNAVAILABLE : EX_OK;
}
