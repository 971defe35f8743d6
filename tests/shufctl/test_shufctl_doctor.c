/* SPDX-License-Identifier: MIT
 *
 * shufctl doctor: its findings on this machine, and on fake machines made of files.
 */
#include "doctor.h"
#include "identity.h"
#include "support/shufctl.h"
#include "support/wire.h"

#include "support/cmocka_all.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A machine made of files ---- */

static char root[64];

static int make_machine(void **state)
{
    (void)state;
    strcpy(root, "/tmp/shuf-machine-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_machine(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

/* Makes ROOT/PATH, with its directories. */
static void make_file(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    shufd_write(full, text);
}

static void make_link(const char *path, const char *target)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    unlink(full);
    make_file(path, "");
    assert_int_equal(unlink(full), 0);
    assert_int_equal(symlink(target, full), 0);
}

static struct shuf__finding run_check(const struct shuf__check *checks, const char *name,
                                      const struct shuf__patient *patient)
{
    struct shuf__finding finding = {0};
    while (checks->name && strcmp(checks->name, name) != 0)
        checks++;
    assert_non_null(checks->name);
    checks->run(patient, &finding);
    return finding;
}

static void expect_finding(const struct shuf__check *checks, const char *name,
                           const struct shuf__patient *patient, enum shuf__finding_level level,
                           const char *text, const char *advice)
{
    const struct shuf__finding finding = run_check(checks, name, patient);
    if (finding.level != level || !strstr(finding.text, text) || !strstr(finding.advice, advice))
        print_message("%s: %d %s -> %s\n", name, finding.level, finding.text, finding.advice);
    assert_int_equal(finding.level, level);
    assert_non_null(strstr(finding.text, text));
    assert_non_null(strstr(finding.advice, advice));
    assert_true((*finding.advice != '\0') == (*advice != '\0'));
}

static void driver_and_devices_are_checked(void **state)
{
    (void)state;
    const struct shuf__patient patient = {.root = root};
    const struct shuf__check *const checks = shuf__machine_checks;
    expect_finding(checks, "driver", &patient, SHUF__FINDING_OK, "no NVIDIA driver", "");
    expect_finding(checks, "devices", &patient, SHUF__FINDING_OK, "none needed", "");
    make_file("/proc/driver/nvidia/version", "NVRM version: 580.1\nGCC\n");
    expect_finding(checks, "driver", &patient, SHUF__FINDING_OK, "NVRM version: 580.1", "");
    expect_finding(checks, "devices", &patient, SHUF__FINDING_FAULT, "/dev/nvidiactl: No such file",
                   "nvidia-modprobe");
    make_file("/dev/nvidiactl", "");
    make_file("/dev/nvidia-uvm", "");
    expect_finding(checks, "devices", &patient, SHUF__FINDING_OK, "can be read and written", "");
}

static void missing_permission_is_a_fault(void **state)
{
    (void)state;
    char full[128];
    const struct shuf__patient patient = {.root = root};
    make_file("/proc/driver/nvidia/version", "NVRM\n");
    make_file("/dev/nvidiactl", "");
    make_file("/dev/nvidia-uvm", "");
    snprintf(full, sizeof full, "%s/dev/nvidia-uvm", root);
    assert_int_equal(chmod(full, 0), 0);
    if (geteuid() == 0) /* root may read the file, whatever its mode */
        skip();
    expect_finding(shuf__machine_checks, "devices", &patient, SHUF__FINDING_FAULT,
                   "/dev/nvidia-uvm: no permission", "usermod --append --groups ");
}

static void kernel_settings_are_checked(void **state)
{
    (void)state;
    const struct shuf__patient patient = {.root = root};
    const struct shuf__check *const checks = shuf__machine_checks;
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    expect_finding(checks, "huge pages", &patient, SHUF__FINDING_NOTE, "this kernel has none", "");
    make_file(path, "always within_size advise [never] deny force\n");
    expect_finding(checks, "huge pages", &patient, SHUF__FINDING_NOTE, "small pages",
                   "echo advise");
    make_file(path, "always within_size [advise] never deny force\n");
    expect_finding(checks, "huge pages", &patient, SHUF__FINDING_OK, "[advise]", "");
    expect_finding(checks, "pressure", &patient, SHUF__FINDING_NOTE, "is missing", "psi=1");
    make_file("/proc/pressure/memory", "some avg10=0.00\n");
    expect_finding(checks, "pressure", &patient, SHUF__FINDING_OK, "shortages", "");
    expect_finding(checks, "kernel", &patient, SHUF__FINDING_OK, "Linux ", "");
}

static void daemon_status_is_checked(void **state)
{
    (void)state;
    const struct shuf__check *const checks = shuf__daemon_checks;
    struct shuf__patient patient = {.root = root, .status = SHUF_OK};
    patient.daemon.pid = 7;
    patient.daemon.pid_namespace = shuf__pid_namespace();
    patient.daemon.memory_limit = 1 << 20;
    strcpy(patient.daemon.version, "shufd 0.0.1");
    strcpy(patient.daemon.backend, "cpu");
    expect_finding(checks, "version", &patient, SHUF__FINDING_NOTE, "the daemon is shufd 0.0.1",
                   "restart");
    make_link("/proc/7/exe", "/usr/bin/shufd");
    expect_finding(checks, "version", &patient, SHUF__FINDING_NOTE, "the daemon is shufd 0.0.1",
                   "restart");
    make_link("/proc/7/exe", "/usr/bin/shufd (deleted)");
    expect_finding(checks, "version", &patient, SHUF__FINDING_NOTE,
                   "shufd 0.0.1, was replaced or removed after its start", "restart the daemon");
    expect_finding(checks, "config", &patient, SHUF__FINDING_OK, "has read no file", "");
    strcpy(patient.daemon.configuration, "/etc/shufd/shufd.conf");
    expect_finding(checks, "config", &patient, SHUF__FINDING_OK, "/etc/shufd/shufd.conf", "");
    expect_finding(checks, "memory", &patient, SHUF__FINDING_NOTE, "only 1 MiB", "host_memory");
    patient.daemon.memory_limit = UINT64_C(4) << 30;
    expect_finding(checks, "memory", &patient, SHUF__FINDING_OK, "4 GiB for results", "");
    expect_finding(checks, "lending", &patient, SHUF__FINDING_OK, "host memory is lent", "");
    patient.daemon.copies_host = true;
    strcpy(patient.daemon.lending_fault, "/proc/self/fd: No such file or directory; mount /proc");
    expect_finding(checks, "lending", &patient, SHUF__FINDING_NOTE,
                   "(memfd): /proc/self/fd: No such file or directory", "mount /proc");
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_OK, "not configured: only shufctl",
                   "");
    strcpy(patient.daemon.metrics, "127.0.0.1:9477");
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_OK, "published on 127.0.0.1:9477",
                   "");
    strcpy(patient.daemon.metrics_fault, "metrics 127.0.0.1:9477: Address already in use");
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_NOTE,
                   "as configured: metrics 127.0.0.1:9477: Address already in use", "restart");
    expect_finding(checks, "device", &patient, SHUF__FINDING_OK, "cpu: ", "");
    make_file("/proc/driver/nvidia/version", "NVRM\n");
    expect_finding(checks, "device", &patient, SHUF__FINDING_NOTE, "computes on the CPU",
                   "backend = auto");
    strcpy(patient.daemon.gpu_fault, "cuda: the NVIDIA driver runs CUDA 12.4");
    expect_finding(checks, "device", &patient, SHUF__FINDING_NOTE,
                   "the GPU is not used: cuda: the NVIDIA driver runs CUDA 12.4", "");
    expect_finding(checks, "limits", &patient, SHUF__FINDING_OK, "only root", "");
    make_file("/proc/7/limits", "Limit\nMax open files            1024     4096    files\n");
    expect_finding(checks, "limits", &patient, SHUF__FINDING_NOTE, "1024 open files",
                   "LimitNOFILE");
    make_file("/proc/7/limits", "Limit\nMax open files            524288   524288  files\n");
    expect_finding(checks, "limits", &patient, SHUF__FINDING_OK, "524288 open files", "");
    expect_finding(checks, "sandbox", &patient, SHUF__FINDING_OK, "only root", "");
    make_file("/proc/7/status", "Name: shufd\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    expect_finding(checks, "sandbox", &patient, SHUF__FINDING_OK, "are filtered", "");
    make_file("/proc/7/status", "Name: shufd\nNoNewPrivs:\t0\nSeccomp:\t0\n");
    expect_finding(checks, "sandbox", &patient, SHUF__FINDING_NOTE, "without the sandbox",
                   "stop it and use the daemons of shufd.target");
}

