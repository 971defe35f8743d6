/* SPDX-License-Identifier: MIT
 *
 * The kernel's pressure stall information (PSI) of memory: the time that processes waited because
 * memory was short. A trigger of the kernel wakes the loop. If the kernel permits no trigger,
 * shuf__psi_is_stalled() reads the file. All calls are on the loop's thread.
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
    int fd;              /* -1: there is no trigger */
    uint64_t stalled_us; /* the total in the file, as read last */
    uint64_t read_us;    /* time of that read */
    void (*on_stall)(void *context);
    void *context;
};

/* `path` is /proc/pressure/memory, or memory.pressure of a control group. The file need not exist.
 * The trigger calls `on_stall` when processes have waited too long for memory. */
void shuf__psi_open(struct shuf__psi *psi, uv_loop_t *loop, const char *path,
                    void (*on_stall)(void *context), void *context);

/* If there is no trigger: whether processes have waited too long since the last call. */
bool shuf__psi_is_stalled(struct shuf__psi *psi);

void shuf__psi_close(struct shuf__psi *psi);

#endif
