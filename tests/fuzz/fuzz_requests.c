/* SPDX-License-Identifier: MIT
 *
 * Requests as the daemon checks them. The parser refuses a message with a status and one line, or
 * returns a request within the ranges that core/request.h promises.
 */
#include "fuzz.h"
#include "result_message.h"

#include <math.h>

#define LIMIT (UINT64_C(1) << 62)

static struct shuf__arena arena;

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    return wire_mutate_message(data, size, room, seed);
}

static void check_permutation(const struct shuf__permutation *p)
{
    fuzz_require(p->n >= 1 && p->n <= LIMIT);
    fuzz_require(p->rows >= 1);
    fuzz_require(p->algorithm < SHUF_ALGORITHM_COUNT);
    fuzz_require(p->stride >= 1 && p->stride <= LIMIT);
    fuzz_require(p->offset < p->n || p->count == 0);
}

static void check_stream(const struct shuf__stream *s, shuf_dtype dtype)
{
    fuzz_require(s->count >= 1 && s->count <= LIMIT && s->offset <= LIMIT - s->count);
    fuzz_require(isfinite(s->mean) && isfinite(s->std));
    fuzz_require(s->distribution != SHUF_DISTRIBUTION_NONE);
    fuzz_require(s->mean != 0 || !signbit(s->mean));
    const enum shuf__parameters parameters = shuf__distribution_parameters(s->distribution);
    fuzz_require(parameters == SHUF__MEAN_AND_STD ? s->std > 0 : s->std == 0);
    fuzz_require(shuf__distribution_has_mean(s->distribution) || s->mean == 0);
    fuzz_require((parameters == SHUF__BOUND) == (s->bound != 0));
    fuzz_require(dtype != SHUF_U32 || s->bound <= UINT64_C(1) << 32);
    fuzz_require(parameters != SHUF__MEAN || s->mean > 0);
    fuzz_require(parameters != SHUF__PROBABILITY || (s->mean >= 0 && s->mean <= 1));
}

static void check_shape(const struct shuf__request *request)
{
    const struct shuf__shape shape = shuf__request_shape(request);
    uint64_t values, bytes;
    fuzz_require(!__builtin_mul_overflow(shape.rows, shape.count, &values));
    fuzz_require(!__builtin_mul_overflow(values, shape.width, &bytes));
    fuzz_require(bytes == shape.bytes && bytes <= INT64_MAX);
    fuzz_require(shape.width > 0);
    if (request->kind == SHUF__PERMUTATION || request->kind == SHUF__STREAM) {
        fuzz_require(shape.width == shuf__dtype_bytes(request->dtype));
        fuzz_require(shuf__dtype_is_allowed(request->dtype, shuf__request_distribution(request)));
    }
}

static void check_one_sided(const struct shuf__request *request)
{
    const struct shuf__plan *plan = &request->plan;
    const uint64_t places = shuf__plan_part(plan, plan->rank, true).count;
    const uint64_t parts = shuf__plan_parts(plan);
    const struct shuf__windows windows = shuf__plan_windows(plan);
    fuzz_require(plan->part % SHUF__PART_UNIT == 0 && plan->part <= SHUF__PART_MOST);
    fuzz_require(plan->world <= SHUF__RANKS_ONE_SIDED && request->dtype == SHUF_U32);
    for (uint64_t r = 0; r < plan->world; r++)
        fuzz_require(shuf__plan_part(plan, r, false).count <= SHUF__ONE_SIDED_MOST);
    fuzz_require(windows.bits >= SHUF__WINDOW_BITS && windows.bits <= 32);
    fuzz_require(windows.count >= 1 && windows.count <= SHUF__WINDOWS_MOST);
    fuzz_require(parts >= 1 && parts * plan->part >= places);
    fuzz_require(parts == 1 || (parts - 1) * plan->part < places);
}

static void check_plan(const struct shuf__request *request)
{
    const struct shuf__plan *plan = &request->plan;
    const uint64_t n = plan->permutation.n;
    fuzz_require(plan->rank < plan->world && plan->world <= SHUF__RANKS_EQUAL);
    for (int output = 0; output < 2; output++) {
        const struct shuf__range own = shuf__plan_part(plan, plan->rank, output);
        const struct shuf__range last = shuf__plan_part(plan, plan->world - 1, output);
        fuzz_require(own.first <= n && own.count <= n - own.first);
        fuzz_require(last.first + last.count == n);
    }
    if (plan->part)
        check_one_sided(request);
}

static void check_request(const struct shuf__request *request)
{
    char text[SHUF__REQUEST_TEXT];
    const struct shuf__permutation *p = shuf__request_permutation(request);
    if (p)
        check_permutation(p);
    if (request->kind == SHUF__STREAM)
        check_stream(&request->stream, request->dtype);
    if (request->kind == SHUF__EXCHANGE)
        check_plan(request);
    if (request->kind != SHUF__LOOK_UP)
        check_shape(request);
    fuzz_require(!request->key.name[0] || shuf__key_name_is_valid(request->key.name));
    fuzz_require(shuf__request_compare(request, request) == 0);
    fuzz_require(fuzz_is_printable(shuf__request_describe(request, true, text)));
    fuzz_require(fuzz_is_printable(shuf__request_describe(request, false, text)));
    fuzz_require(*shuf__request_name(request));
}

static shuf_status parse(const Shuf__Request *message, struct shuf__request *request,
                         struct shuf__error *error)
{
    switch (message->body_case) {
    case SHUF__REQUEST__BODY_RESULT:
        return shuf__parse_result(message->result, request, error);
    case SHUF__REQUEST__BODY_INDEX:
        return shuf__parse_index(message->index, request, error);
    default:
        return SHUF_CANCELLED;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shuf__request request, again;
    struct shuf__error error = {0};
    const Shuf__Request *message = shuf__request_unpack(&arena, data, size);
    if (!message)
        return 0;
    const shuf_status status = parse(message, &request, &error);
    if (status == SHUF_CANCELLED)
        return 0;
    if (status != SHUF_OK) {
        fuzz_require(error.status == status && error.text[0]);
        fuzz_require(status == SHUF_INVALID || status == SHUF_NO_MEMORY);
        return 0;
    }
    check_request(&request);
    fuzz_require(parse(message, &again, &error) == SHUF_OK);
    fuzz_require(shuf__request_compare(&request, &again) == 0);
    return 0;
}
