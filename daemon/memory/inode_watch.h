/* SPDX-License-Identifier: MIT
 *
 * Watches whether the kernel has really freed host memory that the daemon has freed. A process can
 * keep such memory by an O_PATH descriptor, which the kernel's file leases do not count
 * (kernels/host/memfd.h). An inotify watch ends when the inode of the memory is gone. The watch
 * itself does not keep the inode. All calls are on the loop's thread.
 */
#ifndef SHUFD_INODE_WATCH_H
#define SHUFD_INODE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* All watches. */
struct shuf__inode_watches {
    int inotify; /* -1: the kernel has no inotify instance left, so nothing is watched */
    void *tree;  /* tsearch(3): the watches with an inode that exists */
};

struct shuf__inode_watch {
    int id; /* 0: there is no watch, or the inode is gone */
};

void shuf__inode_watches_open(struct shuf__inode_watches *watches);
void shuf__inode_watches_close(struct shuf__inode_watches *watches);

/* Watches the inode of a descriptor. */
void shuf__inode_watch_begin(struct shuf__inode_watches *watches, struct shuf__inode_watch *watch,
                             int fd);

/* Reads the events. If the inode of a watch is gone, sets its id to 0. */
void shuf__inode_watches_update(struct shuf__inode_watches *watches);

/* Ends a watch. Does nothing if its inode is gone. */
void shuf__inode_watch_end(struct shuf__inode_watches *watches, struct shuf__inode_watch *watch);

/* The most watches that the user of the daemon may have; 0: unknown. */
uint64_t shuf__inode_watches_most(void);

#endif
