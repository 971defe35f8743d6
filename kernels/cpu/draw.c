/* SPDX-License-Identifier: MIT
 *
 * See draw.h. A superblock that is wholly in the computation is written to its place. The first and
 * the last may be only partly in it: they are made in a buffer, and the requested part is copied.
 */
#include "draw.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { BATCH = 16 }; /* superblocks that a thread takes at a time */

struct work {
    const struct shuf__computation *computation;
    const struct shuf__stream *stream; /* of the computation */
    unsigned width;                    /* bytes of a value */
    shuf__draw *draw;
    union shuf__source source;
    char *out;
    uint64_t super, end; /* the first superblock of the computation, and the end */
    atomic_uint_fast64_t next;
    atomic_bool cancelled;
};

static void draw_part(const struct work *work, uint64_t super, uint64_t from, uint64_t to)
{
    const struct shuf__stream *s = work->stream;
    uint64_t whole[SHUF__SUPER];
    work->draw(&work->source, super, whole);
    memcpy(work->out + (from - s->offset) * work->width,
           (const char *)whole + from % SHUF__SUPER * work->width, (to - from) * work->width);
}

static void draw_super(const struct work *work, uint64_t super)
{
    const struct shuf__stream *s = work->stream;
    const uint64_t from = super * SHUF__SUPER, to = from + SHUF__SUPER;
    const uint64_t end = s->offset + s->count;
    if (from >= s->offset && to <= end)
        work->draw(&work->source, super, work->out + (from - s->offset) * work->width);
    else
        draw_part(work, super, from < s->offset ? s->offset : from, to < end ? to : end);
}

static void join(struct work *work)
{
    const struct shuf__computation *computation = work->computation;
    for (;;) {
        uint64_t super = atomic_fetch_add(&work->next, BATCH);
        if (computation->cancelled && computation->cancelled(computation->cancel_context))
            atomic_store(&work->cancelled, true);
        if (super >= work->end || atomic_load(&work->cancelled))
            return;
        for (int i = 0; i < BATCH && super < work->end; i++, super++)
            draw_super(work, super);
    }
}

static void make_source(const struct shuf__stream *s, union shuf__source *source)
{
    const shuf_key key = shuf__stream_key(s);
    if (s->distribution == SHUF_DISTRIBUTION_GAUSS)
        source->gauss = shuf_gauss_make_keyed(key, s->stream, s->mean, s->std);
    else if (s->distribution == SHUF_DISTRIBUTION_BOX_MULLER)
        source->box_muller = shuf_box_muller_make_keyed(key, s->stream, s->mean, s->std);
    else
        source->uniform = shuf_uniform_make_keyed(key, s->stream);
}

bool shuf__cpu_draw(const struct shuf__simd_ops *simd, int threads,
                    const struct shuf__computation *computation, void *out)
{
    const shuf_dtype dtype = computation->request.dtype;
    const struct shuf__stream *s = &computation->request.stream;
    struct work work = {.computation = computation,
                        .stream = s,
                        .width = shuf__dtype_bytes((int)dtype),
                        .out = out};
    if (s->count == 0)
        return true;
    work.draw = simd->stream(s->distribution, dtype);
    assert(work.draw);
    make_source(s, &work.source);
    work.super = s->offset / SHUF__SUPER;
    work.end = (s->offset + s->count - 1) / SHUF__SUPER + 1;
    atomic_init(&work.next, work.super);
    atomic_init(&work.cancelled, false);
    if (threads == 1 || work.end - work.super <= BATCH) {
        join(&work);
    } else {
#pragma omp parallel num_threads(threads)
        join(&work);
    }
    return !atomic_load(&work.cancelled);
}
