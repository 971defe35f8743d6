/* SPDX-License-Identifier: MIT
 *
 * See check.h. A wrong value and a missing device have different exit codes. So a script that tries
 * several backends can tell a typing error from a missing device.
 */
#include "check.h"

#include "config/config.h"
#include "handlers/service.h"
#include "host/memory_limits.h"
#include "memory/transport.h"
#include "net/listener.h"
#include "units.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Files that only root can read ---- */

/* Root may read every file, so a check as root finds no fault with them, but the service runs as
 * another user. The name of this user is unknown here: a drop-in may change it. */

enum { READ = 04, SEARCH = 01 };

/* Whether no other user and no group but root's has these permissions. Sets the mode. */
static bool is_of_root(const char *path, mode_t wanted, unsigned *mode)
{
    struct stat status;
    if (stat(path, &status) != 0 || status.st_uid != 0)
        return false;
    const mode_t group = wanted << 3;
    *mode = status.st_mode & 07777;
    return (*mode & wanted) != wanted && ((*mode & group) != group || status.st_gid == 0);
}

/* Warns of the first directory above the path. */
static void check_directories(const char *what, const char *path, const struct shuf__log *log)
{
    char directory[PATH_MAX];
    unsigned mode;
    for (const char *slash = path; (slash = strchr(slash + 1, '/')) != NULL;) {
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
        if (!is_of_root(directory, SEARCH, &mode))
            continue;
        shuf__log(log, SHUF__LOG_WARNING,
                  "%s %.200s: only root can search its directory %.200s, mode %04o; the service's "
                  "user must search it, too: chmod o+x %.200s",
                  what, path, directory, mode, directory);
        return;
    }
}

static void check_file(const char *path, const struct shuf__log *log)
{
    unsigned mode;
    check_directories("configuration", path, log);
    if (is_of_root(path, READ, &mode))
        shuf__log(
            log, SHUF__LOG_WARNING,
            "configuration %s: only root can read it, mode %04o; the service's user must read "
            "it, too: chmod 0644",
            path, mode);
}

static void check_key_file(const char *path, const struct shuf__log *log)
{
    unsigned mode;
    if (is_of_root(path, READ, &mode))
        shuf__log(log, SHUF__LOG_WARNING,
                  "key file %.200s: only root can read it, mode %04o; the service's user must read "
                  "it, too: chown it to this user, or use LoadCredential= of the unit",
                  path, mode);
}

static void check_key_files(const char *keys, const struct shuf__log *log)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    DIR *files = opendir(keys);
    while (files && (entry = readdir(files)) != NULL) {
        snprintf(path, sizeof path, "%.200s/%s", keys, entry->d_name);
        if (entry->d_name[0] != '.')
            check_key_file(path, log);
    }
    if (files)
        closedir(files);
}

static void check_keys(const struct shuf__config *config, const struct shuf__log *log)
{
    unsigned mode;
    check_directories("keys", config->keys, log);
    if (is_of_root(config->keys, READ | SEARCH, &mode))
        shuf__warn_of_config(
            config, log,
            "keys %s: only root can read this directory, mode %04o; the service's user must read "
            "it, too: chown it to this user, or chmod 0755",
            config->keys, mode);
    check_key_files(config->keys, log);
}

/* Warns of the configuration file, the directory of keys, its files, and the directories above
 * them. Does nothing if the caller is not root. */
static void check_readers(const struct shuf__config *config, const struct shuf__log *log)
{
    if (geteuid() != 0)
        return;
    if (*config->file)
        check_file(config->file, log);
    if (*config->keys)
        check_keys(config, log);
}

/* ---- Checks ---- */

int shuf__exit_of_socket(shuf_status status)
{
    return status == SHUF_INVALID ? EX_CONFIG : EX_CANTCREAT;
}

int shuf__exit_of_backend(const struct shuf__config *config, shuf_status status)
{
    if (status == SHUF_INVALID)
        return config->source.value[SHUF__CONFIG_backend] ? EX_USAGE : EX_CONFIG;
    return status == SHUF_NO_MEMORY || status == SHUF_IO ? EX_OSERR : EX_UNAVAILABLE;
}

static int fail_check(const struct shuf__config *config, const struct shuf__log *log, int exit_code,
                      struct shuf__error *error)
{
    shuf__log(log, SHUF__LOG_ERROR, "%s", shuf__config_locate(config, error));
    return exit_code;
}

/* The limits of one side (host or device memory). `sharers` daemons divide its memory. */
struct limits {
    enum shuf__memory kind;
    const char *memory_key, *pool_key, *standard;
    struct shuf__amount memory, pool;
    uint64_t sharers;
};

enum { DESCRIBED = SHUF__NUMBER_TEXT + SHUF__UNITS_TEXT };

