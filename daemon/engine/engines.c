/* SPDX-License-Identifier: MIT
 *
 * See engines.h.
 */
#include "engines.h"

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

/* ---- start and stop ---- */

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