/* In another PID namespace the PID of the daemon may be of any process. */
static void processes_of_another_namespace_are_not_read(void **state)
{
    (void)state;
    const struct shuf__check *const checks = shuf__daemon_checks;
    struct shuf__patient patient = {.root = root, .status = SHUF_OK};
    patient.daemon.pid = 7;
    patient.daemon.pid_namespace = shuf__pid_namespace() + 1;
    snprintf(patient.daemon.version, sizeof patient.daemon.version, "shufd %s", shuf_version());
    make_file("/proc/7/limits", "Limit\nMax open files            524288   524288  files\n");
    make_file("/proc/7/status", "Name: init\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    make_link("/proc/7/exe", "/sbin/init (deleted)");
    expect_finding(checks, "limits", &patient, SHUF__FINDING_NOTE, "in another PID namespace",
                   "run shufctl doctor in the container of the daemon");
    expect_finding(checks, "sandbox", &patient, SHUF__FINDING_NOTE, "in another PID namespace",
                   "run shufctl doctor in the container of the daemon");
    expect_finding(checks, "version", &patient, SHUF__FINDING_OK, "are both ", "");
    patient.daemon.pid_namespace = 0;
    expect_finding(checks, "limits", &patient, SHUF__FINDING_NOTE, "it is unknown", "container");
    expect_finding(checks, "sandbox", &patient, SHUF__FINDING_NOTE, "it is unknown", "container");
}

/* Runs in a new PID namespace with the /proc of the old one. */
static void expect_note_on_foreign_proc(void)
{
    struct shuf__patient patient = {.root = root, .status = SHUF_OK};
    patient.daemon.pid = 7;
    patient.daemon.pid_namespace = shuf__pid_namespace();
    const struct shuf__finding limits = run_check(shuf__daemon_checks, "limits", &patient),
                               sandbox = run_check(shuf__daemon_checks, "sandbox", &patient);
    _exit(strstr(limits.text, "/proc shows another PID") && strstr(sandbox.text, "/proc shows")
              ? 0
              : 1);
}

static void proc_of_another_namespace_is_not_read(void **state)
{
    int status = 0;
    (void)state;
    make_file("/proc/7/limits", "Limit\nMax open files            524288   524288  files\n");
    make_file("/proc/7/status", "Name: init\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(0); /* in a container without this right */
        const pid_t first = fork();
        if (first == 0)
            expect_note_on_foreign_proc();
        _exit(waitpid(first, &status, 0) == first && status == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The daemon reads the keys of the metrics only at its start. */
static void metrics_that_wait_for_a_restart_are_noted(void **state)
{
    (void)state;
    static const char conf[] = "/etc/shufd/shufd.conf";
    const struct shuf__check *const checks = shuf__daemon_checks;
    struct shuf__patient patient = {.root = root, .status = SHUF_OK};
    strcpy(patient.daemon.configuration, conf);
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_OK, "not configured", "");
    make_file(conf, "# metrics = 1\nmetrics =\nmetrics_interval = 5s\n");
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_OK, "not configured", "");
    make_file(conf, "metrics = off\n"); /* as in the installed file */
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_OK, "not configured", "");
    make_file(conf, "metrics = 127.0.0.1:9477 # local\nmetrics_file=/run/%i/m.prom\n");
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_NOTE,
                   "/etc/shufd/shufd.conf has metrics = 127.0.0.1:9477, metrics_file = "
                   "/run/%i/m.prom, which the daemon reads only at its start; now it publishes "
                   "nothing",
                   "restart the daemon");
    strcpy(patient.daemon.metrics, "127.0.0.1:94770, /run/shufd/m.prom");
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_NOTE,
                   "has metrics = 127.0.0.1:9477, which the daemon reads only at its start; now it "
                   "publishes on 127.0.0.1:94770, /run/shufd/m.prom",
                   "restart the daemon");
    strcpy(patient.daemon.metrics, "127.0.0.1:9477, /run/shufd/m.prom");
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_OK, "published on 127.0.0.1:9477",
                   "");
    /* A daemon that is not ours may name anything. A FIFO without a writer would never open. */
    char full[96];
    snprintf(full, sizeof full, "%s%s", root, conf);
    assert_int_equal(unlink(full), 0);
    assert_int_equal(mkfifo(full, 0600), 0);
    *patient.daemon.metrics = '\0';
    expect_finding(checks, "metrics", &patient, SHUF__FINDING_OK, "not configured", "");
}

