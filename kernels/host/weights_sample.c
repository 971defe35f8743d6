/* SPDX-License-Identifier: MIT
 *
 * Weighted samples without replacement. docs/spec.md, "Weighted samples".
 *
 * One pass makes all keys and keeps those that may be among the first ones, at most twice as many
 * as the sample has. When there is no room left, it selects the first ones in linear time. All
 * other keys must then be below the last of these. At the end the sample is sorted.
 */
#include "host/weights.h"

#include "host/cancelled.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS = SHUF__SUPER / 2, /* of the words that are made together */
    LEAST_ROOM = 1024,
    FEW = 16, /* items that are sorted by insertion */
};

/* The bits of a key, which is positive, have the order of the keys. */
struct item {
    uint64_t key, index;
};

static bool precedes(const struct item *a, const struct item *b)
{
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

static void exchange(struct item *a, struct item *b)
{
    const struct item kept = *a;
    *a = *b;
    *b = kept;
}

/* ---- Order ---- */

/* Moves the median of three items to the front. */
static void choose_pivot(struct item *item, size_t count)
{
    struct item *middle = item + count / 2, *last = item + count - 1;
    if (precedes(last, middle))
        exchange(last, middle);
    if (precedes(item, middle))
        exchange(item, middle);
    else if (precedes(last, item))
        exchange(item, last);
}

/* Divides at least 2 items, all different, into those before item number r and those after it, and
 * returns r. */
static size_t divide(struct item *item, size_t count)
{
    size_t low = 0, high = count;
    choose_pivot(item, count);
    for (;;) {
        do
            low++;
        while (low < count && precedes(&item[low], item));
        do
            high--;
        while (precedes(item, &item[high]));
        if (low >= high)
            break;
        exchange(&item[low], &item[high]);
    }
    exchange(item, &item[high]);
    return high;
}

/* Moves the first `wanted` items, at least 1, to the front. The last of them is then number
 * wanted - 1. */
static void select_first(struct item *item, size_t count, size_t wanted)
{
    while (count > 1) {
        const size_t at = divide(item, count);
        if (at == wanted - 1)
            return;
        if (at < wanted - 1) {
            item += at + 1;
            count -= at + 1;
            wanted -= at + 1;
        } else
            count = at;
    }
}

static void insert_each(struct item *item, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && precedes(&item[j], &item[j - 1]); j--)
            exchange(&item[j], &item[j - 1]);
}

static void sort(struct item *item, size_t count)
{
    while (count > FEW) {
        const size_t at = divide(item, count), rest = count - at - 1;
        if (at < rest) {
            sort(item, at);
            item += at + 1;
            count = rest;
        } else {
            sort(item + at + 1, rest);
            count = at;
        }
    }
    insert_each(item, count);
}

/* ---- Keys ---- */

struct selection {
    const struct shuf__weight_array *weights;
    const struct shuf__simd_ops *simd;
    union shuf__source source;
    int top; /* all weights are below 2^top */
    struct item *item;
    size_t count, room, sample;
    uint64_t limit; /* only keys below it may be in the sample */
};

static void keep(struct selection *s, uint64_t key, uint64_t index)
{
    s->item[s->count++] = (struct item){key, index};
    if (s->count < s->room)
        return;
    select_first(s->item, s->count, s->sample);
    s->count = s->sample;
    s->limit = s->item[s->sample - 1].key;
}

static void add_keys(struct selection *s, uint64_t first, uint64_t count)
{
    uint64_t word[SHUF__SUPER], key;
    double number[KEYS];
    s->simd->stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U64)(&s->source, first / KEYS, word);
    s->simd->exponential_keys(word, number, count);
    for (uint64_t i = 0; i < count; i++) {
        const shuf_weight weight = shuf__weight(s->weights, first + i);
        if (weight.number == 0)
            continue;
        const double quotient = number[i] / shuf_weight_scaled(weight, s->top);
        memcpy(&key, &quotient, sizeof key);
        if (key < s->limit)
            keep(s, key, first + i);
    }
}

static bool add_all(struct selection *s, const struct shuf__computation *computation)
{
    for (uint64_t first = 0; first < s->weights->count; first += KEYS) {
        const uint64_t left = s->weights->count - first;
        if (first % (KEYS * 1024) == 0 && computation->cancelled &&
            computation->cancelled(computation->cancel_context))
            return false;
        add_keys(s, first, left < KEYS ? left : KEYS);
    }
    return true;
}

shuf_status shuf__sample_too_large(uint64_t sample, uint64_t most, struct shuf__error *error)
{
    return shuf__fail(error, SHUF_INVALID,
                      "sample of %" PRIu64 ": expected at most %" PRIu64
                      ", the number of weights above 0",
                      sample, most);
}

static shuf_status finish(struct selection *s, uint64_t *out, struct shuf__error *error)
{
    if (s->count < s->sample)
        return shuf__sample_too_large(s->sample, s->count, error);
    select_first(s->item, s->count, s->sample);
    sort(s->item, s->sample);
    for (size_t i = 0; i < s->sample; i++)
        out[i] = s->item[i].index;
    return SHUF_OK;
}

shuf_status shuf__weighted_sample(const struct shuf__weight_array *weights, uint64_t seed,
                                  uint64_t epoch, const struct shuf__computation *computation,
                                  uint64_t sample, uint64_t *out, struct shuf__error *error)
{
    struct selection s = {.weights = weights, .sample = sample, .limit = UINT64_MAX};
    const uint64_t room = sample < LEAST_ROOM ? LEAST_ROOM : 2 * sample;
    if (shuf__weights_check(weights, computation, &s.top, error) || sample == 0 ||
        shuf__simd_choose(NULL, &s.simd, error))
        return error->status;
    if (sample > weights->count)
        return shuf__fail(error, SHUF_INVALID,
                          "sample of %" PRIu64 ": expected at most %" PRIu64 ", the weights",
                          sample, weights->count);
    s.source.uniform = shuf_stream_make(shuf_key_of_seed(seed), epoch, SHUF_STREAM_SAMPLE);
    s.room = room <= weights->count ? room : weights->count + 1;
    s.item = malloc(s.room * sizeof *s.item);
    if (!s.item)
        return shuf__fail(error, SHUF_NO_MEMORY, "sample of %" PRIu64 ": no memory", sample);
    if (add_all(&s, computation))
        finish(&s, out, error);
    else
        shuf__fail_cancelled(error);
    free(s.item);
    return error->status;
}
