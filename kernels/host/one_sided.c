/* SPDX-License-Identifier: MIT
 *
 * See exchange.h. A part of the rank's places is sorted by the windows from which its records
 * come, by counting. The threads visit the places of the part twice: first to count, then to write.
 */
#include "host/exchange.h"

#include "host/cancelled.h"
#include "host/tile.h"

#include <omp.h>
#include <stdatomic.h>
#include <string.h>

enum {
    BATCH = SHUF__NEIGHBOURS,
    SHARE_LEAST = 16 * BATCH, /* with fewer places, a thread costs more than it saves */
};

/* The records of a rank before the exchange. */
struct owner {
    uint64_t first; /* position */
    uint64_t window;
};

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__computation *computation;
    const struct shuf__plan *plan;  /* of the computation */
    struct shuf__neighbours source; /* from a position of the output to one of the input */
    struct shuf__range out;         /* of the rank */
    struct shuf__windows windows;
    struct owner owners[SHUF__RANKS_ONE_SIDED];
    int threads;
    uint32_t *begins, *numbers, *indices; /* of the plan */
    uint64_t *counters;                   /* each thread has one for each window */
    atomic_bool cancelled;
};

/* The owner of a position. If empty ranks begin at the same position, the last one has it. */
static const struct owner *owner_of(const struct run *run, uint64_t position)
{
    const struct owner *owner = run->owners;
    uint64_t count = run->plan->world;
    while (count > 1) {
        const uint64_t half = count / 2;
        owner += owner[half].first <= position ? half : 0;
        count -= half;
    }
    return owner;
}

/* Counts the places of a part for each window, or writes each to the next index of its window. */
static void take_places(struct run *run, struct shuf__range part, int thread, bool writes)
{
    const struct shuf__range share =
        shuf__equal_part(part.count, (uint64_t)run->threads, (uint64_t)thread);
    uint64_t *next = run->counters + (uint64_t)thread * run->windows.count, values[BATCH];
    for (uint64_t i = 0; i < share.count && !shuf__is_cancelled(run->computation, &run->cancelled);
         i += BATCH) {
        const size_t count = share.count - i < BATCH ? share.count - i : BATCH;
        const uint64_t place = part.first + share.first + i;
        shuf__neighbours_evaluate(&run->source, run->out.first + place, count, values);
        for (size_t k = 0; k < count; k++) {
            const struct owner *owner = owner_of(run, values[k]);
            const uint64_t number = values[k] - owner->first;
            const uint64_t index = next[owner->window + (number >> run->windows.bits)]++;
            if (!writes)
                continue;
            run->numbers[part.first + index] = (uint32_t)number;
            run->indices[place + k] = (uint32_t)index;
        }
    }
}

/* Turns the counts of each thread into the index of its first place in each window. */
static void accumulate(const struct run *run, uint32_t *begins)
{
    const uint64_t windows = run->windows.count;
    uint64_t sum = 0;
    for (uint64_t w = 0; w < windows; w++) {
        begins[w] = (uint32_t)sum;
        for (int t = 0; t < run->threads; t++) {
            uint64_t *counter = &run->counters[(uint64_t)t * windows + w];
            const uint64_t count = *counter;
            *counter = sum;
            sum += count;
        }
    }
    begins[windows] = (uint32_t)sum;
}

static void make_part(struct run *run, uint64_t index)
{
    const uint64_t first = index * run->plan->part, rest = run->out.count - first;
    const struct shuf__range part = {first, rest < run->plan->part ? rest : run->plan->part};
    memset(run->counters, 0, (size_t)run->threads * run->windows.count * sizeof *run->counters);
#pragma omp parallel num_threads(run->threads)
    {
        const int thread = omp_get_thread_num();
#pragma omp single
        run->threads = omp_get_num_threads(); /* OMP_THREAD_LIMIT may permit fewer */
        take_places(run, part, thread, false);
#pragma omp barrier
#pragma omp single
        accumulate(run, run->begins + index * (run->windows.count + 1));
        take_places(run, part, thread, true);
    }
}

static int threads_for(int threads, const struct shuf__plan *plan)
{
    const uint64_t places = shuf__plan_part(plan, plan->rank, true).count;
    const uint64_t most = (places < plan->part ? places : plan->part) / SHARE_LEAST + 1;
    return most < (uint64_t)threads ? (int)most : threads;
}

static void find_owners(struct run *run)
{
    uint64_t window = 0;
    for (uint64_t r = 0; r < run->plan->world; r++) {
        const struct shuf__range part = shuf__plan_part(run->plan, r, false);
        run->owners[r] = (struct owner){part.first, window};
        window += shuf__windows_of(part.count, run->windows.bits);
    }
}

uint64_t shuf__one_sided_bytes(int threads, const struct shuf__plan *plan)
{
    return (uint64_t)threads_for(threads, plan) * shuf__plan_windows(plan).count * sizeof(uint64_t);
}

bool shuf__host_one_sided(const struct shuf__simd_ops *simd, int threads,
                          const struct shuf__computation *computation, void *out)
{
    const struct shuf__plan *plan = &computation->request.plan;
    const uint64_t parts = shuf__plan_parts(plan);
    struct run run = {.computation = computation,
                      .plan = plan,
                      .source = shuf__neighbours_make(simd, &plan->permutation, plan->inverse),
                      .out = shuf__plan_part(plan, plan->rank, true),
                      .windows = shuf__plan_windows(plan),
                      .threads = threads_for(threads, plan),
                      .begins = out,
                      .counters = computation->workspace->memory};
    run.numbers = run.begins + parts * (run.windows.count + 1);
    run.indices = run.numbers + run.out.count;
    find_owners(&run);
    atomic_init(&run.cancelled, false);
    for (uint64_t i = 0; i < parts && !atomic_load(&run.cancelled); i++)
        make_part(&run, i);
    return !atomic_load(&run.cancelled);
}