static void expect_unit(char *properties, enum shuf__finding_level level, const char *text)
{
    struct shuf__finding finding = {0};
    FILE *file = fmemopen(properties, strlen(properties), "r");
    assert_non_null(file);
    const bool is_settled = shuf__find_unit_state(&finding, "shufd@GPU-1.service", file);
    fclose(file);
    assert_int_equal(is_settled, !strstr(text, "activating (stop"));
    assert_int_equal(finding.level, level);
    assert_string_equal(finding.text, text);
    assert_int_equal(strstr(finding.advice, "journalctl --unit 'shufd@GPU-1.service'") != NULL,
                     level == SHUF__FINDING_NOTE &&
                         (strstr(text, "exit status") || strstr(text, "keys")));
    assert_int_equal(strstr(finding.advice, "systemctl reset-failed 'shufd@GPU-1.*'; systemctl "
                                            "restart 'shufd@GPU-1.socket'") != NULL,
                     strstr(text, "failed, result") != NULL);
}

static void unit_state_is_explained(void **state)
{
    (void)state;
    char active[] = "ActiveState=active\nSubState=running\nResult=success\nExecMainStatus=0\n";
    char failed[] = "Result=exit-code\nExecMainStatus=69\nActiveState=failed\nSubState=failed\n";
    char again[] = "Result=exit-code\nExecMainStatus=1\nActiveState=activating\n"
                   "SubState=auto-restart\n";
    char ending[] = "ActiveState=deactivating\nSubState=stop-sigterm\nResult=success\n";
    char refused[] = "System has not been booted with systemd as init system\n";
    char mistaken[] =
        "ActiveState=active\nSubState=running\nResult=success\nExecMainStatus=0\n"
        "StatusText=Serving on s, backend cpu: c; the last reload failed: f:1: leases "
        "none: expected 1\n";
    char keyless[] = "ActiveState=active\nSubState=running\nResult=success\nExecMainStatus=0\n"
                     "StatusText=Serving on s, backend cpu: c; named keys not reloaded: the log "
                     "names the reason\n";
    expect_unit(active, SHUF__FINDING_OK, "shufd@GPU-1.service: active (running)");
    expect_unit(mistaken, SHUF__FINDING_NOTE,
                "shufd@GPU-1.service: active (running), the last reload failed: f:1: leases none: "
                "expected 1");
    expect_unit(keyless, SHUF__FINDING_NOTE,
                "shufd@GPU-1.service: active (running), named keys not reloaded: the log names the "
                "reason");
    expect_unit(failed, SHUF__FINDING_NOTE,
                "shufd@GPU-1.service: failed, result exit-code, exit status 69");
    expect_unit(again, SHUF__FINDING_NOTE,
                "shufd@GPU-1.service: activating (auto-restart), result exit-code, exit status 1");
    expect_unit(ending, SHUF__FINDING_OK, "shufd@GPU-1.service: deactivating (stop-sigterm)");
    expect_unit(refused, SHUF__FINDING_NOTE, "systemctl says nothing about shufd@GPU-1.service");
}

