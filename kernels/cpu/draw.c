/* SPDX-License-Identifier: MIT
 *
 * See draw.h. If all values of a superblock are requested, they are written straight to their
 * place. The first and the last superblock may have other values too. These two are computed in a
 * buffer, and the requested values are copied.
 */
#include "draw.h"

#include "host/cancelled.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { BATCH = 16 }; /* superblocks that a thread takes at a time */

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__computation *computation;
    const struct shuf__stream *stream; /* of the computation */
    unsigned width;                    /* bytes of a value */
    shuf__draw *draw;
    union shuf__source source;
    char *out;
    uint64_t super, end; /* superblocks: the first of the computation, and the one after the last */
    atomic_uint_fast64_t next;
    atomic_bool cancelled;
};

static void draw_part(const struct run *run, uint64_t super, uint64_t from, uint64_t to)
{
    const struct shuf__stream *s = run->stream;
    uint64_t whole[SHUF__SUPER];
    run->draw(&run->source, super, whole);
    memcpy(run->out + (from - s->offset) * run->width,
           (const char *)whole + from % SHUF__SUPER * run->width, (to - from) * run->width);
}

static void draw_super(const struct run *run, uint64_t super)
{
    const struct shuf__stream *s = run->stream;
    const uint64_t from = super * SHUF__SUPER, to = from + SHUF__SUPER;
    const uint64_t end = s->offset + s->count;
    if (from >= s->offset && to <= end)
        run->draw(&run->source, super, run->out + (from - s->offset) * run->width);
    else
        draw_part(run, super, from < s->offset ? s->offset : from, to < end ? to : end);
}

static void run_thread(struct run *run)
{
    for (;;) {
        uint64_t super = atomic_fetch_add(&run->next, BATCH);
        if (shuf__is_cancelled(run->computation, &run->cancelled) || super >= run->end)
            return;
        for (int i = 0; i < BATCH && super < run->end; i++, super++)
            draw_super(run, super);
    }
}

static void make_source(const struct shuf__stream *s, union shuf__source *source)
{
    const shuf_key key = shuf__stream_key(s);
    switch (s->distribution) {
#define X(NAME, name, type, value) \
    case SHUF_DISTRIBUTION_##NAME: \
        source->name = value;      \
        break;
        SHUF__SOURCES(X)
#undef X
    default:
        assert(false);
    }
}

bool shuf__cpu_draw(const struct shuf__simd_ops *simd, int threads,
                    const struct shuf__computation *computation, void *out)
{
    const shuf_dtype dtype = computation->request.dtype;
    const struct shuf__stream *s = &computation->request.stream;
    struct run run = {.computation = computation,
                      .stream = s,
                      .width = shuf__dtype_bytes((int)dtype),
                      .out = out};
    if (s->count == 0)
        return true;
    run.draw = simd->stream(s->distribution, dtype);
    assert(run.draw);
    make_source(s, &run.source);
    run.super = s->offset / SHUF__SUPER;
    run.end = (s->offset + s->count - 1) / SHUF__SUPER + 1;
    atomic_init(&run.next, run.super);
    atomic_init(&run.cancelled, false);
    if (threads == 1 || run.end - run.super <= BATCH) {
        run_thread(&run);
    } else {
#pragma omp parallel num_threads(threads)
        run_thread(&run);
    }
    return !atomic_load(&run.cancelled);
}
