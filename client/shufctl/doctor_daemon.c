/* SPDX-License-Identifier: MIT
 *
 * Checks of the daemon: units, socket, version, device, limits, memory, sandbox and metrics.
 */
#include "connect.h"
#include "doctor.h"
#include "exit.h"
#include "identity.h"
#include "socket.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* ---- The units ---- */

/* Runs systemctl, because only systemd knows why it does not start an ended daemon again. */

enum { UNIT = SHUF__UNIT_NAME + 16, PROPERTY = 64, FAULT = 256, SETTLE_TRIES = 20 };

struct unit_state {
    char active[PROPERTY], sub[PROPERTY], result[PROPERTY], code[PROPERTY];
    char fault[FAULT]; /* of the last reload */
};

static void read_property(const char *line, const char *key, char value[PROPERTY])
{
    const size_t length = strlen(key);
    if (strncmp(line, key, length) == 0)
        snprintf(value, PROPERTY, "%.*s", (int)strcspn(line + length, "\n"), line + length);
}

/* The daemon writes the reason into the status of its unit. */
static void read_fault(const char *line, char fault[FAULT])
{
    static const char *const words[] = {"; the last reload failed: ",
                                        "; named keys not reloaded: "};
    const bool is_status = strncmp(line, "StatusText=", 11) == 0;
    const char *found = is_status ? strstr(line, words[0]) : NULL;
    if (is_status && !found)
        found = strstr(line, words[1]);
    if (found)
        snprintf(fault, FAULT, "%.*s", (int)strcspn(found + 2, "\n"), found + 2);
}

static void read_state(FILE *properties, struct unit_state *state)
{
    char line[1200];
    while (fgets(line, sizeof line, properties)) {
        read_property(line, "ActiveState=", state->active);
        read_property(line, "SubState=", state->sub);
        read_property(line, "Result=", state->result);
        read_property(line, "ExecMainStatus=", state->code);
        read_fault(line, state->fault);
    }
}

/* How to learn why the unit has failed, and how to start it again. The socket may have failed too,
 * and starts the service. */
static void find_failure(struct shuf__finding *finding, const char *unit,
                         const struct unit_state *state)
{
    char advice[SHUF__FINDING_TEXT], again[4 * UNIT] = "";
    const int name = (int)strcspn(unit, ".");
    const bool has_failed = strcmp(state->active, "failed") == 0;
    if (has_failed)
        snprintf(again, sizeof again,
                 "; after the repair, systemctl reset-failed '%.*s.*'; systemctl restart "
                 "'%.*s.socket'",
                 name, unit, name, unit);
    snprintf(advice, sizeof advice, "as root: journalctl --unit '%s' --lines 20 says why%s", unit,
             again);
    shuf__find(finding, SHUF__FINDING_NOTE, advice, "%s: %s%s, result %s%s%s", unit, state->active,
               has_failed ? "" : " (auto-restart)", state->result,
               state->code[0] ? ", exit status " : "", state->code); /* a socket has none */
}

bool shuf__find_unit_state(struct shuf__finding *finding, const char *unit, FILE *properties)
{
    struct unit_state state = {0};
    char reload[SHUF__FINDING_TEXT];
    read_state(properties, &state);
    const bool restarts = strcmp(state.sub, "auto-restart") == 0;
    const bool is_of_keys = strncmp(state.fault, "named keys", 10) == 0; /* without the reason */
    snprintf(reload, sizeof reload, "%s%s%scorrect the file, then systemctl reload '%s', as root",
             is_of_keys ? "journalctl --unit '" : "", is_of_keys ? unit : "",
             is_of_keys ? "' --lines 20, as root, names it; " : "", unit);
    if (!state.active[0])
        shuf__find(finding, SHUF__FINDING_NOTE, NULL, "systemctl says nothing about %s", unit);
    else if (restarts || strcmp(state.active, "failed") == 0)
        find_failure(finding, unit, &state);
    else if (state.fault[0])
        shuf__find(finding, SHUF__FINDING_NOTE, reload, "%s: %s (%s), %s", unit, state.active,
                   state.sub, state.fault);
    else
        shuf__find(finding, SHUF__FINDING_OK, NULL, "%s: %s (%s)", unit, state.active, state.sub);
    return restarts || !strstr(state.active, "activating"); /* or "deactivating" */
}

