/* SPDX-License-Identifier: MIT
 *
 * The receive buffer of a socket. It reads ahead, so a small reply and its payload cost one system
 * call. It owns the descriptors that arrive (SCM_RIGHTS), so none leaks.
 */
#ifndef SHUF__INBOX_H
#define SHUF__INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shuf__inbox {
    size_t start, end;    /* of the unread bytes */
    unsigned descriptors; /* received since the last check */
    bool truncated;       /* the kernel had to drop descriptors */
    int descriptor;       /* the first one, or -1; the others are closed */
    uint8_t bytes[8192];
};

void shuf__inbox_open(struct shuf__inbox *inbox);
void shuf__inbox_close(struct shuf__inbox *inbox);

/* Reads once from the socket to `out`, as recv(). Ignores the unread bytes of the inbox. */
ssize_t shuf__inbox_receive(struct shuf__inbox *inbox, int fd, void *out, size_t size, int flags);

/* Reads once from the socket into the inbox, which must not be full. Returns as recv(). */
ssize_t shuf__inbox_fill(struct shuf__inbox *inbox, int fd);

/* Moves at most `size` unread bytes to `out`, and returns their number. */
size_t shuf__inbox_read(struct shuf__inbox *inbox, void *out, size_t size);

/* True when exactly `expected` descriptors, 0 or 1, came since the last check. Resets the count. */
bool shuf__inbox_check_descriptors(struct shuf__inbox *inbox, unsigned expected);

/* Moves the descriptor to the caller, who closes it. -1: none. */
int shuf__inbox_descriptor(struct shuf__inbox *inbox);

#endif
