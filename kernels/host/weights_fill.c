/* SPDX-License-Identifier: MIT
 *
 * Ranges of weighted draws by several threads. See weights.h.
 *
 * A look-up in a large table waits for memory, so each column is fetched some draws ahead.
 */
#include "host/cancelled.h"
#include "host/weights.h"

#include <omp.h>

enum {
    PART = 1 << 16, /* draws between two questions to the caller */
    FEW = 64,       /* words that take less time one by one */
    AHEAD = 32,     /* draws between the request for a column and its use */
};

/* What the threads of a call share. */
struct run {
    const struct shuf__weight_table *table;
    const struct shuf__computation *computation;
    shuf__draw *draw;
    union shuf__source source;
    uint64_t first, count, stride;
    uint64_t *out;
    atomic_uint_fast64_t next; /* part to take */
    atomic_bool cancelled;
};

static void request(const struct shuf__weight_table *table, uint64_t word)
{
    __builtin_prefetch(table->column + shuf_weights_column_of(word, table->bits));
}

static void look_up(const struct shuf__weight_table *table, const uint64_t *word, size_t count,
                    uint64_t *out)
{
    const size_t ahead = count < AHEAD ? count : AHEAD;
    for (size_t i = 0; i < ahead; i++)
        request(table, word[i]);
    for (size_t i = 0; i < count; i++) {
        if (i + ahead < count)
            request(table, word[i + ahead]);
        out[i] = shuf_weights_draw_of(table->column, table->bits, word[i]);
    }
}

/* Draws that have neighbouring words, made 1024 at a time. */
static void draw_neighbours(const struct run *run, uint64_t first, uint64_t count, uint64_t *out)
{
    uint64_t word[SHUF__SUPER];
    for (uint64_t done = 0, part; done < count; done += part) {
        const uint64_t at = (first + done) % SHUF__SUPER;
        part = SHUF__SUPER - at < count - done ? SHUF__SUPER - at : count - done;
        run->draw(&run->source, (first + done) / SHUF__SUPER, word);
        look_up(run->table, word + at, part, out + done);
    }
}

static void draw_single(const struct run *run, uint64_t first, uint64_t count, uint64_t *out)
{
    uint64_t word[SHUF__SUPER];
    for (uint64_t done = 0, part; done < count; done += part) {
        part = count - done < SHUF__SUPER ? count - done : SHUF__SUPER;
        for (uint64_t i = 0; i < part; i++)
            word[i] = shuf_uniform_u64(&run->source.uniform, first + (done + i) * run->stride);
        look_up(run->table, word, part, out + done);
    }
}

static void draw_parts(struct run *run)
{
    while (!shuf__is_cancelled(run->computation, &run->cancelled)) {
        const uint64_t done = atomic_fetch_add(&run->next, 1) * PART, left = run->count - done;
        if (done >= run->count)
            return;
        const bool are_neighbours = run->stride == 1 && left >= FEW;
        (are_neighbours ? draw_neighbours : draw_single)(
            run, run->first + done * run->stride, left < PART ? left : PART, run->out + done);
    }
}

shuf_status shuf__weighted_fill(const struct shuf__weighted *draws, int threads,
                                const struct shuf__computation *computation, uint64_t first,
                                uint64_t count, uint64_t stride, uint64_t *out,
                                struct shuf__error *error)
{
    const uint64_t parts = count ? (count - 1) / PART + 1 : 0;
    struct run run = {.table = draws->table,
                      .computation = computation,
                      .draw = draws->table->simd->stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U64),
                      .first = first,
                      .count = count,
                      .stride = stride,
                      .out = out};
    run.source.uniform =
        shuf_stream_make(shuf_key_of_seed(draws->seed), draws->epoch, SHUF_STREAM_WEIGHTED);
    if (parts < (uint64_t)threads)
        threads = parts ? (int)parts : 1;
    if (threads == 1)
        draw_parts(&run);
    else {
#pragma omp parallel num_threads(threads)
        draw_parts(&run);
    }
    return atomic_load(&run.cancelled) ? shuf__fail_cancelled(error) : SHUF_OK;
}
