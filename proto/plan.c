/* SPDX-License-Identifier: MIT
 *
 * See plan.h. The order of the checks is the order of the fields in the
 * request, so that the first field that is wrong is the one that is named.
 */
#include "plan.h"

#include <inttypes.h>

#define U32_VALUES (UINT64_C(1) << 32)

static shuf_status plan_slice(const Shuf__Slice *slice, struct shuf__plan *plan,
                              struct shuf__error *error)
{
    if (slice->stride == 0)
        return shuf__fail(error, SHUF_INVALID, "stride 0: expected at least 1");
    if (slice->count == 0)
        return shuf__fail(error, SHUF_INVALID, "count 0: expected at least 1");
    if (slice->offset >= plan->n)
        return shuf__fail(error, SHUF_INVALID,
                          "offset %" PRIu64 ": expected less than n = %" PRIu64, slice->offset,
                          plan->n);
    uint64_t most = (plan->n - 1 - slice->offset) / slice->stride + 1;
    if (slice->count > most)
        return shuf__fail(error, SHUF_INVALID,
                          "count %" PRIu64 ": expected at most %" PRIu64 " from offset %" PRIu64
                          " with stride %" PRIu64 " in n = %" PRIu64,
                          slice->count, most, slice->offset, slice->stride, plan->n);
    plan->offset = slice->offset;
    plan->count = slice->count;
    plan->stride = slice->count == 1 ? 1 : slice->stride; /* with more it is below n */
    return SHUF_OK;
}

/* torch's DistributedSampler: the indices are padded to a multiple of world by
 * starting again at the front, or cut to one; rank takes every world-th. */
static shuf_status plan_shard(const Shuf__Shard *shard, struct shuf__plan *plan,
                              struct shuf__error *error)
{
    if (shard->world == 0 || shard->world > SHUF__N_MAX)
        return shuf__fail(error, SHUF_INVALID, "world %" PRIu64 ": expected 1 to 2^62",
                          shard->world);
    if (shard->rank >= shard->world)
        return shuf__fail(error, SHUF_INVALID,
                          "rank %" PRIu64 ": expected less than world = %" PRIu64, shard->rank,
                          shard->world);
    uint64_t whole = plan->n / shard->world, rest = plan->n % shard->world;
    plan->count = whole + (rest != 0 && !shard->drop_last);
    plan->offset = shard->rank % plan->n; /* rank >= n only where count is 0 or 1 */
    plan->stride = shard->world;
    return SHUF_OK;
}

static shuf_status plan_view(const Shuf__Permute *request, struct shuf__plan *plan,
                             struct shuf__error *error)
{
    switch (request->view_case) {
    case SHUF__PERMUTE__VIEW_SLICE:
        return plan_slice(request->slice, plan, error);
    case SHUF__PERMUTE__VIEW_SHARD:
        return plan_shard(request->shard, plan, error);
    default:
        plan->offset = 0;
        plan->count = plan->n;
        plan->stride = 1;
        return SHUF_OK;
    }
}

static shuf_status plan_dtype(Shuf__Dtype dtype, struct shuf__plan *plan, struct shuf__error *error)
{
    if (dtype == SHUF__DTYPE__DTYPE_AUTO)
        dtype = plan->n <= U32_VALUES ? SHUF__DTYPE__DTYPE_U32 : SHUF__DTYPE__DTYPE_U64;
    switch (dtype) {
    case SHUF__DTYPE__DTYPE_U32:
        if (plan->n > U32_VALUES)
            return shuf__fail(error, SHUF_INVALID,
                              "dtype u32: too small for n = %" PRIu64
                              ", expected u64 or i64 above 2^32",
                              plan->n);
        plan->width = 4;
        break;
    case SHUF__DTYPE__DTYPE_U64:
    case SHUF__DTYPE__DTYPE_I64:
        plan->width = 8;
        break;
    default:
        return shuf__fail(error, SHUF_INVALID, "dtype %d: expected u32, u64 or i64", (int)dtype);
    }
    plan->dtype = dtype;
    return SHUF_OK;
}

shuf_status shuf__plan_make(const Shuf__Permute *request, struct shuf__plan *plan,
                            struct shuf__error *error)
{
    if (request->n == 0 || request->n > SHUF__N_MAX)
        return shuf__fail(error, SHUF_INVALID, "n %" PRIu64 ": expected 1 to 2^62 (%" PRIu64 ")",
                          request->n, SHUF__N_MAX);
    *plan = (struct shuf__plan){
        .n = request->n,
        .seed = request->seed,
        .epoch = request->epoch,
        .rows = request->epochs ? request->epochs : 1,
    };
    if (plan_view(request, plan, error) || plan_dtype(request->dtype, plan, error))
        return error->status;
    uint64_t values;
    if (__builtin_mul_overflow(plan->rows, plan->count, &values) ||
        __builtin_mul_overflow(values, plan->width, &plan->bytes) || plan->bytes > INT64_MAX)
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "n %" PRIu64 ": %" PRIu64 " x %" PRIu64
                          " values pass 2^63 bytes, expected a smaller slice or fewer epochs",
                          plan->n, plan->rows, plan->count);
    return SHUF_OK;
}
