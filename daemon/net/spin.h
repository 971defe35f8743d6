/* SPDX-License-Identifier: MIT
 *
 * Keeps the loop awake for a short time after each reply. A client in a loop sends its next request
 * at once, and waking a sleeping processor takes longer than a small request.
 */
#ifndef SHUFD_SPIN_H
#define SHUFD_SPIN_H

#include <stdint.h>
#include <uv.h>

struct shuf__spin {
    uv_idle_t idle; /* while it is active the loop does not sleep */
    uint64_t ns, until_ns;
};

void shuf__spin_init(struct shuf__spin *spin, uv_loop_t *loop);

/* Sets how long the loop stays awake. 0 is the initial value: it sleeps at once. On a single
 * processor it never stays awake, because it would delay the clients for which it waits. */
void shuf__spin_set(struct shuf__spin *spin, uint64_t nanoseconds);

/* Call when a reply was sent. */
void shuf__spin_replied(struct shuf__spin *spin, uint64_t now_ns);

#endif
