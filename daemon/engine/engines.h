/* SPDX-License-Identifier: MIT
 *
 * The engines of a daemon, with queues, turns and lanes of their own. `engine` is the one of the
 * configured backend. If this is a GPU, others are beside it:
 *
 * - One for small jobs (ops->small) of the GPU. The GPU begins their kernels before it goes on with
 *   those of large jobs. Small jobs run one at a time, and each takes longer to begin than to
 *   compute. So they leave most of the GPU's time to the large ones.
 * - One whose backend is the host's processors. Its jobs never wait for the GPU.
 *
 * placement.h chooses among them. The functions are for the loop's thread.
 */
#ifndef SHUFD_ENGINES_H
#define SHUFD_ENGINES_H

#include "engine.h"

/* As shuf__engine_start(), with the engines beside it: that of the host only if `with_host`. */
shuf_status shuf__engines_start(struct shuf__engine **engine, uv_loop_t *loop,
                                const struct shuf__engine_options *options, bool with_host,
                                struct shuf__error *error);

/* Stops all. They must be idle. */
void shuf__engines_stop(struct shuf__engine *engine);

/* The engine of the host's processors, or else `engine`, which may then be that of a device. */
struct shuf__engine *shuf__engines_host(struct shuf__engine *engine);

/* The engine of small jobs, or else `engine`. */
struct shuf__engine *shuf__engines_small(struct shuf__engine *engine);

/* As the functions of engine.h, for all engines. They have progressed if the first one has, and no
 * other has jobs but none that has worked. */
bool shuf__engines_are_idle(const struct shuf__engine *engine);
uint64_t shuf__engines_queued(const struct shuf__engine *engine);
bool shuf__engines_progressed(struct shuf__engine *engine, uint64_t open_ns);
void shuf__engines_begin_again(struct shuf__engine *engine);

#endif
