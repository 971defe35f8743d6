/* SPDX-License-Identifier: MIT
 *
 * The measured memory of the host, on fake machines made of files: with control groups of both
 * versions, with namespaces, and with containers that show a part of a hierarchy.
 */
#include "host/kept_file.h"
#include "host/memory_limits.h"
#include "support/cmocka_all.h"
#include "support/memory_group.h"

#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)
#define UNLIMITED "9223372036854771712\n" /* no limit, as version 1 writes it */
#define V2_MOUNT "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/shuf-host-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* A machine with 1000 MiB of memory, and 600 MiB of it available. */
static void write_machine(const char *groups, const char *mounts)
{
    write_file("/proc/meminfo", "MemTotal:        1024000 kB\nMemFree:          1 kB\n"
                                "MemAvailable:     614400 kB\n");
    write_file("/proc/self/cgroup", groups);
    write_file("/proc/self/mountinfo", mounts);
}

static void write_group(const char *directory, const char *most_name, const char *most,
                        const char *used_name, const char *used, const char *stat)
{
    char path[256];
    const struct {
        const char *name, *text;
    } files[] = {{most_name, most}, {used_name, used}, {"memory.stat", stat}};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i].name);
        write_file(path, files[i].text);
    }
}

/* Sizes in bytes; 104857600 is 100 MiB. */
static void write_v2(const char *directory, const char *most, const char *used, const char *cache)
{
    char stat[128];
    snprintf(stat, sizeof stat, "anon 1\ninactive_file %s\nactive_file 5\n", cache);
    write_group(directory, "memory.max", most, "memory.current", used, stat);
}

static void write_v1(const char *directory, const char *most, const char *used, const char *cache)
{
    char stat[128];
    snprintf(stat, sizeof stat, "inactive_file 1\ntotal_inactive_file %s\n", cache);
    write_group(directory, "memory.limit_in_bytes", most, "memory.usage_in_bytes", used, stat);
}

static void expect_measured(uint64_t available, uint64_t total)
{
    uint64_t found_available, found_total;
    struct shuf__error error;
    assert_int_equal(shuf__host_memory_below(root, &found_available, &found_total, &error),
                     SHUF_OK);
    assert_int_equal(found_available / MI, available);
    assert_int_equal(found_total / MI, total);
}

static void missing_meminfo_makes_all_memory_available(void **state)
{
    (void)state;
    uint64_t available = 0, total;
    struct shuf__error error;
    assert_int_equal(shuf__host_memory_below(root, &available, &total, &error), SHUF_OK);
    assert_true(available > 0 && available == total);
}

/* A container may hide the file behind an empty one. */
static void empty_meminfo_is_as_a_missing_one(void **state)
{
    write_file("/proc/meminfo", "");
    missing_meminfo_makes_all_memory_available(state);
    write_machine("", "");
    expect_measured(600, 1000);
}

/* With vm.overcommit_memory = 2, and only then, the limit of committed memory holds. */
static void commit_limit_holds_without_overcommit(void **state)
{
    (void)state;
    static const char meminfo[] = "MemTotal:        1024000 kB\nMemAvailable:     614400 kB\n"
                                  "CommitLimit:      512000 kB\nCommitted_AS:     %u kB\n";
    char text[256];
    snprintf(text, sizeof text, meminfo, 409600);
    write_file("/proc/meminfo", text);
    expect_measured(600, 1000);
    write_file("/proc/sys/vm/overcommit_memory", "0\n");
    expect_measured(600, 1000);
    write_file("/proc/sys/vm/overcommit_memory", "2\n");
    expect_measured(100, 1000);
    snprintf(text, sizeof text, meminfo, 614400);
    write_file("/proc/meminfo", text);
    expect_measured(0, 1000);
    write_machine("", ""); /* without these fields */
    expect_measured(600, 1000);
}

