/* SPDX-License-Identifier: MIT
 *
 * See memory_limits.h. /proc/self/cgroup has the path of this process's group within its hierarchy.
 * /proc/self/mountinfo has the mount point of the hierarchy, and the group that is mounted there.
 * In a container the mounted group need not be the root of the hierarchy.
 */
#include "host/memory_limits.h"

#include "host/kept_file.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { LINE = 2 * PATH_MAX + 1024 };

/* The names of a group's files, by version of cgroups. NULL: the version has no such file. */
static const struct files {
    const char *most, *high, *used, *stat, *cache;
} files[] = {
    [1] = {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "memory.stat",
           "total_inactive_file "},
    [2] = {"memory.max", "memory.high", "memory.current", "memory.stat", "inactive_file "},
};

/* Leaves in errno only a cause for which a file that exists could not be read. */
static void note_cause(int cause)
{
    errno = shuf__is_system_failure(cause) ? cause : 0;
}

static void close_file(FILE *file)
{
    const int cause = !file || ferror(file) ? errno : 0;
    if (file)
        fclose(file);
    note_cause(cause);
}

/* The number after `field` at the beginning of a line. "max" is no number. */
static bool take_number(const char *line, const char *field, uint64_t *number)
{
    const size_t length = strlen(field);
    char *end;
    if (strncmp(line, field, length) != 0)
        return false;
    const uint64_t value = strtoull(line + length, &end, 10);
    const bool found = end != line + length && strchr(" \n", *end);
    *number = found ? value : *number;
    return found;
}

bool shuf__read_number(const char *path, const char *field, uint64_t *number)
{
    char text[16384];
    const char *line = shuf__kept_file_read(path, text, sizeof text) ? text : NULL;
    note_cause(line ? 0 : errno);
    while (line && !take_number(line, field, number)) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line != NULL;
}

/* ---- The groups of this process ---- */

/* Whether one of the words of a comma-separated list is `word`. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && strchr(",\n ", at[length]))
            return true;
    return false;
}

/* Calls `take` for each line of the file until it returns true. False, with errno, if the file
 * cannot be read. */
static bool each_line(const char *root, const char *name, bool (*take)(char *line, void *context),
                      void *context)
{
    char path[PATH_MAX], line[LINE];
    snprintf(path, sizeof path, "%s%s", root, name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && !take(line, context))
        continue;
    close_file(file);
    return errno == 0;
}

struct search {
    int version;
    char group[PATH_MAX];                          /* "" until it is found */
    char mounted[PATH_MAX], mount_point[PATH_MAX]; /* the group that is mounted at mount_point */
};

/* A line "0::/group" of version 2, or "7:cpu,memory:/group" of version 1. */
static bool take_group(char *line, void *context)
{
    struct search *search = context;
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(++controllers, ':') : NULL;
    if (!group)
        return false;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    const bool is_it =
        search->version == 2 ? *controllers == '\0' : has_word(controllers, "memory");
    if (is_it)
        snprintf(search->group, sizeof search->group, "%s", group);
    return is_it;
}

/* proc(5): "31 23 0:28 MOUNTED MOUNT_POINT OPTIONS... - TYPE SOURCE SUPER_OPTIONS" */
static bool take_mount(char *line, void *context)
{
    struct search *search = context;
    _Static_assert(PATH_MAX == 4096, "the widths below");
    char type[32], options[512];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(rest, " - %31s %*s %511s", type, options) != 2)
        return false;
    if (strcmp(type, search->version == 2 ? "cgroup2" : "cgroup") != 0 ||
        (search->version == 1 && !has_word(options, "memory")))
        return false;
    return sscanf(line, "%*s %*s %*s %4095s %4095s", search->mounted, search->mount_point) == 2;
}

/* The group's path below the mounted group. "" if the group is not below it, which can happen in a
 * namespace. */
static const char *path_below(const struct search *search)
{
    const size_t length = strcmp(search->mounted, "/") == 0 ? 0 : strlen(search->mounted);
    const char *below = search->group + length;
    const bool inside = strncmp(search->group, search->mounted, length) == 0 &&
                        (*below == '/' || *below == '\0') && !strstr(search->group, "/..");
    return inside && strcmp(below, "/") != 0 ? below : "";
}

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---- A hierarchy that was mounted outside this namespace ---- */

/* The number of levels from the mounted group down to the root of the namespace: 2 for the path
 * "/../..". 0 for a path of any other form. */
static unsigned levels_above(const char *mounted)
{
    unsigned levels = 0;
    for (; strncmp(mounted, "/..", 3) == 0; mounted += 3)
        levels++;
    return *mounted ? 0 : levels;
}

