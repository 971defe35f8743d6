/* SPDX-License-Identifier: MIT
 *
 * The kernel's pressure stall information of memory: how long processes waited because memory was
 * short (PSI). A trigger wakes the loop; where the kernel permits none, shuf__psi_is_stalled()
 * reads the file. On the loop's thread.
 */
#ifndef SHUFD_PSI_H
#define SHUFD_PSI_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct shuf__psi {
    char path[PATH_MAX];
    uv_poll_t poll;
    int fd;              /* -1: without a trigger */
    uint64_t stalled_us; /* as read last */
    uint64_t read_us;    /* when */
    void (*on_stall)(void *context);
    void *context;
};

/* `path` is the file: /proc/pressure/memory, or memory.pressure of a control group. It need not
 * exist. `on_stall` is called when processes have waited too long for memory. */
void shuf__psi_open(struct shuf__psi *psi, uv_loop_t *loop, const char *path,
                    void (*on_stall)(void *context), void *context);

/* Without a trigger: whether processes have waited too long since the last call. */
bool shuf__psi_is_stalled(struct shuf__psi *psi);

void shuf__psi_close(struct shuf__psi *psi);

#endif