/* Asks systemd for the state of a unit. Returns whether the unit neither starts nor stops. */
static bool ask_systemd(struct shuf__finding *finding, const char *unit)
{
    char command[2 * UNIT];
    snprintf(
        command, sizeof command,
        "systemctl show --property=ActiveState,SubState,Result,ExecMainStatus,StatusText '%s' 2>&1",
        unit);
    FILE *properties = popen(command, "r");
    if (!properties) {
        shuf__find(finding, SHUF__FINDING_NOTE, NULL, "systemctl could not be run");
        return true;
    }
    const bool is_settled = shuf__find_unit_state(finding, unit, properties);
    pclose(properties);
    return is_settled;
}

/* The state of NAME.TYPE. A daemon that has just refused this program ends some milliseconds
 * later, so a unit that starts or stops has two seconds. */
static void find_unit(struct shuf__finding *finding, const char *name, const char *type)
{
    static const struct timespec pause = {.tv_nsec = 100000000};
    char unit[UNIT];
    snprintf(unit, sizeof unit, "%s.%s", name, type);
    for (int i = 0; i < SETTLE_TRIES && !ask_systemd(finding, unit); i++)
        nanosleep(&pause, NULL);
}

/* A socket that fails leaves its service inactive, without a failure. */
static void check_unit(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char name[SHUF__UNIT_NAME];
    struct shuf__finding of_socket;
    if (!shuf__unit_of_socket(shuf_socket(patient->handle), name)) {
        shuf__find(finding, SHUF__FINDING_OK, NULL, "none: systemd has no unit for this socket");
        return;
    }
    if (!shuf__units_have_user()) {
        shuf__find(finding, SHUF__FINDING_NOTE, SHUF__MAKE_USER ", as root, makes them",
                   "%s.socket: it needs the user and the group shufd, and one of them is missing",
                   name);
        return;
    }
    find_unit(finding, name, "service");
    find_unit(&of_socket, name, "socket");
    if (finding->level == SHUF__FINDING_OK && of_socket.level != SHUF__FINDING_OK)
        *finding = of_socket;
}

/* ---- The socket and the process ---- */

static const uint64_t least_files = 4096, least_memory = UINT64_C(1) << 30;

/* Advises the user to join the group of the socket. Does not if the group is root, or if the group
 * may not use the socket. */
static void advise_group(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char advice[SHUF__MEMBERSHIP_ADVICE];
    struct stat status;
    if (stat(shuf_socket(patient->handle), &status) != 0)
        return;
    shuf__advise_membership(status.st_gid, advice);
    if (status.st_gid != 0 && (status.st_mode & 060) == 060)
        snprintf(finding->advice, sizeof finding->advice, "%s", advice);
    else
        snprintf(finding->advice, sizeof finding->advice,
                 "give the socket a group: SocketGroup= of its unit, or socket_group and "
                 "socket_mode in shufd.conf");
}

/* The reason why shufctl uses this socket. */
static const char *origin_of(const struct shuf__patient *patient)
{
    if (patient->given_socket)
        return "--socket";
    const char *origin = shuf__socket_origin(shuf_socket(patient->handle), SHUF__SOCKET_CONNECT);
    return origin ? origin : "the daemon of this GPU";
}

