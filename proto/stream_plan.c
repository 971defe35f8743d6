/* SPDX-License-Identifier: MIT
 *
 * See stream_plan.h. The checks are in the order of the request's fields, but
 * for what depends on several: that is told of the last.
 */
#include "stream_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define END (UINT64_C(1) << 62) /* of a stream: SHUF_STREAM_MAX */

static const double mean_most = 0x1p100, std_least = 0x1p-100, std_most = 0x1p100;
static const double f16_most = 65504; /* finite */

_Static_assert((int)SHUF_DISTRIBUTION_GAUSS == (int)SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS &&
                   (int)SHUF_DISTRIBUTION_UNIFORM == (int)SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM,
               "the wire's numbers are the distributions' own");

static const char *const distribution_names[] = {"none",
#define X(name, text, what) text,
                                                 SHUF_DISTRIBUTION_MAP(X)
#undef X
};

static const struct {
    Shuf__Dtype dtype;
    const char *name;
    unsigned width;
    bool has[SHUF_DISTRIBUTION_COUNT];
} numbers[] = {
#define X(name, text, bytes, gauss, uniform) \
    [SHUF_NUMBER_##name] = {SHUF__DTYPE__DTYPE_##name, text, bytes, {false, gauss, uniform, gauss}},
    SHUF_NUMBER_MAP(X)
#undef X
};

const char *shuf__distribution_name(unsigned distribution)
{
    return distribution_names[distribution < SHUF_DISTRIBUTION_COUNT ? distribution : 0];
}

Shuf__Distribution shuf__distribution_of(unsigned distribution)
{
    return distribution == SHUF_DISTRIBUTION_BOX_MULLER ? SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS
                                                        : (Shuf__Distribution)distribution;
}

Shuf__Method shuf__method_of(unsigned distribution)
{
    return distribution == SHUF_DISTRIBUTION_BOX_MULLER ? SHUF__METHOD__METHOD_BOX_MULLER
                                                        : SHUF__METHOD__METHOD_TABLE;
}

Shuf__Dtype shuf__dtype_of(enum shuf_number number)
{
    return numbers[number].dtype;
}

const char *shuf__dtype_name(Shuf__Dtype dtype)
{
    for (int i = 0; i < SHUF_NUMBER_COUNT; i++)
        if (numbers[i].dtype == dtype)
            return numbers[i].name;
    return dtype == SHUF__DTYPE__DTYPE_AUTO  ? "auto"
           : dtype == SHUF__DTYPE__DTYPE_I64 ? "i64"
                                             : NULL;
}

static shuf_status plan_distribution(Shuf__Distribution distribution,
                                     struct shuf__stream_plan *plan, struct shuf__error *error)
{
    if (distribution != SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS &&
        distribution != SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM)
        return shuf__fail(error, SHUF_INVALID,
                          "distribution %d: expected %d (gauss) or %d (uniform)", (int)distribution,
                          SHUF_DISTRIBUTION_GAUSS, SHUF_DISTRIBUTION_UNIFORM);
    plan->distribution = (enum shuf__distribution)distribution;
    return SHUF_OK;
}

static shuf_status plan_method(Shuf__Method method, struct shuf__stream_plan *plan,
                               struct shuf__error *error)
{
    if (method == SHUF__METHOD__METHOD_TABLE)
        return SHUF_OK;
    if (method != SHUF__METHOD__METHOD_BOX_MULLER)
        return shuf__fail(error, SHUF_INVALID, "method %d: expected %d (table) or %d (box-muller)",
                          (int)method, SHUF__METHOD__METHOD_TABLE, SHUF__METHOD__METHOD_BOX_MULLER);
    if (plan->distribution != SHUF_DISTRIBUTION_GAUSS)
        return shuf__fail(error, SHUF_INVALID,
                          "method box-muller: expected none with %s, only gauss has it",
                          distribution_names[plan->distribution]);
    plan->distribution = SHUF_DISTRIBUTION_BOX_MULLER;
    return SHUF_OK;
}

static shuf_status check_range(const Shuf__Stream *request, struct shuf__error *error)
{
    if (request->offset >= END)
        return shuf__fail(error, SHUF_INVALID, "offset %" PRIu64 ": expected less than 2^62",
                          request->offset);
    if (request->count == 0)
        return shuf__fail(error, SHUF_INVALID, "count 0: expected at least 1");
    if (request->count > END - request->offset)
        return shuf__fail(error, SHUF_INVALID,
                          "count %" PRIu64 ": expected at most %" PRIu64 " from offset %" PRIu64
                          ", as a stream has 2^62 values",
                          request->count, END - request->offset, request->offset);
    return SHUF_OK;
}

/* What would be passed over in silence is refused. */
static shuf_status check_unset(const Shuf__Stream *request, struct shuf__error *error)
{
    const bool mean = request->mean != 0;
    if (!mean && request->std == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "%s %.17g: expected 0 with uniform",
                      mean ? "mean" : "std", mean ? request->mean : request->std);
}

/* A NaN is in no range. */
static shuf_status plan_moments(const Shuf__Stream *request, struct shuf__stream_plan *plan,
                                struct shuf__error *error)
{
    if (!shuf__distribution_is_normal(plan->distribution))
        return check_unset(request, error);
    if (!(fabs(request->mean) <= mean_most))
        return shuf__fail(error, SHUF_INVALID, "mean %g: expected -2^100 to 2^100 (%g)",
                          request->mean, mean_most);
    if (!(request->std >= std_least && request->std <= std_most))
        return shuf__fail(error, SHUF_INVALID, "std %g: expected 2^-100 (%g) to 2^100 (%g)",
                          request->std, std_least, std_most);
    plan->mean = request->mean + 0.0; /* no -0: equal requests are equal in their bits */
    plan->std = request->std;
    return SHUF_OK;
}

static shuf_status refuse_dtype(Shuf__Dtype dtype, enum shuf__distribution distribution,
                                struct shuf__error *error)
{
    char number[16], expected[64] = "";
    const char *name = shuf__dtype_name(dtype);
    unsigned left = 0;
    for (int i = 0; i < SHUF_NUMBER_COUNT; i++)
        left += numbers[i].has[distribution];
    for (int i = 0; i < SHUF_NUMBER_COUNT; i++) {
        if (!numbers[i].has[distribution])
            continue;
        left--;
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s",
                 numbers[i].name,
                 left > 1    ? ", "
                 : left == 1 ? " or "
                             : "");
    }
    snprintf(number, sizeof number, "%d", (int)dtype);
    return shuf__fail(error, SHUF_INVALID, "dtype %s: expected %s with %s", name ? name : number,
                      expected, distribution_names[shuf__distribution_of(distribution)]);
}

