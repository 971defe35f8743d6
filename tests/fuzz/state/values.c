/* SPDX-License-Identifier: MIT
 *
 * See values.h.
 */
#include "values.h"

#include "fuzz.h"
#include "shuf/primefold.h"
#include "shuf/uniform.h"

enum { CHECKED = 29 }; /* values of a row, about */

uint64_t values_place(const struct values_order *order, uint64_t i)
{
    shuf_primefold f = shuf_primefold_make_keyed(order->n, order->key, order->epoch);
    if (!order->inverse)
        return shuf_primefold_forward(&f, i);
    shuf_primefold_make_inverse(&f);
    return shuf_primefold_inverse(&f, i);
}

static uint64_t uniform_at(const struct values *v, uint64_t i)
{
    const shuf_stream s = shuf_uniform_make_keyed(v->order.key, v->stream);
    return v->width == 4 ? shuf_uniform_u32(&s, v->offset + i)
                         : shuf_uniform_u64(&s, v->offset + i);
}

uint64_t values_at(const struct values *v, uint64_t i)
{
    if (v->kind == VALUES_UNIFORM)
        return uniform_at(v, i);
    if (v->shuffled.n)
        i = values_place(&v->shuffled, i);
    struct values_order row = v->order;
    row.epoch += i / v->count;
    return values_place(&row, (v->offset + i % v->count * v->stride) % row.n);
}

static uint64_t read_value(const void *memory, unsigned width, uint64_t i)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)memory + i * width, width);
    return value;
}

/* ---- Plans ---- */

static uint64_t sum(const uint64_t *sizes, uint64_t count)
{
    uint64_t total = 0;
    for (uint64_t r = 0; r < count; r++)
        total += sizes[r];
    return total;
}

/* The rank that has record number `at` of all records. */
static uint64_t rank_of(const uint64_t sizes[VALUES_RANKS], uint64_t at)
{
    uint64_t rank = 0;
    for (; at >= sizes[rank]; rank++)
        at -= sizes[rank];
    return rank;
}

/* One direction of a plan. The lists are in memory: how many records go to, or come from, each
 * rank, and the places of these records on this rank. */
struct direction {
    const uint64_t *here, *there; /* sizes of the ranks, on this side and on the other side */
    uint64_t counts, places;      /* where the lists begin */
    bool inverse;                 /* of the permutation from a place here to one there */
};

static void check_direction(const struct values *v, const void *memory, const struct direction *d)
{
    struct values_order order = v->order;
    const uint64_t first = sum(d->here, v->rank), count = d->here[v->rank];
    uint64_t counts[VALUES_RANKS];
    order.inverse = d->inverse;
    for (uint64_t r = 0; r < v->world; r++)
        counts[r] = read_value(memory, v->width, d->counts + r);
    fuzz_require(sum(counts, v->world) == count);
    for (uint64_t i = 0; i < count; i += 1 + count / CHECKED) {
        const uint64_t place = read_value(memory, v->width, d->places + i);
        fuzz_require(place < count);
        fuzz_require(rank_of(d->there, values_place(&order, first + place)) == rank_of(counts, i));
    }
}

/* Record q of the output is record p(q) of the input. */
static void check_plan(const struct values *v, const void *memory)
{
    const uint64_t lists = 2 * v->world;
    const struct direction sends = {v->input, v->output, 0, lists, !v->order.inverse};
    const struct direction receives = {v->output, v->input, v->world, lists + v->input[v->rank],
                                       v->order.inverse};
    fuzz_require(v->count == lists + v->input[v->rank] + v->output[v->rank]);
    check_direction(v, memory, &sends);
    check_direction(v, memory, &receives);
}

/* The number of the first window of a rank: each rank with records has one window. */
static uint64_t window_of(const struct values *v, uint64_t rank)
{
    uint64_t window = 0;
    for (uint64_t r = 0; r < rank; r++)
        window += v->input[r] > 0;
    return window;
}

static void check_one_sided(const struct values *v, const void *memory)
{
    const uint64_t first = sum(v->output, v->rank), count = v->output[v->rank];
    const uint64_t records = window_of(v, v->world) + 1, indices = records + count;
    fuzz_require(v->count == indices + count);
    fuzz_require(read_value(memory, v->width, records - 1) == count);
    for (uint64_t i = 0; i < count; i += 1 + count / CHECKED) {
        const uint64_t source = values_place(&v->order, first + i);
        const uint64_t rank = rank_of(v->input, source), window = window_of(v, rank);
        const uint64_t index = read_value(memory, v->width, indices + i);
        fuzz_require(index >= read_value(memory, v->width, window));
        fuzz_require(index < read_value(memory, v->width, window + 1));
        fuzz_require(read_value(memory, v->width, records + index) == source - sum(v->input, rank));
    }
}

/* ---- All kinds ---- */

void values_check(const struct values *v, const void *memory)
{
    const uint64_t total = v->rows * v->count;
    if (!memory || v->kind == VALUES_UNKNOWN)
        return;
    if (v->kind == VALUES_PLAN) {
        check_plan(v, memory);
        return;
    }
    if (v->kind == VALUES_ONE_SIDED) {
        check_one_sided(v, memory);
        return;
    }
    for (uint64_t i = 0; i < total; i += 1 + total / CHECKED)
        fuzz_require(read_value(memory, v->width, i) == values_at(v, i));
}

void values_check_ends(const struct values *v, const uint64_t *first, size_t n_first,
                       const uint64_t *last, size_t n_last)
{
    const uint64_t total = v->rows * v->count;
    if (v->kind != VALUES_PERMUTATION && v->kind != VALUES_UNIFORM)
        return;
    fuzz_require(n_first + n_last <= total);
    for (uint64_t i = 0; i < n_first; i++)
        fuzz_require(first[i] == values_at(v, i));
    for (uint64_t i = 0; i < n_last; i++)
        fuzz_require(last[i] == values_at(v, total - n_last + i));
}
