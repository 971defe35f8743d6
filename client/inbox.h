/* SPDX-License-Identifier: MIT
 *
 * What has come on a socket and is not yet asked for: bytes read ahead, so that
 * a small reply and the bytes behind it cost one system call, and the
 * descriptors that came along (SCM_RIGHTS), none of which is ever lost.
 */
#ifndef SHUF__INBOX_H
#define SHUF__INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shuf__inbox {
    size_t start, end;    /* of the bytes read ahead */
    unsigned descriptors; /* that came since they were last counted */
    bool cut;             /* and more, which the kernel could not hand over */
    int descriptor;       /* the first of them, or -1; the others are closed */
    uint8_t bytes[8192];
};

void shuf__inbox_open(struct shuf__inbox *inbox);
void shuf__inbox_close(struct shuf__inbox *inbox);

/* Reads once from the socket, past what is read ahead: as recv(). */
ssize_t shuf__inbox_receive(struct shuf__inbox *inbox, int fd, void *out, size_t size, int flags);

/* Reads once, to add to what is read ahead, which must not fill the room. As recv(). */
ssize_t shuf__inbox_fill(struct shuf__inbox *inbox, int fd);

/* Moves at most `size` bytes that were read ahead to `out`; how many. */
size_t shuf__inbox_take(struct shuf__inbox *inbox, void *out, size_t size);

/* Whether `expected` descriptors have come, 0 or 1; counts anew from here. */
bool shuf__inbox_count(struct shuf__inbox *inbox, unsigned expected);

/* The descriptor, which is then the caller's to close; -1: none. */
int shuf__inbox_descriptor(struct shuf__inbox *inbox);

#endif