static shuf_status plan_dtype(Shuf__Dtype dtype, struct shuf__stream_plan *plan,
                              struct shuf__error *error)
{
    if (dtype == SHUF__DTYPE__DTYPE_AUTO)
        dtype = SHUF__DTYPE__DTYPE_F64;
    for (int i = 0; i < SHUF_NUMBER_COUNT; i++)
        if (numbers[i].dtype == dtype && numbers[i].has[plan->distribution]) {
            plan->dtype = dtype;
            plan->number = (enum shuf_number)i;
            plan->width = numbers[i].width;
            return SHUF_OK;
        }
    return refuse_dtype(dtype, plan->distribution, error);
}

/* No value is ever infinite. */
static shuf_status check_f16(const struct shuf__stream_plan *plan, struct shuf__error *error)
{
    const double reach = fabs(plan->mean) + 16 * plan->std;
    if (!shuf__distribution_is_normal(plan->distribution) || plan->number != SHUF_NUMBER_F16 ||
        reach <= f16_most)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "dtype f16: expected |mean| + 16 std of at most %g, not %.17g (mean %g, std "
                      "%g)",
                      f16_most, reach, plan->mean, plan->std);
}

shuf_status shuf__stream_plan_make(const Shuf__Stream *request, struct shuf__stream_plan *plan,
                                   struct shuf__error *error)
{
    *plan = (struct shuf__stream_plan){
        .seed = request->seed,
        .stream = request->stream,
        .offset = request->offset,
        .count = request->count,
    };
    if (plan_distribution(request->distribution, plan, error) ||
        plan_method(request->method, plan, error) || check_range(request, error) ||
        plan_moments(request, plan, error) || plan_dtype(request->dtype, plan, error) ||
        check_f16(plan, error))
        return error->status;
    if (__builtin_mul_overflow(plan->count, plan->width, &plan->bytes) || plan->bytes > INT64_MAX)
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "count %" PRIu64 ": so many %s pass 2^63 bytes, expected fewer",
                          plan->count, shuf__dtype_name(plan->dtype));
    return SHUF_OK;
}