static bool has_this_process(const char *directory)
{
    char path[PATH_MAX + 64];
    long pid;
    bool found = false;
    snprintf(path, sizeof path, "%s/cgroup.procs", directory);
    FILE *file = fopen(path, "re");
    while (file && !found && fscanf(file, "%ld", &pid) == 1)
        found = pid == (long)getpid();
    if (file)
        fclose(file);
    return found;
}

/* Appends the names of `levels` levels, and then `below`, to `path`. The namespace hides these
 * names. So the code searches all directories for one that lists this process. */
static bool find_by_process(char path[PATH_MAX], unsigned levels, const char *below)
{
    const size_t length = strlen(path), room = PATH_MAX - length;
    bool found = false;
    if (levels == 0) {
        if (strlen(below) < room)
            strcpy(path + length, below);
        found = has_this_process(path);
    }
    DIR *directory = levels > 0 ? opendir(path) : NULL;
    const struct dirent *entry;
    while (directory && !found && (entry = readdir(directory)) != NULL)
        if (entry->d_type == DT_DIR && *entry->d_name != '.' && strlen(entry->d_name) + 1 < room) {
            stpcpy(stpcpy(path + length, "/"), entry->d_name);
            found = find_by_process(path, levels - 1, below);
        }
    if (directory)
        closedir(directory);
    if (!found)
        path[length] = '\0';
    return found;
}

/* ---- The group of a version ---- */

static bool find_group(const char *root, int version, struct shuf__cgroup *group)
{
    struct search search = {.version = version};
    *group = (struct shuf__cgroup){.version = version};
    if (!each_line(root, "/proc/self/cgroup", take_group, &search) ||
        !each_line(root, "/proc/self/mountinfo", take_mount, &search))
        return false;
    if (!*search.group || !*search.mount_point)
        return true;
    const int length = snprintf(group->path, sizeof group->path, "%s%s", root, search.mount_point);
    group->mount_point = (size_t)length;
    const unsigned levels = levels_above(search.mounted);
    if (levels > 0) {
        find_by_process(group->path, levels, strcmp(search.group, "/") == 0 ? "" : search.group);
        return true;
    }
    if ((size_t)length + strlen(path_below(&search)) >= sizeof group->path)
        return true;
    strcpy(group->path + length, path_below(&search));
    if (!is_directory(group->path)) /* a container may have only its own group, mounted here */
        group->path[length] = '\0';
    return true;
}

bool shuf__cgroups_find(const char *root, struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS])
{
    bool ok = true;
    for (int i = 0; i < SHUF__CGROUP_VERSIONS && ok; i++)
        ok = find_group(root, SHUF__CGROUP_VERSIONS - i, &groups[i]);
    return ok;
}

/* Each group has the file cgroup.procs, also without a memory controller. */
static bool has_files(const struct shuf__cgroup *group)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/cgroup.procs", group->path);
    return *group->path && access(path, F_OK) == 0;
}

/* Whether this process is in a namespace of control groups, which names its own root "/". The first
 * namespace has a fixed number (include/linux/proc_ns.h, PROC_CGROUP_INIT_INO). */
static bool is_in_namespace(const char *root)
{
    char path[PATH_MAX], name[64];
    snprintf(path, sizeof path, "%s/proc/self/ns/cgroup", root);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0)
        return false;
    name[length] = '\0';
    return strcmp(name, "cgroup:[4026531835]") != 0;
}

/* If a hierarchy of version 1 has the memory controller, version 2 has no limits of memory. */
bool shuf__cgroup_is_hidden(const char *root, char group[PATH_MAX])
{
    for (int version = 1; version <= SHUF__CGROUP_VERSIONS; version++) {
        struct search search = {.version = version};
        struct shuf__cgroup found;
        if (!each_line(root, "/proc/self/cgroup", take_group, &search) ||
            !find_group(root, version, &found))
            return false;
        if (!*search.group)
            continue;
        strcpy(group, search.group);
        return (strcmp(group, "/") != 0 || is_in_namespace(root)) && !has_files(&found);
    }
    return false;
}

/* ---- The limits of a group ---- */

/* False, with errno, if the file cannot be read. If it is missing, the number stays unchanged. */
static bool read_file(const char *directory, const char *name, const char *field, uint64_t *number)
{
    char path[PATH_MAX + 64];
    if (!name)
        return true;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return shuf__read_number(path, field, number) || errno == 0;
}

/* Counts the group's page cache as available, because the kernel frees it before the group reaches
 * its limit. */
