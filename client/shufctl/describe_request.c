/* SPDX-License-Identifier: MIT
 *
 * See describe_request.h.
 */
#include "describe_request.h"

#include "chunk_list.h"
#include "error.h"
#include "json.h"
#include "order_options.h"
#include "request.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>

void shuf__print_line(FILE *to, const char *key, const char *format, ...)
{
    va_list args;
    char text[PATH_MAX + 64]; /* a file and its format */
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    shuf__make_printable(text);
    shuf__print_key(to, key);
    fprintf(to, "%s\n", text);
}

const char *shuf__distribution_text(shuf_distribution distribution)
{
    return shuf__distribution_is_named((int)distribution)
               ? shuf__distribution_name((unsigned)distribution)
               : "-";
}

const char *const shuf__method_names[] = {"table", "box-muller", NULL};

const char *shuf__method_text(shuf_method method)
{
    return (unsigned)method <= SHUF_BOX_MULLER ? shuf__method_names[method] : "-";
}

/* ---- Permutations ------------------------------------------------------------- */

static void print_epochs(const struct shuf__output_options *options, FILE *to)
{
    const shuf_permutation *permutation = &options->request->permutation;
    if (options->batch)
        shuf__print_line(to, "epochs", "%" PRIu64 ":%" PRIu64, permutation->epoch,
                         permutation->epoch + permutation->epochs);
    else
        shuf__print_line(to, "epoch", "%" PRIu64, permutation->epoch);
}

static void print_shard(const shuf_permutation *permutation, uint64_t count, FILE *to)
{
    char part[80] = "";
    if (permutation->step || permutation->count)
        snprintf(part, sizeof part, ", step %" PRIu64 ", count %" PRIu64, permutation->step, count);
    shuf__print_line(to, "slice", "rank %" PRIu64 " of %" PRIu64 ", %s%s", permutation->rank,
                     permutation->world, permutation->drop_last ? "last dropped" : "padded", part);
}

/* The permutation with the view that the user has chosen. */
static shuf_permutation chosen_view(const struct shuf__output_options *options)
{
    shuf_permutation permutation = options->request->permutation;
    if (options->is_empty_rest) {
        permutation.view = SHUF_VIEW_SLICE;
        permutation.offset = permutation.n;
        permutation.stride = 1;
    }
    return permutation;
}

static void print_view(const shuf_permutation *permutation, uint64_t count, FILE *to)
{
    if (permutation->view == SHUF_VIEW_SLICE)
        shuf__print_line(to, "slice", "offset %" PRIu64 ", count %" PRIu64 ", stride %" PRIu64,
                         permutation->offset, permutation->count, permutation->stride);
    else if (permutation->view == SHUF_VIEW_SHARD)
        print_shard(permutation, count, to);
    else
        shuf__print_line(to, "slice", "all");
}

static void print_permutation_request(const struct shuf__output_options *options,
                                      const shuf_result *result, FILE *to)
{
    const shuf_permutation permutation = chosen_view(options);
    shuf__print_line(to, "algorithm", "%s", result->algorithm);
    shuf__print_line(to, "n", "%" PRIu64, permutation.n);
    shuf__print_seed(to, permutation.key, permutation.seed);
    print_epochs(options, to);
    if (permutation.window)
        shuf__print_line(to, "windows", "of %" PRIu64 " chunks of %" PRIu64, permutation.window,
                         permutation.chunk);
    if (options->chunks)
        shuf__print_line(to, "windows", "of %" PRIu64 " chunks, of %zu in all",
                         options->chunks->window, options->chunks->sizes.count);
    print_view(&permutation, result->shape.count, to);
}

static void print_permutation_short(const struct shuf__output_options *options,
                                    const shuf_result *result, FILE *to)
{
    const shuf_permutation *permutation = &options->request->permutation;
    char seed[SHUF__SEED_TEXT];
    fprintf(to, "%s, n %" PRIu64 ", %s, epoch", result->algorithm, permutation->n,
            shuf__seed_text(seed, permutation->key, permutation->seed));
    if (options->batch)
        fprintf(to, "s %" PRIu64 ":%" PRIu64, permutation->epoch,
                permutation->epoch + permutation->epochs);
    else
        fprintf(to, " %" PRIu64, permutation->epoch);
}

static void add_view(json_t *object, const shuf_permutation *permutation, uint64_t count)
{
    json_t *view = json_object();
    bool all = permutation->view == SHUF_VIEW_ALL;
    json_object_set_new(view, "all", json_boolean(all));
    if (permutation->view == SHUF_VIEW_SHARD) {
        shuf__json_integer(view, "rank", permutation->rank);
        shuf__json_integer(view, "world", permutation->world);
        json_object_set_new(view, "drop_last", json_boolean(permutation->drop_last));
        shuf__json_integer(view, "step", permutation->step);
        shuf__json_integer(view, "count", count);
    } else {
        shuf__json_integer(view, "offset", permutation->offset);
        shuf__json_integer(view, "count", count);
        shuf__json_integer(view, "stride", all ? 1 : permutation->stride);
    }
    json_object_set_new(object, "slice", view);
}

