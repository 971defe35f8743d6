/* SPDX-License-Identifier: MIT
 *
 * PERMUTATION: values of a permutation. LOOK_UP: single values or positions of one.
 */
#include "algorithm.h"
#include "kind.h"
#include "shuf/windowed.h"

/* ---- PERMUTATION ---- */

#define U32_VALUES (UINT64_C(1) << 32)

static shuf_status take_slice(const struct shuf__view *slice, struct shuf__permutation *p,
                              struct shuf__error *error)
{
    if (slice->stride == 0)
        return shuf__fail(error, SHUF_INVALID, "stride 0: expected at least 1");
    if (slice->count == 0)
        return shuf__fail(error, SHUF_INVALID, "count 0: expected at least 1");
    if (slice->offset >= p->n)
        return shuf__fail(error, SHUF_INVALID,
                          "offset %" PRIu64 ": expected less than n = %" PRIu64, slice->offset,
                          p->n);
    const uint64_t most = (p->n - 1 - slice->offset) / slice->stride + 1;
    if (slice->count > most)
        return shuf__fail(error, SHUF_INVALID,
                          "count %" PRIu64 ": expected at most %" PRIu64 " from offset %" PRIu64
                          " with stride %" PRIu64 " in n = %" PRIu64,
                          slice->count, most, slice->offset, slice->stride, p->n);
    p->offset = slice->offset;
    p->count = slice->count;
    p->stride = slice->count == 1 ? 1 : slice->stride; /* with one value the stride has no effect; 1
                                                          makes equal slices equal requests */
    return SHUF_OK;
}

/* A shard has `length` values. Takes `count` of them, from value number `step` on. Nothing
 * overflows: step * world is at most n + world, and n and world are at most 2^62. */
static shuf_status take_steps(const struct shuf__view *shard, uint64_t length,
                              struct shuf__permutation *p, struct shuf__error *error)
{
    if (shard->step > length)
        return shuf__fail(error, SHUF_INVALID,
                          "step %" PRIu64 ": expected at most %" PRIu64
                          ", the length of a shard of n = %" PRIu64 " with world = %" PRIu64,
                          shard->step, length, p->n, shard->world);
    const uint64_t most = length - shard->step;
    if (shard->count > most)
        return shuf__fail(error, SHUF_INVALID,
                          "count %" PRIu64 ": expected at most %" PRIu64 " from step %" PRIu64
                          " of the %" PRIu64 " value%s of a shard",
                          shard->count, most, shard->step, length, shuf__plural(length));
    p->count = shard->count ? shard->count : most;
    p->offset = p->count ? (shard->rank + shard->step * shard->world) % p->n : 0;
    p->stride = shard->world;
    return SHUF_OK;
}

/* Does the same as torch's DistributedSampler. The sampler makes the number of indices a multiple
 * of `world`. It repeats the first indices at the end, or leaves out the last indices. Then each
 * rank takes every world-th index. */
static shuf_status take_shard(const struct shuf__view *shard, struct shuf__permutation *p,
                              struct shuf__error *error)
{
    if (shard->world == 0 || shard->world > SHUF__N_MAX)
        return shuf__fail(error, SHUF_INVALID, "world %" PRIu64 ": expected 1 to 2^62",
                          shard->world);
    if (shard->rank >= shard->world)
        return shuf__fail(error, SHUF_INVALID,
                          "rank %" PRIu64 ": expected less than world = %" PRIu64, shard->rank,
                          shard->world);
    const bool is_padded = p->n % shard->world != 0 && !shard->drop_last;
    return take_steps(shard, p->n / shard->world + is_padded, p, error);
}

static void take_all(struct shuf__permutation *p)
{
    p->offset = 0;
    p->count = p->n;
    p->stride = 1;
}

static shuf_status take_view(const struct shuf__view *view, struct shuf__permutation *p,
                             struct shuf__error *error)
{
    switch (view->kind) {
    case SHUF__VIEW_SLICE:
        return take_slice(view, p, error);
    case SHUF__VIEW_SHARD:
        return take_shard(view, p, error);
    default:
        take_all(p);
        return SHUF_OK;
    }
}

