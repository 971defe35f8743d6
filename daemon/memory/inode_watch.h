/* SPDX-License-Identifier: MIT
 *
 * Whether host memory that was freed is gone. A process can keep it by an O_PATH descriptor, which
 * the kernel's file leases do not count (kernels/host/memfd.h). An inotify watch does not keep an
 * inode, and ends with it. On the loop's thread.
 */
#ifndef SHUFD_INODE_WATCH_H
#define SHUFD_INODE_WATCH_H

#include <stdbool.h>

/* All watches. */
struct shuf__inode_watches {
    int inotify; /* -1: the kernel has no inotify instance left, so nothing is watched */
    void *tree;  /* tsearch(3): those whose inode is there */
};

struct shuf__inode_watch {
    int id; /* 0: not watched, or the inode is gone */
};

void shuf__inode_watches_open(struct shuf__inode_watches *watches);
void shuf__inode_watches_close(struct shuf__inode_watches *watches);

/* Watches the inode of a descriptor. */
void shuf__inode_watch_begin(struct shuf__inode_watches *watches, struct shuf__inode_watch *watch,
                             int fd);

/* Sets the ids of those whose inodes are gone to 0. */
void shuf__inode_watches_update(struct shuf__inode_watches *watches);

/* Stops watching, if the inode is still there. */
void shuf__inode_watch_end(struct shuf__inode_watches *watches, struct shuf__inode_watch *watch);

#endif
