/* SPDX-License-Identifier: MIT
 *
 * See engines.h.
 */
#include "engines.h"

#include "host/host.h"
#include "host/kept_file.h"

#include <stdio.h>
#include <string.h>

/* ---- The engines ---- */

static bool is_of_host(const struct shuf__engine *engine)
{
    return shuf__memory_is_host(shuf__engine_backend(engine)->ops->own);
}

struct shuf__engine *shuf__engines_host(struct shuf__engine *engine)
{
    for (struct shuf__engine *e = engine; e; e = shuf__engine_next(e))
        if (is_of_host(e))
            return e;
    return engine;
}

struct shuf__engine *shuf__engines_small(struct shuf__engine *engine)
{
    struct shuf__engine *next = shuf__engine_next(engine);
    return next && shuf__engine_backend(next) == shuf__engine_backend(engine) ? next : engine;
}

bool shuf__engines_are_idle(const struct shuf__engine *engine)
{
    bool idle = true;
    for (; engine; engine = shuf__engine_next(engine))
        idle &= shuf__engine_is_idle(engine);
    return idle;
}

uint64_t shuf__engines_queued(const struct shuf__engine *engine)
{
    uint64_t queued = 0;
    for (; engine; engine = shuf__engine_next(engine))
        queued += shuf__engine_queued(engine);
    return queued;
}

bool shuf__engines_progressed(struct shuf__engine *engine, uint64_t open_ns)
{
    bool progressed = shuf__engine_progressed(engine, open_ns);
    while ((engine = shuf__engine_next(engine)) != NULL)
        progressed &= shuf__engine_progressed(engine, open_ns) || shuf__engine_is_idle(engine);
    return progressed;
}

void shuf__engines_begin_again(struct shuf__engine *engine)
{
    for (; engine; engine = shuf__engine_next(engine))
        shuf__engine_begin_again(engine);
}

/* ---- Start and stop ---- */

static shuf_status start_beside(struct shuf__engine *engine, uv_loop_t *loop,
                                const struct shuf__engine_options *options, bool with_host,
                                struct shuf__error *error)
{
    struct shuf__engine_options of_host = *options;
    of_host.backend = "cpu";
    if (shuf__engine_backend(engine)->ops->small > 0 &&
        shuf__engine_start_beside(engine, true, loop, options, error))
        return error->status;
    return with_host && !is_of_host(engine)
               ? shuf__engine_start_beside(engine, false, loop, &of_host, error)
               : SHUF_OK;
}

shuf_status shuf__engines_start(struct shuf__engine **engine, uv_loop_t *loop,
                                const struct shuf__engine_options *options, bool with_host,
                                struct shuf__error *error)
{
    struct shuf__error failed;
    if (shuf__engine_start(engine, loop, options, error))
        return error->status;
    if (start_beside(*engine, loop, options, with_host, &failed) == SHUF_OK)
        return SHUF_OK;
    *error = failed;
    shuf__engines_stop(*engine);
    return error->status;
}

/* The last one first: it may use the backend of the first. */
void shuf__engines_stop(struct shuf__engine *engine)
{
    if (shuf__engine_next(engine))
        shuf__engines_stop(shuf__engine_next(engine));
    shuf__engine_stop(engine);
}

/* ---- The model: nanoseconds, see docs/operation.md ---- */

/* The time of a computation before its first value. The loop's thread does a quick computation by
 * the host at once. */
static const double host_job_ns = 30000, device_job_ns = 70000;

/* A byte by PCIe, with the copy by the host's processors from pinned memory to the result. */
static const double copied_byte_ns = 0.07;

/* An evaluation (backend.h) by one thread with AVX-512, and by the whole GPU. */
struct rate {
    double host_ns, device_ns;
};

static const struct rate primefold = {1.6, 0.0015}, compaction = {4, 0.0065}, stream = {2, 0.002};