static bool apply_one(const char *directory, const struct files *names, uint64_t *available,
                      uint64_t *total)
{
    uint64_t most = UINT64_MAX, high = UINT64_MAX, used = 0, cache = 0;
    if (!read_file(directory, names->most, "", &most) ||
        !read_file(directory, names->high, "", &high))
        return false;
    const uint64_t limit = high < most ? high : most;
    if (limit == UINT64_MAX)
        return true;
    if (!read_file(directory, names->used, "", &used) ||
        !read_file(directory, names->stat, names->cache, &cache))
        return false;
    used -= cache < used ? cache : used;
    const uint64_t left = used < limit ? limit - used : 0;
    *available = left < *available ? left : *available;
    *total = limit < *total ? limit : *total;
    return true;
}

/* Lowers *available and *total to the limits of the group and of the groups above it. False as
 * shuf__cgroups_find(). */
static bool apply_group(const struct shuf__cgroup *group, uint64_t *available, uint64_t *total)
{
    struct shuf__cgroup at = *group;
    while (at.path[0]) {
        if (!apply_one(at.path, &files[at.version], available, total))
            return false;
        char *slash = strrchr(at.path + at.mount_point, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return true;
}

/* ---- The memory of the machine ---- */

/* A container may hide /proc/meminfo. Then nobody knows the available bytes, and the limits of the
 * configuration and of control groups must do. */
static shuf_status read_total(uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    struct sysinfo machine;
    if (sysinfo(&machine) != 0)
        return shuf__fail(error, SHUF_IO, "sysinfo: %s", strerror(errno));
    *available = *total = (uint64_t)machine.totalram * machine.mem_unit;
    return SHUF_OK;
}

/* With vm.overcommit_memory = 2 the kernel also limits the committed memory. It commits a page of a
 * memfd at its first use, and sends SIGBUS if the limit is reached. False, with errno, if a file
 * cannot be read. */
static bool apply_commit_limit(const char *root, const char *meminfo, uint64_t *available)
{
    char path[PATH_MAX];
    uint64_t mode = 0, limit, committed;
    snprintf(path, sizeof path, "%s/proc/sys/vm/overcommit_memory", root);
    if (!shuf__read_number(path, "", &mode) || mode != 2 ||
        !shuf__read_number(meminfo, "CommitLimit:", &limit) ||
        !shuf__read_number(meminfo, "Committed_AS:", &committed))
        return errno == 0;
    const uint64_t left = committed < limit ? limit - committed : 0;
    *available = left < *available ? left : *available;
    return true;
}

static shuf_status read_machine(const char *root, uint64_t *available, uint64_t *total,
                                struct shuf__error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!shuf__read_number(path, "MemTotal:", total) ||
        !shuf__read_number(path, "MemAvailable:", available))
        return read_total(available, total, error); /* a container may hide the file */
    if (!apply_commit_limit(root, path, available))
        return shuf__fail(error, SHUF_IO, "%.128s: %s", path,
                          errno ? strerror(errno) : "no CommitLimit and Committed_AS in it");
    *available *= 1024;
    *total *= 1024;
    return SHUF_OK;
}

static shuf_status fail_groups(struct shuf__error *error)
{
    return shuf__fail(error, SHUF_IO, "memory limits of the control group: %s", strerror(errno));
}

static shuf_status measure(const char *root, const struct shuf__cgroup *groups, uint64_t *available,
                           uint64_t *total, struct shuf__error *error)
{
    if (read_machine(root, available, total, error))
        return error->status;
    for (int i = 0; i < SHUF__CGROUP_VERSIONS; i++)
        if (!apply_group(&groups[i], available, total))
            return fail_groups(error);
    return SHUF_OK;
}

shuf_status shuf__host_memory_below(const char *root, uint64_t *available, uint64_t *total,
                                    struct shuf__error *error)
{
    struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS];
    if (!shuf__cgroups_find(root, groups))
        return fail_groups(error);
    return measure(root, groups, available, total, error);
}

static struct {
    pthread_mutex_t lock;
    bool are_found;
    struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The groups are found only once, because the list of mounts can be long, and a process rarely
 * changes its groups. */
shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    pthread_mutex_lock(&own.lock);
    if (!own.are_found)
        own.are_found = shuf__cgroups_find("", own.groups);
    const shuf_status status = own.are_found ? SHUF_OK : fail_groups(error);
    pthread_mutex_unlock(&own.lock);
    return status == SHUF_OK ? measure("", own.groups, available, total, error) : status;
}
