/* SPDX-License-Identifier: MIT
 *
 * Gives idle memory back when other programs need it, and says whether the daemon may take memory
 * in advance. Memory is short when the machine, the control group or the GPU has little of it free,
 * or when processes wait for it (PSI). A timer polls only while there is idle memory; a trigger of
 * the kernel reports waiting processes at any time. All calls are on the loop's thread.
 */
#ifndef SHUFD_SHORTAGE_H
#define SHUFD_SHORTAGE_H

#include "pool.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* ---- Pressure stall information ---- */

/* The kernel's pressure stall information (PSI) of memory: the time that processes waited because
 * memory was short. A trigger of the kernel wakes the loop. If the kernel permits no trigger,
 * shuf__psi_is_stalled() reads the file. */
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

/* ---- Shortage ---- */

enum { SHUF__PSI_FILES = 2 }; /* the file of the machine, and of the control group */

struct shuf__shortage {
    struct shuf__pool *pool;
    uv_timer_t timers[SHUF__SIDES]; /* the next poll */
    struct shuf__psi psi[SHUF__PSI_FILES];
    /* Called after idle memory was freed. */
    void (*gave_back)(struct shuf__shortage *shortage, const struct shuf__dropped *dropped);
};

/* `root` is "". Only tests set it, to a folder that replaces / for /proc and /sys. */
void shuf__shortage_init(struct shuf__shortage *shortage, uv_loop_t *loop, struct shuf__pool *pool,
                         const char *root);

/* Whether the daemon may take `bytes` bytes without making memory short. It demands twice the usual
 * reserve. False for a device while the loop's backend computes. */
bool shuf__shortage_allows(const struct shuf__shortage *shortage, enum shuf__side side,
                           uint64_t bytes);

/* Call when the daemon ends. Closes all handles. */
void shuf__shortage_close(struct shuf__shortage *shortage);

/* The resident memory of this process, for its metrics. */
bool shuf__resident_bytes(uint64_t *bytes);

#endif
