/* SPDX-License-Identifier: MIT
 *
 * See agreement.h.
 */
#include "agreement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct shuf__nccl_report) == SHUF__NCCL_REPORT, "ranks exchange reports");

/* ---- One rank ---------------------------------------------------------------- */

static shuf_status set_name(const char *field, const char *value, char *name,
                            struct shuf__error *error)
{
    if (strlen(value) >= SHUF__NCCL_NAME)
        return shuf__fail(error, SHUF_INVALID, "%s %s: expected at most %d bytes", field, value,
                          SHUF__NCCL_NAME - 1);
    strcpy(name, value);
    return SHUF_OK;
}

static shuf_status check_array(const char *field, const void *array, uint64_t records,
                               uint64_t record, struct shuf__error *error)
{
    if (records > INT64_MAX / record)
        return shuf__fail(error, SHUF_INVALID,
                          "%s %" PRIu64 ": expected less than 2^63 bytes with records of %" PRIu64,
                          field, records, record);
    if (records > 0 && !array)
        return shuf__fail(error, SHUF_INVALID, "%s: NULL: expected %" PRIu64 " record%s", field,
                          records, shuf__plural(records));
    return SHUF_OK;
}

static shuf_status check_overlap(const shuf_nccl_request *r, const void *input, const void *output,
                                 struct shuf__error *error)
{
    const uintptr_t in = (uintptr_t)input, out = (uintptr_t)output;
    if (r->input > 0 && r->output > 0 && in < out + r->output * r->record &&
        out < in + r->input * r->record)
        return shuf__fail(error, SHUF_INVALID, "output: overlaps the input, expected other memory");
    return SHUF_OK;
}

static shuf_status describe(const shuf_nccl_request *r, const void *input, const void *output,
                            struct shuf__nccl_report *report, struct shuf__error *error)
{
    if (r->record == 0)
        return shuf__fail(error, SHUF_INVALID, "record 0: expected at least 1 byte");
    if (set_name("algorithm", r->algorithm ? r->algorithm : "primefold", report->algorithm, error))
        return error->status;
    if (set_name("key", r->key ? r->key : "", report->key, error))
        return error->status;
    if (check_array("input", input, r->input, r->record, error))
        return error->status;
    if (check_array("output", output, r->output, r->record, error))
        return error->status;
    return check_overlap(r, input, output, error);
}

void shuf__nccl_describe(const shuf_nccl_request *request, const void *input, const void *output,
                         struct shuf__nccl_report *report)
{
    struct shuf__error error = {.status = SHUF_OK};
    *report = (struct shuf__nccl_report){
        .version = SHUF__NCCL_VERSION,
        .seed = request->seed,
        .epoch = request->epoch,
        .inverse = request->inverse,
        .record = request->record,
        .input = request->input,
        .output = request->output,
    };
    describe(request, input, output, report, &error);
    shuf__nccl_report_failure(&error, report);
}

void shuf__nccl_report_failure(const struct shuf__error *error, struct shuf__nccl_report *report)
{
    report->status = error->status;
    if (error->status != SHUF_OK)
        snprintf(report->error, sizeof report->error, "%.*s", (int)sizeof report->error - 1,
                 error->text);
}

/* ---- All ranks --------------------------------------------------------------- */

shuf_status shuf__nccl_check_failures(const struct shuf__nccl_report *reports, unsigned world,
                                      struct shuf__error *error)
{
    for (unsigned r = 0; r < world; r++)
        if (reports[r].status != SHUF_OK)
            return shuf__fail(error, (shuf_status)reports[r].status, "rank %u: %s", r,
                              reports[r].error);
    return SHUF_OK;
}

/* The fields that must be equal on all ranks. */
static const struct field {
    const char *name;
    size_t offset;
    bool is_text;
} fields[] = {
#define NUMBER(name)                                           \
    {                                                          \
#name, offsetof(struct shuf__nccl_report, name), false \
    }
#define TEXT(name)                                            \
    {                                                         \
#name, offsetof(struct shuf__nccl_report, name), true \
    }
    NUMBER(seed), TEXT(key), NUMBER(epoch), NUMBER(inverse), NUMBER(record), TEXT(algorithm),
};
static const struct field version = NUMBER(version);

static void print_field(const struct field *f, const struct shuf__nccl_report *report, char *text,
                        size_t size)
{
    const void *value = (const char *)report + f->offset;
    uint64_t number;
    memcpy(&number, value, sizeof number);
    if (f->is_text)
        snprintf(text, size, "%s", (const char *)value);
    else
        snprintf(text, size, "%" PRIu64, number);
}

static shuf_status check_field(const struct field *f, const struct shuf__nccl_report *reports,
                               unsigned world, struct shuf__error *error)
{
    char own[SHUF__NCCL_NAME], first[SHUF__NCCL_NAME];
    print_field(f, &reports[0], first, sizeof first);
    for (unsigned r = 1; r < world; r++) {
        print_field(f, &reports[r], own, sizeof own);
        if (strcmp(own, first) != 0)
            return shuf__fail(error, SHUF_INVALID, "rank %u: %s %s: expected %s, as on rank 0", r,
                              f->name, own, first);
    }
    return SHUF_OK;
}

uint64_t shuf__nccl_sum_inputs(const struct shuf__nccl_report *reports, unsigned world)
{
    uint64_t sum = 0;
    for (unsigned r = 0; r < world; r++)
        sum += reports[r].input;
    return sum;
}

/* The daemon checks that n is at most 2^62. A sum that overflows would be less. */
static shuf_status check_sizes(const struct shuf__nccl_report *reports, unsigned world,
                               struct shuf__error *error)
{
    uint64_t input = 0, output = 0;
    for (unsigned r = 0; r < world; r++)
        if (__builtin_add_overflow(input, reports[r].input, &input) ||
            __builtin_add_overflow(output, reports[r].output, &output))
            return shuf__fail(error, SHUF_INVALID,
                              "rank %u: the sizes up to this rank have a sum above 2^64", r);
    if (input != output)
        return shuf__fail(error, SHUF_INVALID,
                          "output: sizes with the sum %" PRIu64 ", expected %" PRIu64
                          ", the sum of the inputs",
                          output, input);
    return SHUF_OK;
}

shuf_status shuf__nccl_check_arguments(const struct shuf__nccl_report *reports, unsigned world,
                                       struct shuf__error *error)
{
    if (check_field(&version, reports, world, error) ||
        shuf__nccl_check_failures(reports, world, error))
        return error->status;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (check_field(&fields[i], reports, world, error))
            return error->status;
    return check_sizes(reports, world, error);
}

uint64_t shuf__nccl_most_rounds(const struct shuf__nccl_report *reports, unsigned world)
{
    uint64_t most = 0;
    for (unsigned r = 0; r < world; r++)
        most = reports[r].rounds > most ? reports[r].rounds : most;
    return most;
}
