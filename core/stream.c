/* SPDX-License-Identifier: MIT
 *
 * STREAM: random numbers.
 */
#include "kind.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define END (UINT64_C(1) << 62) /* SHUF_STREAM_MAX */
#define U32_BOUND (UINT64_C(1) << 32)

static const double least = 0x1p-100, most = 0x1p100; /* of means and deviations */
static const double f16_most = 65504;                 /* the largest finite value */

static const char *const names[] = {"none",
#define X(name, number, text, parameters, types) [number] = text,
                                    SHUF_DISTRIBUTION_MAP(X)
#undef X
};

const char *shuf__distribution_name(unsigned distribution)
{
    return names[distribution < SHUF_DISTRIBUTION_COUNT ? distribution : 0];
}

static shuf_status check_range(const struct shuf__stream *s, struct shuf__error *error)
{
    if (s->offset >= END)
        return shuf__fail(error, SHUF_INVALID, "offset %" PRIu64 ": expected less than 2^62",
                          s->offset);
    if (s->count == 0)
        return shuf__fail(error, SHUF_INVALID, "count 0: expected at least 1");
    if (s->count > END - s->offset)
        return shuf__fail(error, SHUF_INVALID,
                          "count %" PRIu64 ": expected at most %" PRIu64 " from offset %" PRIu64
                          ", as a stream has 2^62 values",
                          s->count, END - s->offset, s->offset);
    return SHUF_OK;
}

/* The comparisons are false for NaN, so they refuse NaN too. */
static shuf_status check_mean(const struct shuf__stream *s, enum shuf__parameters parameters,
                              struct shuf__error *error)
{
    const double x = s->mean;
    switch (parameters) {
    case SHUF__MEAN_AND_STD:
        return fabs(x) <= most ? SHUF_OK
                               : shuf__fail(error, SHUF_INVALID,
                                            "mean %g: expected -2^100 to 2^100 (%g)", x, most);
    case SHUF__MEAN:
        return x >= least && x <= most
                   ? SHUF_OK
                   : shuf__fail(error, SHUF_INVALID,
                                "mean %g: expected 2^-100 (%g) to 2^100 (%g) with %s", x, least,
                                most, shuf__distribution_name(s->distribution));
    case SHUF__PROBABILITY:
        return x >= 0 && x <= 1 ? SHUF_OK
                                : shuf__fail(error, SHUF_INVALID,
                                             "mean %.17g: expected a probability, 0 to 1, with %s",
                                             x, shuf__distribution_name(s->distribution));
    default:
        return x == 0 ? SHUF_OK
                      : shuf__fail(error, SHUF_INVALID, "mean %.17g: expected 0 with %s", x,
                                   shuf__distribution_name(s->distribution));
    }
}

static shuf_status check_std(const struct shuf__stream *s, enum shuf__parameters parameters,
                             struct shuf__error *error)
{
    if (parameters != SHUF__MEAN_AND_STD)
        return s->std == 0 ? SHUF_OK
                           : shuf__fail(error, SHUF_INVALID, "std %.17g: expected 0 with %s",
                                        s->std, shuf__distribution_name(s->distribution));
    return s->std >= least && s->std <= most
               ? SHUF_OK
               : shuf__fail(error, SHUF_INVALID, "std %g: expected 2^-100 (%g) to 2^100 (%g)",
                            s->std, least, most);
}

static shuf_status check_moments(struct shuf__stream *s, struct shuf__error *error)
{
    const enum shuf__parameters parameters = shuf__distribution_parameters(s->distribution);
    if (check_mean(s, parameters, error) || check_std(s, parameters, error))
        return error->status;
    s->mean += 0.0; /* turns -0 into 0, so that equal requests have equal fields */
    s->std += 0.0;
    return SHUF_OK;
}

static shuf_status refuse_dtype(int dtype, enum shuf__distribution distribution,
                                struct shuf__error *error)
{
    char text[SHUF__DTYPE_TEXT], expected[64] = "";
    unsigned left = 0;
    for (int i = 0; i < SHUF__DTYPES; i++)
        left += shuf__dtype_is_allowed(i, distribution);
    for (int i = 0; i < SHUF__DTYPES; i++) {
        if (!shuf__dtype_is_allowed(i, distribution))
            continue;
        left--;
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s",
                 shuf__dtype_name(i),
                 left > 1    ? ", "
                 : left == 1 ? " or "
                             : "");
    }
    return shuf__fail(error, SHUF_INVALID, "dtype %s: expected %s with %s",
                      shuf__dtype_label(dtype, text), expected,
                      shuf__distribution_is_normal(distribution)
                          ? "gauss"
                          : shuf__distribution_name(distribution));
}

static shuf_dtype default_dtype(const struct shuf__stream *s)
{
    if (shuf__dtype_is_allowed(SHUF_F64, s->distribution))
        return SHUF_F64;
    return s->bound > U32_BOUND ? SHUF_U64 : SHUF_U32;
}