/* "1024Gi (1 TiB)": the amount as it was given, and its bytes if they look different. */
static const char *describe(struct shuf__amount amount, uint64_t total, char text[DESCRIBED])
{
    char plain[SHUF__NUMBER_TEXT], bytes[SHUF__UNITS_TEXT];
    shuf__amount_text(plain, amount);
    const char *given = amount.written[0] ? amount.written : plain;
    if (!amount.percent && strcmp(given, plain) == 0)
        snprintf(text, DESCRIBED, "%s", given);
    else
        snprintf(text, DESCRIBED, "%s (%s)", given,
                 shuf__units_memory(bytes, shuf__amount_bytes(amount, total)));
    return text;
}

static void warn_of_budget(const struct limits *limits, uint64_t share,
                           const struct shuf__config *config, const struct shuf__log *log)
{
    char text[DESCRIBED];
    const bool small = limits->kind == SHUF__MEMORY_MEMFD && limits->memory.number > 0;
    shuf__warn_of_config(config, log,
                         "%s %s: below 2 MiB %s; expected 2Mi or more, or a part such as %s",
                         limits->memory_key, describe(limits->memory, share, text),
                         small ? "only small results fit" : "no result fits", limits->standard);
}

static void warn_of_total(const struct limits *limits, uint64_t total,
                          const struct shuf__config *config, const struct shuf__log *log)
{
    char memory[DESCRIBED], has[SHUF__UNITS_TEXT];
    shuf__warn_of_config(
        config, log, "%s %s: more than %s has, %s; expected less, or a part such as %s",
        limits->memory_key, describe(limits->memory, total, memory),
        limits->kind == SHUF__MEMORY_MEMFD ? "the machine or the control group" : "the GPU",
        shuf__units_memory(has, total), limits->standard);
}

static void warn_of_pool(const struct limits *limits, uint64_t share,
                         const struct shuf__config *config, const struct shuf__log *log)
{
    char pool[DESCRIBED], memory[DESCRIBED];
    shuf__warn_of_config(
        config, log,
        "%s %s: more than %s = %s, which limits it; expected the size of the largest result",
        limits->pool_key, describe(limits->pool, share, pool), limits->memory_key,
        describe(limits->memory, share, memory));
}

/* The most bytes that a file may have, and so a result in host memory. UINT64_MAX: no limit. */
static uint64_t file_size_limit(void)
{
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) != 0 || size.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return (uint64_t)size.rlim_cur;
}

/* Without memfds (shuf__check_file_leases()), the limit of files does not matter. */
static void check_file_size(const struct limits *limits, uint64_t most, const struct shuf__log *log)
{
    char size[SHUF__UNITS_TEXT], memory[SHUF__UNITS_TEXT];
    const uint64_t limit = file_size_limit();
    if (limits->kind == SHUF__MEMORY_MEMFD && limit < most && !*shuf__transport_memfd_fault())
        shuf__log(log, SHUF__LOG_WARNING,
                  "file size: the limit is %s, so larger results fail, although host_memory is %s; "
                  "raise it with ulimit -f, or with LimitFSIZE= of the unit",
                  shuf__units_memory(size, limit), shuf__units_memory(memory, most));
}

/* A limit of 0 gets no warning on the side where the backend does not compute, because the operator
 * may want it. */
static void check_limits(struct shuf__backend *backend, const struct limits *limits,
                         const struct shuf__config *config, const struct shuf__log *log)
{
    struct shuf__error ignored;
    uint64_t available, total;
    if (!backend->ops->makes[limits->kind] ||
        backend->ops->memory(backend, limits->kind, &available, &total, &ignored))
        return;
    const uint64_t share = total / limits->sharers,
                   most = shuf__amount_bytes(limits->memory, share);
    const bool is_used = limits->memory.number > 0 || backend->ops->own == limits->kind;
    if (most < SHUF__BLOCK_UNIT && is_used)
        warn_of_budget(limits, share, config, log);
    else if (most > total)
        warn_of_total(limits, total, config, log);
    else if (shuf__amount_bytes(limits->pool, share) > most)
        warn_of_pool(limits, share, config, log);
    check_file_size(limits, most, log);
}

void shuf__check_file_leases(const struct shuf__log *log)
{
    if (access("/proc/meminfo", R_OK) != 0) {
        const char *why = strerror(errno);
        const bool finds_group = access("/proc/self/cgroup", R_OK) == 0;
        shuf__log(log, SHUF__LOG_WARNING,
                  "host memory: /proc/meminfo: %s; so shufd does not know how much is free, and "
                  "only host_memory%s results; expected a whole /proc",
                  why, finds_group ? " and control groups limit" : " limits");
    }
    if (*shuf__transport_lending_fault())
        shuf__log(log, SHUF__LOG_WARNING,
                  "host memory: results are copied and not lent (memfd): %s",
                  shuf__transport_lending_fault());
}