/* Makes a systemctl that tells these properties of NAME.socket, and that the service is inactive.
 */
static void make_systemctl(const char *properties)
{
    char full[96], text[512];
    snprintf(text, sizeof text,
             "#!/bin/sh\ncase \"$*\" in\n*x.socket*) printf '%s' ;;\n*) printf '%s' ;;\nesac\n",
             properties, "ActiveState=inactive\\nSubState=dead\\nExecMainStatus=0\\n");
    make_file("/bin/systemctl", text);
    snprintf(full, sizeof full, "%s/bin/systemctl", root);
    assert_int_equal(chmod(full, 0755), 0);
}

/* A socket fails while its service is only inactive. */
static void units_need_their_socket_and_user(void **state)
{
    (void)state;
    char path[512];
    char *const old_path = strdup(getenv("PATH"));
    struct shuf__patient patient = {.root = root};
    const struct shuf__check *const checks = shuf__daemon_checks;
    snprintf(path, sizeof path, "%s/bin:%.400s", root, old_path);
    setenv("PATH", path, 1);
    setenv("SHUFD_UNITS", root, 1);
    make_file("/run/systemd/system/x", "");
    make_file("/lib/systemd/system/shufd.target", "");
    make_systemctl("ActiveState=failed\\nSubState=failed\\nResult=resources\\n");
    assert_int_equal(shuf_connect(&patient.handle, "/run/shufd/no-x.sock"), SHUF_NO_DAEMON);
    make_file("/etc/passwd", "shufd:x:997:997::/:/bin/false\n");
    expect_finding(checks, "unit", &patient, SHUF__FINDING_NOTE,
                   "shufd@no-x.socket: it needs the user and the group shufd, and one of them is "
                   "missing",
                   "systemd-sysusers, as root");
    make_file("/etc/group", "shufd:x:997:\n");
    expect_finding(checks, "unit", &patient, SHUF__FINDING_NOTE,
                   "shufd@no-x.socket: failed, result resources",
                   "journalctl --unit 'shufd@no-x.socket'");
    make_systemctl("ActiveState=active\\nSubState=listening\\nResult=success\\n");
    expect_finding(checks, "unit", &patient, SHUF__FINDING_OK,
                   "shufd@no-x.service: inactive (dead)", "");
    shuf_close(patient.handle);
    unsetenv("SHUFD_UNITS");
    setenv("PATH", old_path, 1);
    free(old_path);
}

