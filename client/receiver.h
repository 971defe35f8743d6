/* SPDX-License-Identifier: MIT
 *
 * The receive buffer of a socket. It reads ahead, so a small reply and its payload cost one system
 * call. It owns the descriptors that arrive (SCM_RIGHTS), so none leaks.
 */
#ifndef SHUF__RECEIVER_H
#define SHUF__RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shuf__receiver {
    size_t start, end;    /* of the unread bytes */
    unsigned descriptors; /* received since the last check */
    bool truncated;       /* the kernel had to drop descriptors */
    int descriptor;       /* the first one, or -1; the others are closed */
    uint8_t bytes[8192];
};

void shuf__receiver_open(struct shuf__receiver *receiver);
void shuf__receiver_close(struct shuf__receiver *receiver);

/* Reads once from the socket to `out`, as recv(). Ignores the unread bytes of the receiver. */
ssize_t shuf__receiver_receive(struct shuf__receiver *receiver, int fd, void *out, size_t size,
                               int flags);

/* Reads once from the socket into the receiver, which must not be full. Returns as recv(). */
ssize_t shuf__receiver_fill(struct shuf__receiver *receiver, int fd);

/* Moves at most `size` unread bytes to `out`, and returns their number. */
size_t shuf__receiver_read(struct shuf__receiver *receiver, void *out, size_t size);

/* True when exactly `expected` descriptors, 0 or 1, came since the last check. Resets the count. */
bool shuf__receiver_check_descriptors(struct shuf__receiver *receiver, unsigned expected);

/* Moves the descriptor to the caller, who closes it. -1: none. */
int shuf__receiver_descriptor(struct shuf__receiver *receiver);

#endif