/* Without its limit, a group would look like a group without limit. */
static void missing_descriptors_are_an_error(void **state)
{
    (void)state;
    uint64_t available, total;
    struct shuf__error error;
    struct rlimit old, none;
    write_machine("0::/\n", V2_MOUNT);
    write_v2("/sys/fs/cgroup", "104857600\n", "52428800\n", "0");
    expect_measured(50, 100);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const shuf_status status = shuf__host_memory_below(root, &available, &total, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(status, SHUF_IO);
    assert_non_null(strstr(error.text, "Too many open files"));
    expect_measured(50, 100);
}

/* Both the limit of a group and the limit of its parent hold. The page cache does not count as
 * used. */
static void v2_limits_of_group_and_parent_hold(void **state)
{
    (void)state;
    write_machine("0::/outer/inner\n", V2_MOUNT);
    write_v2("/sys/fs/cgroup/outer/inner", "max\n", "52428800\n", "0");
    expect_measured(600, 1000);
    write_v2("/sys/fs/cgroup/outer/inner", "419430400\n", "104857600\n", "52428800");
    expect_measured(350, 400);
    write_v2("/sys/fs/cgroup/outer", "209715200\n", "157286400\n", "0");
    expect_measured(50, 200);
}

/* The kernel slows processes above memory.high, so it is a limit too. */
static void v2_memory_high_is_a_limit(void **state)
{
    (void)state;
    write_machine("0::/g\n", V2_MOUNT);
    write_v2("/sys/fs/cgroup/g", "419430400\n", "104857600\n", "0");
    write_file("/sys/fs/cgroup/g/memory.high", "314572800\n");
    expect_measured(200, 300);
    write_file("/sys/fs/cgroup/g/memory.high", "max\n");
    expect_measured(300, 400);
    write_file("/sys/fs/cgroup/g/memory.high", "314572800\n");
    write_file("/sys/fs/cgroup/g/memory.max", "max\n");
    expect_measured(200, 300);
}

/* In a namespace the process's group is the root of the mounted hierarchy. */
static void v2_namespace_root_is_found(void **state)
{
    (void)state;
    write_machine("0::/\n", V2_MOUNT);
    write_v2("/sys/fs/cgroup", "419430400\n", "104857600\n", "0");
    expect_measured(300, 400);
}

/* After `unshare --cgroup` alone, the mounted hierarchy still begins outside of the namespace. The
 * namespace hides the names of the groups in between, so the process finds its group by the list of
 * processes. */
static void mount_from_outside_namespace_is_searched(void **state)
{
    (void)state;
    char pids[32];
    snprintf(pids, sizeof pids, "1\n%ld\n", (long)getpid());
    write_machine("4:memory:/\n0::/part\n",
                  "35 31 0:32 /../.. /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                  "41 31 0:38 /.. /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write_v1("/sys/fs/cgroup/memory", UNLIMITED, "900000000\n", "0");
    write_v1("/sys/fs/cgroup/memory/a/other", "104857600\n", "0\n", "0");
    write_file("/sys/fs/cgroup/memory/a/other/cgroup.procs", "1\n2\n");
    expect_measured(600, 1000);
    write_v1("/sys/fs/cgroup/memory/b/own", "419430400\n", "104857600\n", "0");
    write_file("/sys/fs/cgroup/memory/b/own/cgroup.procs", pids);
    expect_measured(300, 400);
    write_v1("/sys/fs/cgroup/memory/b", "314572800\n", "104857600\n", "0");
    expect_measured(200, 300);
    write_v2("/sys/fs/cgroup/unified/c/part", "209715200\n", "104857600\n", "0");
    write_file("/sys/fs/cgroup/unified/c/part/cgroup.procs", pids);
    expect_measured(100, 200);
}

/* Files with absurd contents. A limit that is no number is ignored. If only the usage is
 * unreadable, the limit still holds. */
static void bad_limits_are_ignored(void **state)
{
    (void)state;
    static const char *const none[] = {"max\n",
                                       "",
                                       "\n",
                                       "-1\n",
                                       "x\n",
                                       "12abc\n",
                                       "99999999999999999999999999\n",
                                       "18446744073709551615\n"};
    write_machine("0::/g\n", V2_MOUNT);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        write_v2("/sys/fs/cgroup/g", none[i], "104857600\n", "0");
        expect_measured(600, 1000);
    }
    write_v2("/sys/fs/cgroup/g", "419430400\n", "none\n", "none");
    expect_measured(400, 400);
    write_v2("/sys/fs/cgroup/g", "419430400", "99999999999999999999999999\n", "0");
    expect_measured(0, 400);
    write_v2("/sys/fs/cgroup/g", "419430400\n", "104857600\n", "99999999999999999999999999");
    expect_measured(400, 400);
    write_machine("0::/g\n::\n4:memory\nnonsense", "35 31\n - cgroup2\n" V2_MOUNT " - ");
    expect_measured(400, 400);
}

/* The process was moved out of the root of its namespace. */
static void process_outside_its_namespace_uses_mount(void **state)
{
    (void)state;
    write_machine("0::/../other\n", V2_MOUNT);
    write_v2("/sys/fs/cgroup", "419430400\n", "104857600\n", "0");
    expect_measured(300, 400);
}

static void v1_limits_of_group_and_parent_hold(void **state)
{
    (void)state;
    write_machine("12:cpu,cpuacct:/x\n4:memory:/outer/inner\n0::/y\n",
                  "30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                  "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup "
                  "rw,memory\n"
                  "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write_v1("/sys/fs/cgroup/memory", UNLIMITED, "900000000\n", "0");
    write_v1("/sys/fs/cgroup/memory/outer/inner", UNLIMITED, "52428800\n", "0");
    expect_measured(600, 1000);
    write_v1("/sys/fs/cgroup/memory/outer", "419430400\n", "104857600\n", "52428800");
    expect_measured(350, 400);
}

/* A container of version 1 sees the path of its group on the host, but its own group is mounted. */
static void v1_container_uses_its_mount(void **state)
{
    (void)state;
    write_machine("4:hugetlb,memory:/docker/abc/part\n",
                  "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    write_v1("/sys/fs/cgroup/memory", "419430400\n", "104857600\n", "0");
    /* there is no folder `part`, so the limits of the mount point hold */
    expect_measured(300, 400);
    write_v1("/sys/fs/cgroup/memory/part", "209715200\n", "104857600\n", "0");
    expect_measured(100, 200);
}

/* A controller with a similar name is not the memory controller. */
static void similar_controllers_are_ignored(void **state)
{
    (void)state;
    write_machine("4:memory2:/a\n5:xmemory:/b\n",
                  "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory2\n");
    write_v1("/sys/fs/cgroup/memory", "419430400\n", "104857600\n", "0");
    write_v1("/sys/fs/cgroup/memory/a", "419430400\n", "104857600\n", "0");
    expect_measured(600, 1000);
}

static void expect_hidden(const char *expected)
{
    char group[PATH_MAX];
    const bool is_hidden = shuf__cgroup_is_hidden(root, group);
    assert_int_equal(is_hidden, expected != NULL);
    if (expected)
        assert_string_equal(group, expected);
}

static void link_namespace(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/ns", root);
    mkdir(path, 0755);
    strcat(path, "/cgroup");
    unlink(path);
    if (name)
        assert_int_equal(symlink(name, path), 0);
}

/* A sandbox that shows no control groups hides the limits of a group below the root. */
static void hidden_groups_are_found(void **state)
{
    (void)state;
    expect_hidden(NULL); /* without /proc */
    write_machine("0::/a/b\n", "");
    expect_hidden("/a/b");
    write_machine("0::/a/b\n", V2_MOUNT);
    expect_hidden("/a/b"); /* another mount covers the files */
    write_file("/sys/fs/cgroup/a/b/cgroup.procs", "");
    expect_hidden(NULL);
    write_machine("0::/\n", "");
    expect_hidden(NULL);
    link_namespace("cgroup:[4026531835]");
    expect_hidden(NULL);
    link_namespace("cgroup:[4026532000]"); /* whose own root has this name */
    expect_hidden("/");
    link_namespace(NULL);
    write_machine("12:cpu:/x\n4:memory:/\n0::/x\n", "");
    expect_hidden(NULL);
    write_machine("12:cpu:/x\n4:memory:/y\n0::/\n", V2_MOUNT);
    expect_hidden("/y");
    write_machine("4:memory:/docker/abc\n0::/x\n",
                  "35 31 0:32 /docker/abc /memory rw - cgroup cgroup rw,memory\n");
    expect_hidden("/docker/abc");
    write_file("/memory/cgroup.procs", "");
    expect_hidden(NULL);
}

/* The real machine. */
static void real_machine_has_plausible_memory(void **state)
{
    (void)state;
    uint64_t available, total;
    struct shuf__error error;
    assert_int_equal(shuf__host_memory(&available, &total, &error), SHUF_OK);
    assert_true(total >= 16 * MI && available <= total);
}

/* The process is in a real group of 400 MiB. It then makes a namespace, which has this group as its
 * root. */
static void real_group_limits_memory(void **state)
{
    (void)state;
    uint64_t available, total;
    struct shuf__error error;
    if (!memory_group_make(400 * MI)) {
        print_message("no control group of memory can be made here\n");
        skip();
    }
    memory_group_enter();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shuf__host_memory_below("", &available, &total, &error), SHUF_OK);
        assert_int_equal(total, 400 * MI);
        assert_true(available <= total);
        if (unshare(CLONE_NEWCGROUP) != 0)
            break;
    }
    memory_group_leave();
    memory_group_remove();
}

/* Whether this process has the file open. */
static bool is_open(const char *name)
{
    char path[256], link[64], target[256];
    bool found = false;
    snprintf(path, sizeof path, "%s%s", root, name);
    for (int fd = 0; fd < 256 && !found; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        found = length == (ssize_t)strlen(path) && memcmp(target, path, strlen(path)) == 0;
    }
    return found;
}

/* Comes after the tests that expect closed files. */
static void kept_files_stay_open(void **state)
{
    (void)state;
    write_machine("0::/g\n", V2_MOUNT);
    write_v2("/sys/fs/cgroup/g", "419430400\n", "104857600\n", "0");
    expect_measured(300, 400);
    assert_false(is_open("/proc/meminfo"));
    shuf__kept_files_begin();
    expect_measured(300, 400);
    assert_true(is_open("/proc/meminfo"));
    assert_true(is_open("/sys/fs/cgroup/g/memory.current"));
    write_v2("/sys/fs/cgroup/g", "209715200\n", "104857600\n", "0");
    expect_measured(100, 200);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(missing_meminfo_makes_all_memory_available),
        ROW(empty_meminfo_is_as_a_missing_one),
        ROW(commit_limit_holds_without_overcommit),
        ROW(missing_descriptors_are_an_error),
        ROW(v2_limits_of_group_and_parent_hold),
        ROW(v2_memory_high_is_a_limit),
        ROW(v2_namespace_root_is_found),
        ROW(process_outside_its_namespace_uses_mount),
        ROW(v1_limits_of_group_and_parent_hold),
        ROW(v1_container_uses_its_mount),
        ROW(similar_controllers_are_ignored),
        ROW(mount_from_outside_namespace_is_searched),
        ROW(bad_limits_are_ignored),
        ROW(hidden_groups_are_found),
        cmocka_unit_test(real_machine_has_plausible_memory),
        cmocka_unit_test(real_group_limits_memory),
        ROW(kept_files_stay_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
