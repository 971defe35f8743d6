/* SPDX-License-Identifier: MIT
 *
 * Chooses the engine of a result. Who computes a result in host memory, a copy or a summary, the
 * GPU or the host? The values are the same bits, so only the time counts. docs/operation.md has the
 * table of the model.
 */
#ifndef SHUFD_PLACEMENT_H
#define SHUFD_PLACEMENT_H

#include "engines.h"

#include <limits.h>

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

/* The engine that gives the result sooner. `copied`: the bytes that the GPU would copy to the host;
 * 0 for a summary. Without an engine of the host, it is that of the backend. */
struct shuf__engine *shuf__placement_choose(struct shuf__placement *placement,
                                            const struct shuf__request *request, uint64_t copied);

#endif
