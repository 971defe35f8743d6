/* SPDX-License-Identifier: MIT
 *
 * Gives idle memory back when other programs need it: when the machine, the control group or the
 * GPU has little free memory, or when processes wait for memory (psi.h). It polls only while there
 * is idle memory. On the loop's thread.
 */
#ifndef SHUFD_SHORTAGE_H
#define SHUFD_SHORTAGE_H

#include "pool.h"
#include "psi.h"

enum { SHUF__PSI_FILES = 2 }; /* of the machine and of the control group */

struct shuf__shortage {
    struct shuf__pool *pool;
    uv_timer_t timers[SHUF__SIDES]; /* the next poll */
    struct shuf__psi psi[SHUF__PSI_FILES];
    /* Called when idle memory was freed. */
    void (*gave_back)(struct shuf__shortage *shortage, const struct shuf__dropped *dropped);
};

/* `root` is a prefix of paths in /proc and /sys: "", but for tests. */
void shuf__shortage_init(struct shuf__shortage *shortage, uv_loop_t *loop, struct shuf__pool *pool,
                         const char *root);

/* Whether memory would not be short with `bytes` bytes less, and would stay so for a while. False
 * for a device while a job runs. */
bool shuf__shortage_allows(const struct shuf__shortage *shortage, enum shuf__side side,
                           uint64_t bytes);

/* The daemon ends: closes all handles. */
void shuf__shortage_close(struct shuf__shortage *shortage);

#endif
