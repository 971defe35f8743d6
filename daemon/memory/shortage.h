/* SPDX-License-Identifier: MIT
 *
 * Gives idle memory back when other programs need it. They need it when the machine, the control
 * group or the GPU has little free memory, or when processes wait for memory (psi.h). It polls only
 * while there is idle memory. All calls are on the loop's thread.
 */
#ifndef SHUFD_SHORTAGE_H
#define SHUFD_SHORTAGE_H

#include "pool.h"
#include "psi.h"

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

#endif
