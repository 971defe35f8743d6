/* SPDX-License-Identifier: MIT
 *
 * See draw.h. A superblock that lies in the job as a whole is written where it
 * belongs; of the first and the last, part of a copy.
 */
#include "draw.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { TURN = 16 }; /* superblocks that a thread takes at a time */

struct work {
    const struct shuf__job *job;
    shuf__draw *draw;
    union shuf__source source;
    char *out;
    uint64_t super, end; /* superblocks of the job: from, to */
    atomic_uint_fast64_t next;
    atomic_bool cancelled;
};

static void draw_part(const struct work *work, uint64_t super, uint64_t from, uint64_t to)
{
    const struct shuf__job *job = work->job;
    uint64_t whole[SHUF__SUPER];
    work->draw(&work->source, super, whole);
    memcpy(work->out + (from - job->offset) * job->width,
           (const char *)whole + from % SHUF__SUPER * job->width, (to - from) * job->width);
}

static void draw_super(const struct work *work, uint64_t super)
{
    const struct shuf__job *job = work->job;
    const uint64_t from = super * SHUF__SUPER, to = from + SHUF__SUPER;
    const uint64_t end = job->offset + job->count;
    if (from >= job->offset && to <= end)
        work->draw(&work->source, super, work->out + (from - job->offset) * job->width);
    else
        draw_part(work, super, from < job->offset ? job->offset : from, to < end ? to : end);
}

static void join(struct work *work)
{
    const struct shuf__job *job = work->job;
    for (;;) {
        uint64_t super = atomic_fetch_add(&work->next, TURN);
        if (job->cancelled && job->cancelled(job->cancel_context))
            atomic_store(&work->cancelled, true);
        if (super >= work->end || atomic_load(&work->cancelled))
            return;
        for (int i = 0; i < TURN && super < work->end; i++, super++)
            draw_super(work, super);
    }
}

static void make_source(const struct shuf__job *job, union shuf__source *source)
{
    if (job->distribution == SHUF_DISTRIBUTION_GAUSS)
        source->gauss = shuf_gauss_make(job->seed, job->epoch, job->mean, job->std);
    else if (job->distribution == SHUF_DISTRIBUTION_BOX_MULLER)
        source->box_muller = shuf_box_muller_make(job->seed, job->epoch, job->mean, job->std);
    else
        source->uniform = shuf_uniform_make(job->seed, job->epoch);
}

bool shuf__cpu_draw(const struct shuf__lanes *lanes, int threads, const struct shuf__job *job,
                    void *out)
{
    struct work work = {.job = job, .out = out};
    if (job->count == 0)
        return true;
    work.draw = lanes->stream(job->distribution, job->dtype);
    assert(work.draw && job->rows == 1);
    make_source(job, &work.source);
    work.super = job->offset / SHUF__SUPER;
    work.end = (job->offset + job->count - 1) / SHUF__SUPER + 1;
    atomic_init(&work.next, work.super);
    atomic_init(&work.cancelled, false);
    if (threads == 1 || work.end - work.super <= TURN) {
        join(&work);
    } else {
#pragma omp parallel num_threads(threads)
        join(&work);
    }
    return !atomic_load(&work.cancelled);
}