/* Root may read files that the service's user cannot read, so a check as root may find nothing. */
static void check_as_user_of_units_is_advised(void **state)
{
    (void)state;
    struct shuf__patient patient = {.root = root, .status = SHUF_DEVICE};
    make_file("/etc/systemd/system/shufd.target", "");
    make_file("/run/systemd/system/x", "");
    shuf_connect(&patient.handle, "/run/shufd/none.sock");
    setenv("SHUFD_UNITS", root, 1);
    expect_finding(shuf__daemon_checks, "socket", &patient, SHUF__FINDING_FAULT, "",
                   "runuser -u shufd -- shufd --check-service, as root");
    unsetenv("SHUFD_UNITS");
    expect_finding(shuf__daemon_checks, "socket", &patient, SHUF__FINDING_FAULT, "",
                   "check it by shufd --check");
    shuf_close(patient.handle);
}

/* ---- This machine ---- */

static void doctor_with_daemon(void **state)
{
    (void)state;
    struct command c;
    /* The status is not checked, because the machine may really have a fault, for example of its
     * GPU. */
    const int status = shufctl_run(&c, 0, "doctor");
    assert_true(status == 0 || status == 69);
    assert_int_equal(status == 69, strstr(c.out.bytes, "FAULT") != NULL);
    assert_non_null(strstr(c.out.bytes, "ok     kernel      Linux "));
    assert_non_null(strstr(c.out.bytes, "ok     socket      shufd "));
    assert_non_null(strstr(c.out.bytes, "/s (set by $SHUFD_SOCKET)\n"));
    assert_non_null(strstr(c.out.bytes, "ok     version     libshuf and daemon are both "));
    assert_non_null(strstr(c.out.bytes, "ok     metrics     not configured"));
    assert_non_null(strstr(c.out.bytes, " sandbox "));
    command_free(&c);
}

static void doctor_without_daemon(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_run(&c, 0, "doctor --socket %s", shufctl_path("s")), 69);
    assert_non_null(strstr(c.out.bytes, "FAULT  socket      socket "));
    assert_non_null(strstr(c.out.bytes, "-> start one: shufd"));
    assert_null(strstr(c.out.bytes, "sandbox"));
    command_free(&c);
    assert_int_equal(shufctl_run(&c, 0, "doctor --json --socket %s", shufctl_path("s")), 69);
    assert_non_null(strstr(c.out.bytes, "\"level\": \"fault\""));
    assert_non_null(strstr(c.out.bytes, "\"check\": \"huge pages\""));
    command_free(&c);
}

static void doctor_of_removed_socket(void **state)
{
    (void)state;
    struct command c;
    struct harness h;
    char text[64];
    assert_true(harness_start(&h, "cpu", NULL));
    snprintf(text, sizeof text, "process %d has the lock of the socket", (int)h.pid);
    kill(h.pid, SIGSTOP); /* else it makes a new socket */
    assert_int_equal(unlink(h.socket), 0);
    assert_int_equal(shufctl_run(&c, 0, "doctor --socket %s", h.socket), 69);
    assert_non_null(strstr(c.out.bytes, text));
    assert_null(strstr(c.out.bytes, "start one"));
    command_free(&c);
    kill(h.pid, SIGCONT);
    assert_true(harness_stop(&h));
}

/* Another user has made the lock, in a directory like /tmp, and names a process that is not its
 * own: root would end that process. */
