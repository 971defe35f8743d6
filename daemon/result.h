/* SPDX-License-Identifier: MIT
 *
 * One computed result: its block of memory, counted against the budget, and
 * owned by exactly one thing at a time (a job, then the session that sends it).
 */
#ifndef SHUFD_RESULT_H
#define SHUFD_RESULT_H

#include "engine.h"

#include <stdatomic.h>
#include <stdint.h>

/* Bytes of results. Blocks come and go on the engine's thread alone; the atomics
 * are for those who look from outside. */
struct shuf__budget {
    uint64_t configured; /* 0: what the device has, less a reserve */
    _Atomic uint64_t used, limit;
};

struct shuf__result {
    struct shuf__task release;
    struct shuf__budget *budget;
    struct shuf__block block;
};

/* On the engine's thread. Fails with SHUF_NO_MEMORY where it could never fit, with SHUF_BUSY
 * where others' results are in its way; both name bytes asked, in use and allowed. */
shuf_status shuf__result_make(struct shuf__budget *budget, struct shuf__backend *backend,
                              uint64_t bytes, struct shuf__result **result,
                              struct shuf__error *error);
/* On the engine's thread: frees it. */
void shuf__result_drop(struct shuf__result *result, struct shuf__backend *backend);

/* On the loop's thread: has the engine free it. */
void shuf__result_release(struct shuf__result *result, struct shuf__engine *engine);

/* Brings budget->limit up to date and returns what is left of it. On the engine's
 * thread. */
shuf_status shuf__budget_left(struct shuf__budget *budget, struct shuf__backend *backend,
                              uint64_t *left, struct shuf__error *error);

#endif