static shuf_status choose_dtype(struct shuf__request *request, struct shuf__error *error)
{
    char text[SHUF__DTYPE_TEXT];
    const uint64_t n = request->permutation.n;
    if (request->dtype == SHUF_AUTO)
        request->dtype = n <= U32_VALUES ? SHUF_U32 : SHUF_U64;
    if (!shuf__dtype_is_allowed((int)request->dtype, SHUF_DISTRIBUTION_NONE))
        return shuf__fail(error, SHUF_INVALID, "dtype %s: expected u32, u64 or i64",
                          shuf__dtype_label((int)request->dtype, text));
    if (request->dtype == SHUF_U32 && n > U32_VALUES)
        return shuf__fail(
            error, SHUF_INVALID,
            "dtype u32: too small for n = %" PRIu64 ", expected u64 or i64 above 2^32", n);
    return SHUF_OK;
}

shuf_status shuf__check_n(uint64_t n, struct shuf__error *error)
{
    if (n > 0 && n <= SHUF__N_MAX)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "n %" PRIu64 ": expected 1 to 2^62 (%" PRIu64 ")", n,
                      SHUF__N_MAX);
}

shuf_status shuf__check_windows(struct shuf__permutation *p, struct shuf__error *error)
{
    if (p->chunk == 0 && p->window == 0)
        return SHUF_OK;
    if (p->chunk == 0)
        return shuf__fail(
            error, SHUF_INVALID,
            "chunk 0: expected the records of a chunk, at least 1, with window %" PRIu64,
            p->window);
    if (p->window == 0)
        return shuf__fail(
            error, SHUF_INVALID,
            "window 0: expected the chunks of a window, at least 1, with chunk %" PRIu64, p->chunk);
    if (!shuf_algorithm_has_random_access(p->algorithm))
        return shuf__fail(error, SHUF_INVALID, "algorithm %s: expected primefold with a window",
                          shuf__algorithm_name(p->algorithm));
    if (shuf_windows_of(p->n, p->chunk, p->window).windows < 2)
        p->chunk = p->window = 0;
    return SHUF_OK;
}

shuf_status shuf__refuse_windows(const struct shuf__permutation *p, const char *what,
                                 struct shuf__error *error)
{
    if (p->chunk == 0 && p->window == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "%s %" PRIu64 ": expected 0 with %s",
                      p->chunk ? "chunk" : "window", p->chunk ? p->chunk : p->window, what);
}

static shuf_status check_size(const struct shuf__request *request, struct shuf__error *error)
{
    const struct shuf__permutation *p = &request->permutation;
    uint64_t values, bytes;
    if (!__builtin_mul_overflow(p->rows, p->count, &values) &&
        !__builtin_mul_overflow(values, shuf__dtype_bytes((int)request->dtype), &bytes) &&
        bytes <= INT64_MAX)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "n %" PRIu64 ": %" PRIu64 " x %" PRIu64
                      " values pass 2^63 bytes, expected a smaller slice or fewer epochs",
                      p->n, p->rows, p->count);
}

shuf_status shuf__permutation_make(struct shuf__request *request, const struct shuf__view *view,
                                   struct shuf__error *error)
{
    struct shuf__permutation *p = &request->permutation;
    request->kind = SHUF__PERMUTATION;
    if (p->rows == 0)
        p->rows = 1;
    if (shuf__check_n(p->n, error) || shuf__check_windows(p, error) || take_view(view, p, error) ||
        choose_dtype(request, error) || check_size(request, error))
        return error->status;
    return SHUF_OK;
}

void shuf__permutation_take_row(struct shuf__permutation *p)
{
    p->rows = 1;
    take_all(p);
}

/* ---- The kind PERMUTATION ---- */

static struct shuf__shape shape(const struct shuf__request *request)
{
    return shuf__shape_of(request->permutation.rows, request->permutation.count,
                          shuf__dtype_bytes((int)request->dtype));
}