static void doctor_of_foreign_lock(void **state)
{
    (void)state;
    struct command c;
    char text[64], lock[PATH_MAX];
    if (geteuid() != 0)
        skip();
    snprintf(lock, sizeof lock, "%s", shufctl_path("foreign.lock"));
    snprintf(text, sizeof text, "%d serving 0\n", (int)getpid());
    shufd_write(lock, text);
    const int fd = open(lock, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    for (uid_t owner = 0; owner < 2000; owner += 1001) {
        assert_int_equal(chown(lock, owner, (gid_t)-1), 0);
        assert_int_equal(shufctl_run(&c, 0, "doctor --socket %s", shufctl_path("foreign")), 69);
        assert_int_equal(strstr(c.out.bytes, " has the lock of the socket") != NULL, owner == 0);
        command_free(&c);
    }
    close(fd);
    assert_int_equal(unlink(lock), 0);
}

/* shufctl is in a new PID namespace, the daemon outside of it. With `own_proc` /proc shows the new
 * namespace. */
static void expect_notes_in_new_namespace(bool own_proc)
{
    struct command c;
    shufctl_script(&c, "unshare --pid --fork %s \"$0\" doctor", own_proc ? "--mount-proc" : "");
    if (!strstr(c.err.bytes, "unshare: ")) { /* else in a container without this right */
        assert_non_null(strstr(c.out.bytes, "note   limits      the daemon is in another PID "));
        assert_non_null(strstr(c.out.bytes, "note   sandbox     the daemon is in another PID "));
    }
    command_free(&c);
}

static void doctor_in_another_namespace(void **state)
{
    (void)state;
    expect_notes_in_new_namespace(true);
    expect_notes_in_new_namespace(false);
}

/* The user daemon has the group daemon in the database, but the child lacks it, as a login from
 * before the membership does. */
static void expect_advice_to_log_in(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        struct shuf__patient patient = {.root = ""};
        if (setgroups(0, NULL) != 0 || setuid(1) != 0)
            _exit(1);
        patient.status = shuf_connect(&patient.handle, shufctl_daemon.socket);
        const struct shuf__finding finding = run_check(shuf__daemon_checks, "socket", &patient);
        _exit(strcmp(finding.advice,
                     "daemon is a member of daemon, but not since this login: log in "
                     "again, or run newgrp daemon") == 0
                  ? 0
                  : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void doctor_without_permission(void **state)
{
    (void)state;
    struct command c;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(shufctl_daemon.directory, 0755), 0);
    assert_int_equal(chmod(shufctl_daemon.socket, 0660), 0);
    assert_int_equal(shufctl_run(&c, COMMAND_AS_NOBODY, "doctor"), 69);
    assert_non_null(strstr(c.out.bytes, "permission denied"));
    assert_non_null(strstr(c.out.bytes, "-> give the socket a group: SocketGroup="));
    assert_null(strstr(c.out.bytes, "usermod --append --groups root"));
    command_free(&c);
    assert_int_equal(chown(shufctl_daemon.socket, (uid_t)-1, 1), 0); /* daemon, on Debian */
    assert_int_equal(shufctl_run(&c, COMMAND_AS_NOBODY, "doctor"), 69);
    assert_non_null(strstr(c.out.bytes, "-> usermod --append --groups daemon nobody, as root"));
    command_free(&c);
    expect_advice_to_log_in();
    assert_int_equal(chown(shufctl_daemon.socket, (uid_t)-1, 0), 0);
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(driver_and_devices_are_checked, make_machine,
                                        remove_machine),
        cmocka_unit_test_setup_teardown(missing_permission_is_a_fault, make_machine,
                                        remove_machine),
        cmocka_unit_test_setup_teardown(kernel_settings_are_checked, make_machine, remove_machine),
        cmocka_unit_test_setup_teardown(daemon_status_is_checked, make_machine, remove_machine),
        cmocka_unit_test_setup_teardown(processes_of_another_namespace_are_not_read, make_machine,
                                        remove_machine),
        cmocka_unit_test_setup_teardown(proc_of_another_namespace_is_not_read, make_machine,
                                        remove_machine),
        cmocka_unit_test_setup_teardown(metrics_that_wait_for_a_restart_are_noted, make_machine,
                                        remove_machine),
        cmocka_unit_test(unit_state_is_explained),
        cmocka_unit_test_setup_teardown(units_need_their_socket_and_user, make_machine,
                                        remove_machine),
        cmocka_unit_test_setup_teardown(check_as_user_of_units_is_advised, make_machine,
                                        remove_machine),
        cmocka_unit_test(doctor_with_daemon),
        cmocka_unit_test(doctor_without_daemon),
        cmocka_unit_test(doctor_of_removed_socket),
        cmocka_unit_test(doctor_of_foreign_lock),
        cmocka_unit_test(doctor_in_another_namespace),
        cmocka_unit_test(doctor_without_permission),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