static void advise_other(const struct shuf__patient *patient, char advice[SHUF__FINDING_TEXT])
{
    const char *socket = shuf_socket(patient->handle), *message = shuf_message(patient->handle);
    if (patient->status == SHUF_NO_DAEMON && !patient->given_socket &&
        shuf__must_choose_daemon(socket))
        snprintf(advice, SHUF__FINDING_TEXT,
                 "GPUs have daemons of their own, so name one: for s in %.*s/GPU-*.sock; do "
                 "shufctl doctor "
                 "--socket \"$s\"; done",
                 (int)(strrchr(socket, '/') - socket), socket);
    else if (patient->status == SHUF_TIMEOUT && shuf__is_of_units(socket))
        strcpy(advice, "the journal of the unit says whether the daemon starts or hangs; systemd "
                       "ends one that hangs within a minute");
    else if (patient->status == SHUF_TIMEOUT)
        snprintf(advice, SHUF__FINDING_TEXT,
                 "fuser --verbose %.128s names the processes that have it, as root: if shufd is "
                 "one, end it with SIGKILL",
                 socket);
    else if (patient->status == SHUF_DEVICE && !strstr(message, "backend cuda") &&
             shuf__is_of_units(socket))
        strcpy(advice, "correct this, and check it as the service's user: runuser -u shufd -- "
                       "shufd --check-service, as root; the next client "
                       "starts the daemon again");
    else if (patient->status == SHUF_DEVICE && !strstr(message, "backend cuda"))
        strcpy(advice, "correct this, and check it by shufd --check; the next client starts the "
                       "daemon again");
    else if (patient->status == SHUF_DEVICE)
        strcpy(advice, "shufd --check --backend cuda, as root, shows whether this build and this "
                       "driver can use a GPU");
}

/* Any user may write any number into a lock of its own: only root, or the user of the process, may
 * name it. */
static bool may_name(FILE *file, long pid)
{
    char path[32];
    struct stat lock, process;
    snprintf(path, sizeof path, "/proc/%ld", pid);
    return fstat(fileno(file), &lock) == 0 &&
           (lock.st_uid == 0 || (stat(path, &process) == 0 && process.st_uid == lock.st_uid));
}

/* The process that a daemon's lock beside the socket names. 0: none, it has ended, or its PID is of
 * another namespace. */
static long lock_owner(const char *socket)
{
    char path[sizeof((struct sockaddr_un *)0)->sun_path + 8];
    long pid = 0;
    uint64_t namespace = 0; /* unknown */
    snprintf(path, sizeof path, "%.*s.lock", (int)(sizeof path - 8), socket);
    FILE *file = shuf__patient_open(path);
    if (!file)
        return 0;
    /* After a crash the file stays, and its PID may be that of another process. */
    const bool is_locked = flock(fileno(file), LOCK_SH | LOCK_NB) != 0,
               is_read = fscanf(file, "%ld %*s %" SCNu64, &pid, &namespace) >= 1,
               is_named = is_locked && is_read && pid > 0 && may_name(file, pid);
    fclose(file);
    if (namespace != 0 && namespace != shuf__pid_namespace())
        return 0;
    return is_named && (kill((pid_t)pid, 0) == 0 || errno == EPERM) ? pid : 0;
}

static void advise_start(const struct shuf__patient *patient, char advice[SHUF__FINDING_TEXT])
{
    char command[SHUF__START_COMMAND];
    const char *socket = shuf_socket(patient->handle);
    const long owner = lock_owner(socket);
    if (owner > 0)
        snprintf(advice, SHUF__FINDING_TEXT,
                 "process %ld has the lock of the socket: if it is shufd, somebody removed its "
                 "socket, and its log says whether it makes a new one; else end it first",
                 owner);
    else if (shuf__start_command(socket, patient->given_socket, command))
        snprintf(advice, SHUF__FINDING_TEXT, "start one: %s", command);
    else
        advise_other(patient, advice);
}

static void check_socket(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char advice[SHUF__FINDING_TEXT] = "";
    const shuf_daemon *d = &patient->daemon;
    if (patient->status == SHUF_OK) {
        shuf__find(finding, SHUF__FINDING_OK, NULL,
                   "%s answers, pid %" PRIu64 ", on %s (set by %s)", d->version, d->pid,
                   shuf_socket(patient->handle), origin_of(patient));
        return;
    }
    (patient->status == SHUF_NO_DAEMON ? advise_start : advise_other)(patient, advice);
    const char *message = shuf_message(patient->handle);
    shuf__find(finding, SHUF__FINDING_FAULT, advice, "%.*s", shuf__fault_length(message), message);
    if (patient->status == SHUF_DENIED)
        advise_group(patient, finding);
}

