/* SPDX-License-Identifier: MIT
 *
 * See subject.h.
 */
#include "subject.h"

#include "json.h"

#include <inttypes.h>
#include <stdarg.h>

void shuf__subject_line(FILE *to, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(to, "%-12s", key);
    vfprintf(to, format, args);
    fputc('\n', to);
    va_end(args);
}

const char *shuf__distribution_text(shuf_distribution distribution)
{
    return distribution == SHUF_GAUSS ? "gauss" : distribution == SHUF_UNIFORM ? "uniform" : "-";
}

const char *const shuf__method_names[] = {"table", "box-muller", NULL};

const char *shuf__method_text(shuf_method method)
{
    return (unsigned)method <= SHUF_BOX_MULLER ? shuf__method_names[method] : "-";
}

/* ---- Permutations ------------------------------------------------------------- */

static void print_epochs(const struct shuf__order *order, FILE *to)
{
    const shuf_permutation *what = order->permutation;
    if (order->batch)
        shuf__subject_line(to, "epochs", "%" PRIu64 ":%" PRIu64, what->epoch,
                           what->epoch + what->epochs);
    else
        shuf__subject_line(to, "epoch", "%" PRIu64, what->epoch);
}

static void print_view(const shuf_permutation *what, FILE *to)
{
    if (what->view == SHUF_VIEW_SLICE)
        shuf__subject_line(to, "slice", "offset %" PRIu64 ", count %" PRIu64 ", stride %" PRIu64,
                           what->offset, what->count, what->stride);
    else if (what->view == SHUF_VIEW_SHARD)
        shuf__subject_line(to, "slice", "rank %" PRIu64 " of %" PRIu64 ", %s", what->rank,
                           what->world, what->drop_last ? "last dropped" : "padded");
    else
        shuf__subject_line(to, "slice", "all");
}

static void print_permutation(const struct shuf__order *order, const shuf_result *result, FILE *to)
{
    const shuf_permutation *what = order->permutation;
    shuf__subject_line(to, "algorithm", "%s", result->algorithm);
    shuf__subject_line(to, "n", "%" PRIu64, what->n);
    shuf__subject_line(to, "seed", "%" PRIu64, what->seed);
    print_epochs(order, to);
    print_view(what, to);
}

static void print_permutation_short(const struct shuf__order *order, const shuf_result *result,
                                    FILE *to)
{
    const shuf_permutation *what = order->permutation;
    fprintf(to, "%s, n %" PRIu64 ", seed %" PRIu64 ", epoch", result->algorithm, what->n,
            what->seed);
    if (order->batch)
        fprintf(to, "s %" PRIu64 ":%" PRIu64, what->epoch, what->epoch + what->epochs);
    else
        fprintf(to, " %" PRIu64, what->epoch);
}

static void add_view(json_t *object, const shuf_permutation *what)
{
    json_t *view = json_object();
    bool all = what->view == SHUF_VIEW_ALL;
    json_object_set_new(view, "all", json_boolean(all));
    if (what->view == SHUF_VIEW_SHARD) {
        shuf__json_integer(view, "rank", what->rank);
        shuf__json_integer(view, "world", what->world);
        json_object_set_new(view, "drop_last", json_boolean(what->drop_last));
    } else {
        shuf__json_integer(view, "offset", what->offset);
        shuf__json_integer(view, "count", all ? what->n : what->count);
        shuf__json_integer(view, "stride", all ? 1 : what->stride);
    }
    json_object_set_new(object, "slice", view);
}

/* A batch gives both of its ends, as --epochs takes them. */
static void add_epochs(json_t *object, const struct shuf__order *order)
{
    const shuf_permutation *what = order->permutation;
    if (!order->batch) {
        shuf__json_decimal(object, "epoch", what->epoch);
        return;
    }
    json_t *epochs = json_array();
    json_array_append_new(epochs, shuf__json_decimal_string(what->epoch));
    json_array_append_new(epochs, shuf__json_decimal_string(what->epoch + what->epochs));
    json_object_set_new(object, "epochs", epochs);
}

static void add_permutation(json_t *object, const struct shuf__order *order,
                            const shuf_result *result)
{
    shuf__json_text(object, "algorithm", result->algorithm);
    shuf__json_integer(object, "n", order->permutation->n);
    shuf__json_decimal(object, "seed", order->permutation->seed);
    add_epochs(object, order);
    add_view(object, order->permutation);
}

/* ---- Numbers ------------------------------------------------------------------ */

static void print_distribution(const shuf_numbers *what, FILE *to)
{
    fputs(shuf__distribution_text(what->distribution), to);
    if (what->method)
        fprintf(to, ", method %s", shuf__method_text(what->method));
    if (what->distribution == SHUF_GAUSS)
        fprintf(to, ", mean %.15g, std %.15g", what->mean, what->std);
}

static void print_numbers(const shuf_numbers *what, FILE *to)
{
    fprintf(to, "%-12s", "numbers");
    print_distribution(what, to);
    fputc('\n', to);
    shuf__subject_line(to, "seed", "%" PRIu64, what->seed);
    shuf__subject_line(to, "stream", "%" PRIu64, what->stream);
    shuf__subject_line(to, "slice", "offset %" PRIu64 ", count %" PRIu64, what->offset,
                       what->count);
}

static void print_numbers_short(const shuf_numbers *what, FILE *to)
{
    print_distribution(what, to);
    fprintf(to, ", seed %" PRIu64 ", stream %" PRIu64 ", offset %" PRIu64, what->seed, what->stream,
            what->offset);
}

static void add_numbers(json_t *object, const shuf_numbers *what)
{
    json_t *slice = json_object();
    shuf__json_text(object, "distribution", shuf__distribution_text(what->distribution));
    if (what->distribution == SHUF_GAUSS) {
        shuf__json_text(object, "method", shuf__method_text(what->method));
        json_object_set_new(object, "mean", json_real(what->mean));
        json_object_set_new(object, "std", json_real(what->std));
    }
    shuf__json_decimal(object, "seed", what->seed);
    shuf__json_decimal(object, "stream", what->stream);
    shuf__json_integer(slice, "offset", what->offset);
    shuf__json_integer(slice, "count", what->count);
    json_object_set_new(object, "slice", slice);
}

/* ---- Either ------------------------------------------------------------------- */

void shuf__subject_print(const struct shuf__order *order, const shuf_result *result, FILE *to)
{
    if (order->numbers)
        print_numbers(order->numbers, to);
    else
        print_permutation(order, result, to);
}

void shuf__subject_print_short(const struct shuf__order *order, const shuf_result *result, FILE *to)
{
    if (order->numbers)
        print_numbers_short(order->numbers, to);
    else
        print_permutation_short(order, result, to);
}

void shuf__subject_json(const struct shuf__order *order, const shuf_result *result, json_t *object)
{
    if (order->numbers)
        add_numbers(object, order->numbers);
    else
        add_permutation(object, order, result);
}
