/* SPDX-License-Identifier: MIT
 *
 * `shufctl index`: values at single positions of a permutation, or positions of values.
 */
#include "clock.h"
#include "connect.h"
#include "exit.h"
#include "index_options.h"
#include "json.h"
#include "npy.h"
#include "output.h"
#include "progress.h"
#include "seed_or_key.h"
#include "text.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

/* ---- Values to a file ------------------------------------------------------- */

static int write_text(struct shuf__output *output, enum shuf__format format,
                      const shuf_shape *shape, const uint64_t *found)
{
    static struct shuf__text text;
    shuf__text_start(&text, output, shape, false, format == SHUF__FORMAT_CSV ? ',' : ' ');
    bool written = shuf__text_write(&text, found, shape->bytes) && shuf__text_flush(&text);
    return written ? EX_OK : shuf__output_failed(output);
}

static int write_binary(struct shuf__output *output, enum shuf__format format,
                        const shuf_shape *shape, const uint64_t *found)
{
    char header[SHUF__NPY_HEADER_MAX];
    size_t head = format == SHUF__FORMAT_NPY ? shuf__npy_header(shape, false, header) : 0;
    bool written =
        shuf__output_write(output, header, head) && shuf__output_write(output, found, shape->bytes);
    return written ? EX_OK : shuf__output_failed(output);
}

static int write_found(const struct shuf__index_options *o, const uint64_t *found)
{
    struct shuf__output output;
    const uint64_t count = o->places.count;
    const shuf_shape shape = {1, count, SHUF_U64, sizeof *found, count * sizeof *found};
    int code = shuf__output_open(&output, o->out, !shuf__format_is_text(o->format));
    if (code != EX_OK)
        return code;
    code = (shuf__format_is_text(o->format) ? write_text : write_binary)(&output, o->format, &shape,
                                                                         found);
    if (code == EX_OK)
        code = shuf__output_commit(&output);
    shuf__output_close(&output);
    return code;
}

/* ---- JSON ------------------------------------------------------------------- */

static json_t *json_array_of(const uint64_t *numbers, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer((json_int_t)numbers[i]));
    return array;
}

static int print_look_up_json(const struct shuf__index_options *o, const uint64_t *found,
                              uint64_t seen_ns)
{
    json_t *object = json_object();
    const bool inverse = o->direction == SHUF_INVERSE;
    json_t *given = json_array_of(o->places.at, o->places.count);
    json_t *looked_up = json_array_of(found, o->places.count);
    if (o->permutation.algorithm)
        shuf__json_text(object, "algorithm", o->permutation.algorithm);
    shuf__json_integer(object, "n", o->permutation.n);
    shuf__json_seed(object, o->permutation.key, o->permutation.seed);
    shuf__json_decimal(object, "epoch", o->permutation.epoch);
    json_object_set_new(object, "inverse", json_boolean(inverse));
    json_object_set_new(object, "positions", inverse ? looked_up : given);
    json_object_set_new(object, "values", inverse ? given : looked_up);
    shuf__json_seconds(object, "total_seconds", seen_ns);
    shuf__json_print(object, stdout);
    return EX_OK;
}

/* ---- The verb --------------------------------------------------------------- */

/* Checks n by a request for a slice of one value, because that has the same limits of n. */
static int check_permutation_n(const shuf_permutation *permutation)
{
    char message[256];
    shuf_shape shape;
    shuf_permutation one = *permutation;
    one.view = SHUF_VIEW_SLICE;
    one.count = one.stride = 1;
    shuf_status status = shuf_permutation_shape(&one, &shape, message, sizeof message);
    return status ? shuf__fail_with(shuf__exit_code(status), "%s", message) : EX_OK;
}

/* Checks the positions here, so a wrong one is reported even if no daemon answers. */
static int check_places(const shuf_permutation *permutation, const struct shuf__places *places)
{
    int code = check_permutation_n(permutation);
    for (size_t i = 0; i < places->count && code == EX_OK; i++)
        if (places->at[i] >= permutation->n)
            code = shuf__fail_with(EX_USAGE, "at[%zu] %" PRIu64 ": expected less than n = %" PRIu64,
                                   i, places->at[i], permutation->n);
    return code;
}

/* `found` may be the list itself. But --json prints both, so it needs a separate array. */
static int look_up(shuf *daemon, const struct shuf__index_options *o, uint64_t *found)
{
    uint64_t begin = shuf__clock_ns();
    shuf__progress_phase("computing", 0);
    shuf_status status =
        shuf_index(daemon, &o->permutation, o->direction, o->places.at, o->places.count, found);
    uint64_t seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &o->daemon);
    return o->daemon.json ? print_look_up_json(o, found, seen_ns) : write_found(o, found);
}

static int index_places(shuf *daemon, const struct shuf__index_options *o)
{
    const struct shuf__places *places = &o->places;
    uint64_t *copy = NULL;
    if (o->daemon.json && !(copy = malloc((places->count + 1) * sizeof *copy)))
        return shuf__fail_with(EX_OSERR, "--at: out of memory for %zu numbers", places->count);
    int code = look_up(daemon, o, copy ? copy : places->at);
    free(copy);
    return code;
}

int shuf__verb_index(int argc, char **argv)
{
    struct shuf__index_options options;
    shuf *daemon;
    shuf__index_options(argc, argv, &options);
    int code = options.read_places ? shuf__index_read_places(&options.places) : EX_OK;
    if (code == EX_OK)
        code = check_places(&options.permutation, &options.places);
    if (code == EX_OK) {
        code = shuf__connect_or_fail(&daemon, &options.daemon);
        if (code == EX_OK)
            code = index_places(daemon, &options);
        shuf_close(daemon);
    }
    free(options.places.at);
    return code;
}