/* True if the PID of the daemon names it in the /proc of this process. After `nsenter --pid`
 * without --mount, /proc shows another PID namespace than that of this process. */
static bool sees_process(const struct shuf__patient *patient)
{
    char text[24] = "";
    if (!shuf__shares_namespace(&patient->daemon))
        return false;
    if (readlink("/proc/self", text, sizeof text - 1) < 0 && errno != ENOENT)
        exit(shuf__fail_with(EX_OSERR, "doctor: /proc/self: %s", strerror(errno)));
    return strtol(text, NULL, 10) == (long)getpid();
}

/* True if an installation has replaced or removed the program file of the daemon. Only root and the
 * daemon's user can see this. */
static bool runs_old_program(const struct shuf__patient *patient)
{
    static const char mark[] = " (deleted)"; /* the kernel appends it */
    char path[PATH_MAX], program[PATH_MAX];
    if (!sees_process(patient))
        return false;
    snprintf(path, sizeof path, "%.256s/proc/%" PRIu64 "/exe", patient->root, patient->daemon.pid);
    const ssize_t length = readlink(path, program, sizeof program);
    const ssize_t end = (ssize_t)strlen(mark);
    return length > end && memcmp(program + length - end, mark, (size_t)end) == 0;
}

static void check_version(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char expected[48];
    snprintf(expected, sizeof expected, "shufd %s", shuf_version());
    if (runs_old_program(patient))
        shuf__find(finding, SHUF__FINDING_NOTE,
                   shuf__is_of_units(shuf_socket(patient->handle))
                       ? "runuser -u shufd -- shufd --check-service && "
                         "systemctl daemon-reload && systemctl try-restart shufd.service "
                         "'shufd@*.service', as root"
                       : "restart the daemon",
                   "the program file of the daemon, %s, was replaced or removed after its start",
                   patient->daemon.version);
    else if (strcmp(patient->daemon.version, expected) == 0)
        shuf__find(finding, SHUF__FINDING_OK, NULL, "libshuf and daemon are both %s",
                   shuf_version());
    else
        shuf__find(finding, SHUF__FINDING_NOTE,
                   "restart the daemon, or update the older one of the two",
                   "libshuf is %s, the daemon is %s", shuf_version(), patient->daemon.version);
}

static void check_config(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    const char *file = patient->daemon.configuration, *fault = patient->daemon.reload_fault;
    if (*fault) {
        shuf__find(finding, SHUF__FINDING_NOTE,
                   "correct what it names, and reload: until then the daemon has the earlier "
                   "configuration, "
                   "or the earlier keys",
                   "%s", fault);
        return;
    }
    shuf__find(finding, SHUF__FINDING_OK, NULL, "%s",
               *file ? file : "the daemon has read no file: every key has its default");
}

static void check_device(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char text[16];
    const shuf_daemon *d = &patient->daemon;
    const bool driver =
        shuf__patient_read(patient, "/proc/driver/nvidia/version", text, sizeof text);
    if (d->gpu_fault[0])
        shuf__find(finding, SHUF__FINDING_NOTE, NULL, "%s: %s; the GPU is not used: %s", d->backend,
                   d->device, d->gpu_fault);
    else if (strcmp(d->backend, "cpu") == 0 && driver)
        shuf__find(finding, SHUF__FINDING_NOTE,
                   "if that is not on purpose, set backend = auto in its configuration",
                   "the machine has a GPU driver, but the daemon computes on the CPU: %s",
                   d->device);
    else
        shuf__find(finding, SHUF__FINDING_OK, NULL, "%s: %s (%s)", d->backend, d->device,
                   d->device_id);
}

/* Files of the daemon in /proc; its owner and root can read all of them. */
static bool read_process(const struct shuf__patient *patient, const char *file, char *text,
                         size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/%s", patient->daemon.pid, file);
    return shuf__patient_read(patient, path, text, size);
}