static shuf_status choose_dtype(struct shuf__request *request, struct shuf__error *error)
{
    if (request->dtype == SHUF_AUTO)
        request->dtype = default_dtype(&request->stream);
    if (shuf__dtype_is_allowed((int)request->dtype, request->stream.distribution))
        return SHUF_OK;
    return refuse_dtype((int)request->dtype, request->stream.distribution, error);
}

static shuf_status check_bound(const struct shuf__request *request, struct shuf__error *error)
{
    const struct shuf__stream *s = &request->stream;
    const bool narrow = request->dtype == SHUF_U32;
    if (shuf__distribution_parameters(s->distribution) != SHUF__BOUND)
        return s->bound == 0
                   ? SHUF_OK
                   : shuf__fail(error, SHUF_INVALID, "bound %" PRIu64 ": expected 0 with %s",
                                s->bound, shuf__distribution_name(s->distribution));
    if (s->bound == 0 || (narrow && s->bound > U32_BOUND))
        return shuf__fail(error, SHUF_INVALID, "bound %" PRIu64 ": expected 1 to %s with dtype %s",
                          s->bound, narrow ? "2^32" : "2^64 - 1",
                          shuf__dtype_name((int)request->dtype));
    return SHUF_OK;
}

/* Refuses a mean and std for which a value of type f16 could be infinite. */
static shuf_status check_f16(const struct shuf__request *request, struct shuf__error *error)
{
    const struct shuf__stream *s = &request->stream;
    const double reach = fabs(s->mean) + 16 * s->std;
    if (request->dtype != SHUF_F16 || reach <= f16_most)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "dtype f16: expected |mean| + 16 std of at most %g, not %.17g (mean %g, std "
                      "%g)",
                      f16_most, reach, s->mean, s->std);
}

static shuf_status check_size(const struct shuf__request *request, struct shuf__error *error)
{
    uint64_t bytes;
    if (!__builtin_mul_overflow(request->stream.count, shuf__dtype_bytes((int)request->dtype),
                                &bytes) &&
        bytes <= INT64_MAX)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "count %" PRIu64 ": so many %s pass 2^63 bytes, expected fewer",
                      request->stream.count, shuf__dtype_name((int)request->dtype));
}

shuf_status shuf__stream_make(struct shuf__request *request, struct shuf__error *error)
{
    struct shuf__stream *s = &request->stream;
    request->kind = SHUF__STREAM;
    if (check_range(s, error) || check_moments(s, error) || choose_dtype(request, error) ||
        check_bound(request, error) || check_f16(request, error) || check_size(request, error))
        return error->status;
    return SHUF_OK;
}

/* ---- The kind ---- */

static struct shuf__shape shape(const struct shuf__request *request)
{
    return shuf__shape_of(1, request->stream.count, shuf__dtype_bytes((int)request->dtype));
}

static int compare_streams(const struct shuf__stream *a, const struct shuf__stream *b)
{
    SHUF__RETURN_UNLESS_EQUAL(a->seed, b->seed);
    SHUF__RETURN_UNLESS_EQUAL(a->seed_high, b->seed_high);
    SHUF__RETURN_UNLESS_EQUAL(a->stream, b->stream);
    SHUF__RETURN_UNLESS_EQUAL(a->offset, b->offset);
    SHUF__RETURN_UNLESS_EQUAL(a->count, b->count);
    SHUF__RETURN_UNLESS_EQUAL(a->mean, b->mean);
    SHUF__RETURN_UNLESS_EQUAL(a->std, b->std);
    SHUF__RETURN_UNLESS_EQUAL(a->bound, b->bound);
    SHUF__RETURN_UNLESS_EQUAL(a->distribution, b->distribution);
    return 0;
}

static int compare(const struct shuf__request *a, const struct shuf__request *b)
{
    return compare_streams(&a->stream, &b->stream);
}

static void describe(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__stream *s = &request->stream;
    snprintf(text, SHUF__REQUEST_TEXT, "%s, %s, stream %" PRIu64,
             shuf__distribution_name(s->distribution), shuf__dtype_name((int)request->dtype),
             s->stream);
    if (!all)
        return;
    shuf__add_key(request, s->seed, text);
    SHUF__ADD(text, ", %" PRIu64 " value%s from %" PRIu64, s->count, shuf__plural(s->count),
              s->offset);
    if (shuf__distribution_has_mean(s->distribution))
        SHUF__ADD(text, ", mean %.17g", s->mean);
    if (shuf__distribution_is_normal(s->distribution))
        SHUF__ADD(text, ", std %.17g", s->std);
    if (s->bound != 0)
        SHUF__ADD(text, ", bound %" PRIu64, s->bound);
}

const struct shuf__kind shuf__stream_kind = {
    .name = "stream",
    .has_permutation = false,
    .shape = shape,
    .compare = compare,
    .describe = describe,
};