int shuf__permutation_compare(const struct shuf__permutation *a, const struct shuf__permutation *b)
{
    SHUF__RETURN_UNLESS_EQUAL(a->n, b->n);
    SHUF__RETURN_UNLESS_EQUAL(a->seed, b->seed);
    SHUF__RETURN_UNLESS_EQUAL(a->seed_high, b->seed_high);
    SHUF__RETURN_UNLESS_EQUAL(a->epoch, b->epoch);
    SHUF__RETURN_UNLESS_EQUAL(a->rows, b->rows);
    SHUF__RETURN_UNLESS_EQUAL(a->offset, b->offset);
    SHUF__RETURN_UNLESS_EQUAL(a->count, b->count);
    SHUF__RETURN_UNLESS_EQUAL(a->stride, b->stride);
    SHUF__RETURN_UNLESS_EQUAL(a->chunk, b->chunk);
    SHUF__RETURN_UNLESS_EQUAL(a->window, b->window);
    SHUF__RETURN_UNLESS_EQUAL(a->algorithm, b->algorithm);
    return 0;
}

/* U64 and I64 values have the same bits, so only sizes count. */
static int compare(const struct shuf__request *a, const struct shuf__request *b)
{
    SHUF__RETURN_UNLESS_EQUAL(shuf__dtype_bytes((int)a->dtype), shuf__dtype_bytes((int)b->dtype));
    return shuf__permutation_compare(&a->permutation, &b->permutation);
}

void shuf__add_key(const struct shuf__request *request, uint64_t seed, char *text)
{
    if (request->key.name[0])
        SHUF__ADD(text, ", key %s", request->key.name);
    else
        SHUF__ADD(text, ", seed %" PRIu64, seed);
}

void shuf__add_permutation(const struct shuf__request *request, char *text)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    SHUF__ADD(text, ", %s", shuf__algorithm_name(p->algorithm));
    shuf__add_key(request, p->seed, text);
    SHUF__ADD(text, ", epoch %" PRIu64, p->epoch);
    if (p->window)
        SHUF__ADD(text, ", windows of %" PRIu64 " chunks of %" PRIu64, p->window, p->chunk);
}

static void describe(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__permutation *p = &request->permutation;
    snprintf(text, SHUF__REQUEST_TEXT, "%sn %" PRIu64, all ? "permute " : "", p->n);
    if (!all) {
        SHUF__ADD(text, ", %s", shuf__algorithm_name(p->algorithm));
        return;
    }
    shuf__add_permutation(request, text);
    SHUF__ADD(text, ", %" PRIu64 " x %" PRIu64 " value%s", p->rows, p->count,
              shuf__plural(p->count));
}

const struct shuf__kind shuf__permutation_kind = {
    .name = "permute",
    .has_permutation = true,
    .shape = shape,
    .compare = compare,
    .describe = describe,
};

/* ---- LOOK_UP ---- */

shuf_status shuf__look_up_make(struct shuf__request *request, const uint64_t *at, size_t count,
                               struct shuf__error *error)
{
    struct shuf__permutation *p = &request->look_up.permutation;
    request->kind = SHUF__LOOK_UP;
    request->dtype = SHUF_AUTO;
    if (shuf__check_n(p->n, error) || shuf__check_windows(p, error))
        return error->status;
    for (size_t i = 0; i < count; i++)
        if (at[i] >= p->n)
            return shuf__fail(error, SHUF_INVALID,
                              "at[%zu] %" PRIu64 ": expected less than n = %" PRIu64, i, at[i],
                              p->n);
    shuf__permutation_take_row(p);
    return SHUF_OK;
}

/* ---- The kind LOOK_UP ---- */

static int compare_look_ups(const struct shuf__request *a, const struct shuf__request *b)
{
    SHUF__RETURN_UNLESS_EQUAL(a->look_up.inverse, b->look_up.inverse);
    return shuf__permutation_compare(&a->look_up.permutation, &b->look_up.permutation);
}

static void describe_look_up(const struct shuf__request *request, bool all, char *text)
{
    snprintf(text, SHUF__REQUEST_TEXT, "index n %" PRIu64, request->look_up.permutation.n);
    if (all)
        shuf__add_permutation(request, text);
}

const struct shuf__kind shuf__look_up_kind = {
    .name = "index",
    .has_permutation = true,
    .shape = NULL,
    .compare = compare_look_ups,
    .describe = describe_look_up,
};