/* The finding of a check that needs the process of the daemon and does not see it. */
static void find_unseen(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    const char *cause = "the daemon is in another PID namespace, so its process cannot be checked";
    if (shuf__shares_namespace(&patient->daemon))
        cause = "/proc shows another PID namespace than that of the daemon";
    else if (patient->daemon.pid_namespace == 0 || shuf__pid_namespace() == 0)
        cause = "it is unknown whether the daemon is in another PID namespace";
    shuf__find(finding, SHUF__FINDING_NOTE,
               "run shufctl doctor in the container of the daemon, with the /proc of the container",
               "%s", cause);
}

static void check_limits(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char text[4096];
    const char *line =
        read_process(patient, "limits", text, sizeof text) ? strstr(text, "Max open files") : NULL;
    const uint64_t soft = line ? strtoull(line + strlen("Max open files"), NULL, 10) : 0;
    if (!sees_process(patient))
        find_unseen(patient, finding);
    else if (!line)
        shuf__find(finding, SHUF__FINDING_OK, NULL, "only root and the daemon's user can see them");
    else if (soft >= least_files)
        shuf__find(finding, SHUF__FINDING_OK, NULL, "%" PRIu64 " open files", soft);
    else
        shuf__find(finding, SHUF__FINDING_NOTE,
                   "set LimitNOFILE=524288 in the unit, or ulimit -Hn 524288 before shufd",
                   "%" PRIu64 " open files allow few clients and blocks, expected %" PRIu64, soft,
                   least_files);
}

static void check_memory(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char limit[SHUF__UNITS_TEXT];
    const shuf_daemon *d = &patient->daemon;
    shuf__units_memory(limit, d->memory_limit);
    if (d->memory_limit >= least_memory)
        shuf__find(finding, SHUF__FINDING_OK, NULL, "%s for results", limit);
    else
        shuf__find(finding, SHUF__FINDING_NOTE,
                   "raise host_memory or device_memory in shufd.conf, or end other programs",
                   "only %s for results: larger leases are refused", limit);
}

static void check_lending(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    const char *fault = patient->daemon.lending_fault, *end = strstr(fault, "; ");
    if (!patient->daemon.copies_host)
        shuf__find(finding, SHUF__FINDING_OK, NULL, "host memory is lent (memfd)");
    else
        shuf__find(finding, SHUF__FINDING_NOTE, end ? end + 2 : "see the log of the daemon",
                   "results in host memory are copied and not lent (memfd): %.*s",
                   (int)(end ? end - fault : (long)strlen(fault)), fault);
}

static long status_field(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtol(line + strlen(name), NULL, 10) : -1;
}

static void check_sandbox(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char text[4096];
    if (!sees_process(patient))
        find_unseen(patient, finding);
    else if (!read_process(patient, "status", text, sizeof text))
        shuf__find(finding, SHUF__FINDING_OK, NULL, "only root and the daemon's user can see it");
    else if (status_field(text, "\nNoNewPrivs:") == 1 && status_field(text, "\nSeccomp:") == 2)
        shuf__find(finding, SHUF__FINDING_OK, NULL,
                   "the daemon gains no privileges, and its system calls are filtered");
    else
        shuf__find(finding, SHUF__FINDING_NOTE,
                   shuf__is_of_units(shuf_socket(patient->handle))
                       ? "systemctl restart shufd.target, as root; shufd.service(8) lists the "
                         "settings"
                       : "none if this daemon serves only its own user; else stop it and use the "
                         "daemons of shufd.target, which have a sandbox",
                   "the daemon runs without the sandbox of a unit");
}

/* ---- Metrics ---- */

enum { KEY = 32, VALUE = 108, WAITING = 2 * (KEY + VALUE) };

static const char *const keys[] = {"metrics", "metrics_file"};

/* Finds the value of a key in the file: the last one. "": the file does not set the key. */
static void find_value(FILE *file, const char *key, char value[VALUE])
{
    char line[1024], found[KEY], text[VALUE];
    *value = '\0';
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        const int count = sscanf(line, " %31[a-z_] = %107s", found, text);
        if (count >= 1 && strcmp(found, key) == 0)
            strcpy(value, count == 2 && *text != '#' ? text : "");
    }
}