/* host_memory in bytes needs no limit of a group. */
void shuf__check_control_group(const struct shuf__config *config, const struct shuf__log *log)
{
    char group[PATH_MAX], part[SHUF__NUMBER_TEXT];
    if (config->host_memory.percent && shuf__cgroup_is_hidden("", group))
        shuf__warn_of_config(config, log,
                             "host_memory %s: the limits of the control group %.200s cannot be "
                             "read, because no mount shows its files; mount /sys/fs/cgroup, or "
                             "set host_memory in bytes",
                             shuf__amount_text(part, config->host_memory), group);
}

/* A part without its % would be a few bytes. 0 means no limit. */
static void check_user_memory(const struct shuf__config *config, const struct shuf__log *log)
{
    const struct shuf__amount memory = config->user_memory;
    char text[DESCRIBED];
    if (!memory.percent && memory.number > 0 && memory.number < SHUF__BLOCK_UNIT)
        shuf__warn_of_config(
            config, log,
            "user_memory %s: below 2 MiB a user has only the least memory, 4 MiB or "
            "less; expected 2Mi or more, or a part such as 75%%",
            describe(memory, 0, text));
}

/* OpenMP has bound this process before main(), often to one processor. */
static void check_binding(int processors, const struct shuf__log *log)
{
    static const char *const names[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"};
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < sizeof names / sizeof *names && processors < all; i++) {
        const char *value = getenv(names[i]);
        if (value && strcasecmp(value, "false") != 0)
            shuf__log(log, SHUF__LOG_WARNING,
                      "$%s is %.64s: OpenMP binds shufd to %d of %ld processors; start shufd "
                      "without this variable",
                      names[i], value, processors, all);
    }
}

/* More threads than processors only wait for each other. */
static void check_threads(const struct shuf__config *config, const struct shuf__log *log)
{
    cpu_set_t allowed;
    const int processors =
        sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : INT_MAX;
    check_binding(processors, log);
    if (config->threads > (uint64_t)processors)
        shuf__warn_of_config(config, log,
                             "threads %" PRIu64 ": more than the %d processor%s that shufd may "
                             "use, which is slower; expected 0 or up to %d",
                             config->threads, processors, shuf__plural((uint64_t)processors),
                             processors);
}

void shuf__check_budgets(struct shuf__backend *backend, const struct shuf__config *config,
                         const struct shuf__log *log)
{
    struct shuf__error ignored; /* the start has checked it */
    const struct limits host = {SHUF__MEMORY_MEMFD,
                                "host_memory",
                                "host_warm",
                                "25%",
                                config->host_memory,
                                config->host_warm,
                                shuf__service_sharers(&ignored)};
    const struct limits device = {SHUF__MEMORY_CUDA_FD,
                                  "device_memory",
                                  "device_warm",
                                  "10%",
                                  config->device_memory,
                                  config->device_warm,
                                  1};
    check_limits(backend, &host, config, log);
    check_limits(backend, &device, config, log);
    check_user_memory(config, log);
    check_threads(config, log);
}

/* If the daemon cannot make the file of the metrics, it serves without it. */
static void check_metrics_file(const struct shuf__config *config, const struct shuf__log *log)
{
    char name[SHUF__SERVICE_NAME], place[PATH_MAX];
    shuf__service_name_of(*config->socket ? config->socket : "shufd.sock", name);
    if (!*config->metrics_file ||
        !shuf__service_name_expand(config->metrics_file, name, place, sizeof place))
        return;
    char *const slash = strrchr(place, '/');
    slash[slash == place] = '\0';
    if (access(place, W_OK | X_OK) != 0)
        shuf__warn_of_config(
            config, log,
            "metrics_file %s: directory %.200s: %s; expected one that uid %u may write to, or "
            "one that the unit makes by the drop-in metrics-file.conf",
            config->metrics_file, place, strerror(errno), (unsigned)geteuid());
}

int shuf__check(const struct shuf__config *config, bool service, const struct shuf__log *log)
{
    struct shuf__backend *backend;
    struct shuf__error error;
    if (shuf__service_sharers(&error) == 0)
        return fail_check(config, log, EX_CONFIG, &error);
    if (!service && shuf__listener_check(config->socket, config->socket_group, &error))
        return fail_check(config, log, shuf__exit_of_socket(error.status), &error);
    if (shuf__service_check_keys(config, &error))
        return fail_check(config, log, EX_CONFIG, &error);
    if (shuf__backend_open(config->backend, (unsigned)config->threads, &backend, &error))
        return fail_check(config, log, shuf__exit_of_backend(config, error.status), &error);
    printf("%s: %s (%s)\n", backend->ops->name, backend->device, backend->device_id);
    shuf__check_budgets(backend, config, log);
    shuf__check_file_leases(log);
    shuf__check_control_group(config, log);
    check_metrics_file(config, log);
    check_readers(config, log);
    backend->ops->close(backend);
    return EX_OK;
}