/* For a batch, adds both bounds, in the form of --epochs. */
static void add_epochs(json_t *object, const struct shuf__output_options *options)
{
    const shuf_permutation *permutation = &options->request->permutation;
    if (!options->batch) {
        shuf__json_decimal(object, "epoch", permutation->epoch);
        return;
    }
    json_t *epochs = json_array();
    json_array_append_new(epochs, shuf__json_decimal_string(permutation->epoch));
    json_array_append_new(epochs,
                          shuf__json_decimal_string(permutation->epoch + permutation->epochs));
    json_object_set_new(object, "epochs", epochs);
}

static void permutation_to_json(json_t *object, const struct shuf__output_options *options,
                                const shuf_result *result)
{
    const shuf_permutation permutation = chosen_view(options);
    shuf__json_text(object, "algorithm", result->algorithm);
    shuf__json_integer(object, "n", permutation.n);
    shuf__json_seed(object, permutation.key, permutation.seed);
    add_epochs(object, options);
    shuf__json_windows(object, &permutation);
    if (options->chunks)
        shuf__json_chunks(object, options->chunks);
    add_view(object, &permutation, result->shape.count);
}

/* ---- Numbers ------------------------------------------------------------------ */

static void print_distribution(const shuf_numbers *numbers, FILE *to)
{
    fputs(shuf__distribution_text(numbers->distribution), to);
    if (numbers->method)
        fprintf(to, ", method %s", shuf__method_text(numbers->method));
    if (shuf__distribution_has_mean(numbers->distribution))
        fprintf(to, ", %s %.15g", numbers->distribution == SHUF_BERNOULLI ? "probability" : "mean",
                numbers->mean);
    if (numbers->distribution == SHUF_GAUSS)
        fprintf(to, ", std %.15g", numbers->std);
    if (numbers->distribution == SHUF_INTEGERS)
        fprintf(to, ", bound %" PRIu64, numbers->bound);
}

static void print_numbers_request(const shuf_numbers *numbers, FILE *to)
{
    shuf__print_key(to, "numbers");
    print_distribution(numbers, to);
    fputc('\n', to);
    shuf__print_seed(to, numbers->key, numbers->seed);
    shuf__print_line(to, "stream", "%" PRIu64, numbers->stream);
    shuf__print_line(to, "slice", "offset %" PRIu64 ", count %" PRIu64, numbers->offset,
                     numbers->count);
}

static void print_numbers_short(const shuf_numbers *numbers, FILE *to)
{
    char seed[SHUF__SEED_TEXT];
    print_distribution(numbers, to);
    fprintf(to, ", %s, stream %" PRIu64 ", offset %" PRIu64,
            shuf__seed_text(seed, numbers->key, numbers->seed), numbers->stream, numbers->offset);
}

static void numbers_to_json(json_t *object, const shuf_numbers *numbers)
{
    json_t *slice = json_object();
    shuf__json_text(object, "distribution", shuf__distribution_text(numbers->distribution));
    if (numbers->distribution == SHUF_GAUSS)
        shuf__json_text(object, "method", shuf__method_text(numbers->method));
    if (shuf__distribution_has_mean(numbers->distribution))
        json_object_set_new(object, "mean", json_real(numbers->mean));
    if (numbers->distribution == SHUF_GAUSS)
        json_object_set_new(object, "std", json_real(numbers->std));
    if (numbers->distribution == SHUF_INTEGERS)
        shuf__json_decimal(object, "bound", numbers->bound);
    shuf__json_seed(object, numbers->key, numbers->seed);
    shuf__json_decimal(object, "stream", numbers->stream);
    shuf__json_integer(slice, "offset", numbers->offset);
    shuf__json_integer(slice, "count", numbers->count);
    json_object_set_new(object, "slice", slice);
}

/* ---- Requests ------------------------------------------------------------------- */

void shuf__describe_request(const struct shuf__output_options *options, const shuf_result *result,
                            FILE *to)
{
    if (options->request->kind == SHUF_NUMBERS)
        print_numbers_request(&options->request->numbers, to);
    else
        print_permutation_request(options, result, to);
}

void shuf__describe_request_short(const struct shuf__output_options *options,
                                  const shuf_result *result, FILE *to)
{
    if (options->request->kind == SHUF_NUMBERS)
        print_numbers_short(&options->request->numbers, to);
    else
        print_permutation_short(options, result, to);
}

void shuf__describe_request_json(const struct shuf__output_options *options,
                                 const shuf_result *result, json_t *object)
{
    if (options->request->kind == SHUF_NUMBERS)
        numbers_to_json(object, &options->request->numbers);
    else
        permutation_to_json(object, options, result);
}