/* The speed of other instruction sets. That of NEON is a guess. */
static const struct {
    const char *name;
    double speed;
} sets[] = {{"avx512", 1}, {"avx2", 0.5}, {"neon", 0.25}, {"scalar", 0.05}};

/* How much longer the host takes while processes wait for a processor all of the time. */
static const double waiting_cost = 2;

static struct rate rate_of(const struct shuf__request *request)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    if (!p)
        return stream;
    return shuf_algorithm_has_random_access(p->algorithm) ? primefold : compaction;
}

/* The jobs of the GPU come first, or take turns with this one. Each counts as long as this one. The
 * jobs of the host do not count, because the GPU may be needed for more than results. */
static double device_ns(const struct shuf__placement *placement, uint32_t uid,
                        const struct shuf__request *request, double evaluations, uint64_t copied)
{
    const uint64_t jobs = shuf__engine_ahead(shuf__placement_device(placement, request), uid);
    const double ns =
        device_job_ns + evaluations * rate_of(request).device_ns + (double)copied * copied_byte_ns;
    return ns * (double)(1 + jobs);
}

static double host_ns(const struct shuf__placement *placement, const struct shuf__request *request,
                      double evaluations)
{
    const struct shuf__backend *host = shuf__engine_backend(shuf__engines_host(placement->engine));
    const bool quick = shuf__backend_is_quick(host->ops, request);
    const double ns = evaluations * rate_of(request).host_ns;
    return (quick ? ns : host_job_ns + ns / placement->threads) *
           (1 + waiting_cost * placement->waiting);
}

/* ---- The load of the processors ---- */

/* Reads the line "some avg10=12.34 ..." at most once a second. The file is absent from kernels
 * without PSI: then nothing waits. */
static void read_pressure(struct shuf__placement *placement)
{
    enum { SECOND_NS = 1000000000 };
    char text[256];
    double percent;
    const uint64_t now = uv_hrtime();
    if (placement->read_ns > 0 && now - placement->read_ns < SECOND_NS)
        return;
    placement->read_ns = now;
    const bool known = shuf__kept_file_read(placement->pressure, text, sizeof text) &&
                       sscanf(text, "some avg10=%lf", &percent) == 1;
    placement->waiting = known ? percent / 100 : 0;
}

/* ---- The choice ---- */

void shuf__placement_init(struct shuf__placement *placement, struct shuf__engine *engine,
                          bool always_host, unsigned threads, const char *root)
{
    const struct shuf__backend *host = shuf__engine_backend(shuf__engines_host(engine));
    *placement = (struct shuf__placement){.engine = engine, .always_host = always_host};
    placement->threads = shuf__host_threads(threads);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(host->device_id, sets[i].name) == 0)
            placement->threads *= sets[i].speed;
    snprintf(placement->pressure, sizeof placement->pressure, "%s/proc/pressure/cpu", root);
}

struct shuf__engine *shuf__placement_device(const struct shuf__placement *placement,
                                            const struct shuf__request *request)
{
    struct shuf__engine *engine = placement->engine;
    return shuf__backend_is_small(shuf__engine_backend(engine)->ops, request)
               ? shuf__engines_small(engine)
               : engine;
}

/* A GPU has the host's processors move the records of a shuffle, and make plans, in host memory. So
 * these need no model. */
struct shuf__engine *shuf__placement_choose(struct shuf__placement *placement, uint32_t uid,
                                            const struct shuf__request *request, uint64_t copied)
{
    struct shuf__engine *host = shuf__engines_host(placement->engine);
    const bool values = request->kind == SHUF__PERMUTATION || request->kind == SHUF__STREAM;
    if (host == placement->engine)
        return shuf__placement_device(placement, request);
    if (placement->always_host || !values)
        return host;
    read_pressure(placement);
    const double evaluations = shuf__backend_evaluations(request);
    return host_ns(placement, request, evaluations) <=
                   device_ns(placement, uid, request, evaluations, copied)
               ? host
               : shuf__placement_device(placement, request);
}
