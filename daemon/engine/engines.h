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
 * The placement of a request chooses among them. The functions are for the loop's thread.
 */
#ifndef SHUFD_ENGINES_H
#define SHUFD_ENGINES_H

#include "engine.h"

#include <limits.h>

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

/* ---- The placement of a request ---- */

/* Who computes a result in host memory, a copy or a summary, the GPU or the host? The values are
 * the same bits, so only the time counts. docs/operation.md has the table of the model. */
struct shuf__placement {
    struct shuf__engine *engine; /* of the configured backend */
    bool always_host;            /* host_results = host */
    double threads;              /* of the host, as if all had AVX-512 */
    char pressure[PATH_MAX];     /* /proc/pressure/cpu */
    uint64_t read_ns;            /* time of the last read of that file */
    double waiting; /* the part of the last seconds in which a process waited for a processor */
};

/* `threads`: of the configuration. `root` replaces / for /proc. */
void shuf__placement_init(struct shuf__placement *placement, struct shuf__engine *engine,
                          bool always_host, unsigned threads, const char *root);

/* The engine for a result in the backend's own memory: that for small jobs, or the other. */
struct shuf__engine *shuf__placement_device(const struct shuf__placement *placement,
                                            const struct shuf__request *request);

/* The engine that gives the user's result sooner. `copied`: the bytes that the GPU would copy to
 * the host; 0 for a summary. Without an engine of the host, it is that of the backend. */
struct shuf__engine *shuf__placement_choose(struct shuf__placement *placement, uint32_t uid,
                                            const struct shuf__request *request, uint64_t copied);

#endif
