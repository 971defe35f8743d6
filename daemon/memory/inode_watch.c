/* SPDX-License-Identifier: MIT
 *
 * See inode_watch.h. If the kernel's queue of events was full, events are lost. Then the file of
 * the inotify descriptor in /proc/self/fdinfo lists the remaining watches.
 */
#include "inode_watch.h"

#include "host/memory_limits.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    const struct shuf__inode_watch *k = a, *l = b;
    return (k->id > l->id) - (k->id < l->id);
}

void shuf__inode_watches_open(struct shuf__inode_watches *watches)
{
    *watches = (struct shuf__inode_watches){.inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
}

void shuf__inode_watches_close(struct shuf__inode_watches *watches)
{
    if (watches->inotify >= 0)
        close(watches->inotify);
    watches->inotify = -1;
}

/* Watches for IN_MOVE_SELF, but a memfd never moves. So the only event is the end of the watch,
 * which inotify always reports. */
void shuf__inode_watch_begin(struct shuf__inode_watches *watches, struct shuf__inode_watch *watch,
                             int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    watch->id = watches->inotify < 0 ? -1 : inotify_add_watch(watches->inotify, path, IN_MOVE_SELF);
    if (watch->id <= 0 || !tsearch(watch, &watches->tree, compare))
        watch->id = 0;
}

static void end_watch(struct shuf__inode_watches *watches, int id)
{
    const struct shuf__inode_watch key = {.id = id};
    struct shuf__inode_watch *const *found = tfind(&key, &watches->tree, compare);
    if (!found)
        return;
    struct shuf__inode_watch *watch = *found;
    tdelete(&key, &watches->tree, compare);
    watch->id = 0;
}

void shuf__inode_watch_end(struct shuf__inode_watches *watches, struct shuf__inode_watch *watch)
{
    if (watch->id <= 0)
        return;
    inotify_rm_watch(watches->inotify, watch->id);
    end_watch(watches, watch->id);
}

/* Moves the watches that the kernel lists to a new tree, and ends the others. */
static void compare_with_kernel(struct shuf__inode_watches *watches)
{
    char line[256], path[32];
    struct shuf__inode_watch key;
    void *left = NULL;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", watches->inotify);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        struct shuf__inode_watch *const *found =
            sscanf(line, "inotify wd:%x", (unsigned *)&key.id) == 1
                ? tfind(&key, &watches->tree, compare)
                : NULL;
        if (found && tsearch(*found, &left, compare))
            tdelete(&key, &watches->tree, compare);
    }
    fclose(file);
    while (watches->tree)
        end_watch(watches, (**(struct shuf__inode_watch **)watches->tree).id);
    watches->tree = left;
}

void shuf__inode_watches_update(struct shuf__inode_watches *watches)
{
    _Alignas(struct inotify_event) char events[4096];
    bool overflow = false;
    ssize_t size;
    while (watches->inotify >= 0 && (size = read(watches->inotify, events, sizeof events)) > 0)
        for (const char *at = events; at < events + size;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            at += sizeof *event + event->len;
            overflow |= (event->mask & IN_Q_OVERFLOW) != 0;
            if (event->mask & IN_IGNORED)
                end_watch(watches, event->wd);
        }
    if (overflow)
        compare_with_kernel(watches);
}

uint64_t shuf__inode_watches_most(void)
{
    uint64_t most = 0;
    return shuf__read_number("/proc/sys/fs/inotify/max_user_watches", "", &most) ? most : 0;
}