/* True if `places`, "PLACE, PLACE", has the value. %i in the value stands for any name. */
static bool is_among(const char *value, const char *places)
{
    const char *name = strstr(value, "%i");
    const size_t length = name ? (size_t)(name - value) : strlen(value);
    for (const char *place = places; place; place = strstr(place, ", ")) {
        place += strspn(place, ", ");
        if (strncmp(place, value, length) == 0 &&
            (name || place[length] == '\0' || place[length] == ','))
            return true;
    }
    return false;
}

/* False if the daemon surely has another root, such as that of a container: a file of its name is
 * another one here. */
static bool may_share_files(const struct shuf__patient *patient)
{
    char path[48];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/ns/mnt", patient->daemon.pid);
    return !sees_process(patient) || stat("/proc/self/ns/mnt", &own) != 0 ||
           stat(path, &other) != 0 || own.st_ino == other.st_ino;
}

static bool is_off(const char *value)
{
    return *value == '\0' || strcmp(value, "off") == 0;
}

/* Writes "KEY = VALUE, ..." of the keys whose values in the file the daemon does not use yet.
 * False: there are none, or the file cannot be read. */
static bool find_waiting(const struct shuf__patient *patient, char waiting[WAITING])
{
    char path[PATH_MAX], value[VALUE];
    size_t used = 0;
    snprintf(path, sizeof path, "%.256s%s", patient->root, patient->daemon.configuration);
    FILE *file = *patient->daemon.configuration && may_share_files(patient)
                     ? shuf__patient_open(path)
                     : NULL;
    for (size_t i = 0; file && i < sizeof keys / sizeof *keys; i++) {
        find_value(file, keys[i], value);
        if (!is_off(value) && !is_among(value, patient->daemon.metrics))
            used += (size_t)snprintf(waiting + used, WAITING - used, "%s%s = %s", used ? ", " : "",
                                     keys[i], value);
    }
    if (file)
        fclose(file);
    return used > 0;
}

static void find_not_started(const struct shuf__patient *patient, const char *waiting,
                             struct shuf__finding *finding)
{
    char unit[SHUF__UNIT_NAME],
        advice[SHUF__FINDING_TEXT] = "restart the daemon; an option overrides the file";
    if (shuf__unit_of_socket(shuf_socket(patient->handle), unit))
        snprintf(advice, sizeof advice, "systemctl restart '%s.service', as root", unit);
    shuf__find(finding, SHUF__FINDING_NOTE, advice,
               "%.200s has %s, which the daemon reads only at its start; now it publishes %s%s",
               patient->daemon.configuration, waiting, *patient->daemon.metrics ? "on " : "nothing",
               patient->daemon.metrics);
}

static void check_metrics(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    const shuf_daemon *d = &patient->daemon;
    char waiting[WAITING];
    if (d->metrics_fault[0])
        shuf__find(
            finding, SHUF__FINDING_NOTE,
            "correct it, then restart the daemon, except for metrics_file, which it tries again by "
            "itself; shufctl metrics works without both",
            "the daemon does not publish metrics as configured: %s", d->metrics_fault);
    else if (find_waiting(patient, waiting))
        find_not_started(patient, waiting, finding);
    else if (d->metrics[0])
        shuf__find(finding, SHUF__FINDING_OK, NULL, "published on %s", d->metrics);
    else
        shuf__find(finding, SHUF__FINDING_OK, NULL,
                   "not configured: only shufctl metrics prints them; the keys metrics and "
                   "metrics_file of shufd.conf publish them");
}

/* ---- The table ---- */

const struct shuf__check shuf__daemon_checks[] = {{"unit", check_unit},
                                                  {"socket", check_socket},
                                                  {"version", check_version},
                                                  {"config", check_config},
                                                  {"device", check_device},
                                                  {"limits", check_limits},
                                                  {"memory", check_memory},
                                                  {"lending", check_lending},
                                                  {"metrics", check_metrics},
                                                  {"sandbox", check_sandbox},
                                                  {NULL, NULL}};
