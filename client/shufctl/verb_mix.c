/* SPDX-License-Identifier: MIT
 *
 * `shufctl mix`: computes a mixture of data sets by weights, in this process.
 */
#include "clock.h"
#include "exit.h"
#include "json.h"
#include "output.h"
#include "progress.h"
#include "summary.h"
#include "units.h"
#include "value_file.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

enum { PART = 1 << 16 }; /* positions that are computed at once */

/* What stands at neighbouring positions of the request. */
struct part {
    uint64_t index[PART], epoch[PART], record[PART];
    uint32_t source[PART];
};

static struct part part;

static int fail_status(shuf_status status)
{
    return shuf__fail_with(shuf__exit_code(status), "%s", shuf_message(NULL));
}

/* Computes the places of the request, and passes them on in parts until `take` returns false.
 * `done` places came in earlier parts. */
static shuf_status each_part(const struct shuf__mix_options *o, const shuf_mixed *out,
                             bool (*take)(void *context, uint64_t done, size_t count),
                             void *context)
{
    for (uint64_t done = 0; done < o->count;) {
        const uint64_t left = o->count - done;
        const size_t count = left < PART ? (size_t)left : PART;
        const shuf_status status =
            shuf_mixture_fill(o->mixture, o->offset + done * o->stride, count, o->stride, 1, out);
        if (status != SHUF_OK)
            return status;
        if (!take(context, done, count))
            return SHUF_OK;
        done += count;
    }
    return SHUF_OK;
}

/* ---- The table ---- */

static bool print_part(void *context, uint64_t done, size_t count)
{
    const struct shuf__mix_options *o = context;
    for (size_t i = 0; i < count; i++)
        printf("%-19" PRIu64 " %-6" PRIu32 " %-12" PRIu64 " %" PRIu64 "\n",
               o->offset + (done + i) * o->stride, part.source[i], part.epoch[i], part.record[i]);
    return !ferror(stdout); /* main() reports it */
}

static int print_places(struct shuf__mix_options *o)
{
    const shuf_mixed out = {.source = part.source, .epoch = part.epoch, .record = part.record};
    printf("%-19s %-6s %-12s %s\n", "POSITION", "SOURCE", "EPOCH", "RECORD");
    const shuf_status status = each_part(o, &out, print_part, o);
    return status ? fail_status(status) : EX_OK;
}

/* ---- The counts ---- */

/* The part of the first `position` places that a source gets by the weights alone. */
static double share_wanted(const struct shuf__mix_options *o, size_t source, uint64_t position)
{
    double places = 0;
    for (size_t s = 0; s < o->stage_count && o->stages[s].first < position; s++) {
        const struct shuf__numbers *weights = &o->stages[s].weights.numerators;
        const bool last = s + 1 == o->stage_count || o->stages[s + 1].first > position;
        const uint64_t end = last ? position : o->stages[s + 1].first;
        uint64_t sum = 0;
        for (size_t i = 0; i < weights->count; i++)
            sum += weights->at[i];
        places += (double)(end - o->stages[s].first) * (double)weights->at[source] / (double)sum;
    }
    return places / (double)position;
}

static void print_counts(const struct shuf__mix_options *o, const uint64_t *counts,
                         uint64_t position)
{
    printf("%-8s %-19s %-13s %s\n", "SOURCE", "COUNT", "SHARE", "WANTED");
    for (size_t i = 0; i < o->sizes.count; i++) {
        char share[32];
        snprintf(share, sizeof share, "%.6g %%", 100.0 * (double)counts[i] / (double)position);
        printf("%-8zu %-19" PRIu64 " %-13s %.6g %%\n", i, counts[i], share,
               100 * share_wanted(o, i, position));
    }
}

/* ---- JSON ---- */

static json_t *source_json(const struct shuf__mix_options *o, size_t i)
{
    json_t *source = json_object();
    shuf__json_integer(source, "size", o->sizes.at[i]);
    shuf__json_integer(source, "epochs", o->epochs.at[i]);
    shuf__json_integer(source, "chunk", o->chunk.at[i]);
    shuf__json_integer(source, "window", o->window.at[i]);
    return source;
}

static json_t *request_json(const struct shuf__mix_options *o)
{
    json_t *object = json_object(), *sources = json_array(), *stages = json_array();
    for (size_t i = 0; i < o->sizes.count; i++)
        json_array_append_new(sources, source_json(o, i));
    for (size_t s = 0; s < o->stage_count; s++) {
        json_t *stage = json_object();
        shuf__json_integer(stage, "first", o->stages[s].first);
        json_object_set_new(stage, "weights",
                            shuf__json_array(o->stages[s].weights.numerators.at,
                                             o->stages[s].weights.numerators.count));
        json_array_append_new(stages, stage);
    }
    shuf__json_decimal(object, "seed", o->seed);
    shuf__json_integer(object, "block", o->block);
    json_object_set_new(object, "sources", sources);
    json_object_set_new(object, "stages", stages);
    json_object_set_new(object, "length",
                        o->length == SHUF__MIX_ENDLESS ? json_null()
                                                       : json_integer((json_int_t)o->length));
    shuf__json_integer(object, "offset", o->offset);
    shuf__json_integer(object, "count", o->count);
    shuf__json_integer(object, "stride", o->stride);
    return object;
}

struct columns {
    const struct shuf__mix_options *options;
    json_t *position, *source, *epoch, *record, *index;
};

static bool add_part(void *context, uint64_t done, size_t count)
{
    const struct columns *c = context;
    const struct shuf__mix_options *o = c->options;
    for (size_t i = 0; i < count; i++) {
        const uint64_t position = o->offset + (done + i) * o->stride;
        json_array_append_new(c->position, json_integer((json_int_t)position));
        json_array_append_new(c->source, json_integer((json_int_t)part.source[i]));
        json_array_append_new(c->epoch, json_integer((json_int_t)part.epoch[i]));
        json_array_append_new(c->record, json_integer((json_int_t)part.record[i]));
        json_array_append_new(c->index, json_integer((json_int_t)part.index[i]));
    }
    return true;
}

static int print_places_json(struct shuf__mix_options *o)
{
    const shuf_mixed out = {part.index, part.source, part.epoch, part.record};
    struct columns c = {o, json_array(), json_array(), json_array(), json_array(), json_array()};
    json_t *object = request_json(o), *places = json_object();
    json_object_set_new(places, "position", c.position);
    json_object_set_new(places, "source", c.source);
    json_object_set_new(places, "epoch", c.epoch);
    json_object_set_new(places, "record", c.record);
    json_object_set_new(places, "index", c.index);
    json_object_set_new(object, "places", places);
    const shuf_status status = each_part(o, &out, add_part, &c);
    if (status) {
        json_decref(object);
        return fail_status(status);
    }
    shuf__json_print(object, stdout);
    return EX_OK;
}

static void print_counts_json(const struct shuf__mix_options *o, const uint64_t *counts,
                              uint64_t position)
{
    json_t *object = request_json(o), *sources = json_object_get(object, "sources");
    for (size_t i = 0; i < o->sizes.count; i++) {
        json_t *source = json_array_get(sources, i);
        shuf__json_integer(source, "count", counts[i]);
        json_object_set_new(source, "share", json_real((double)counts[i] / (double)position));
        json_object_set_new(source, "wanted", json_real(share_wanted(o, i, position)));
    }
    shuf__json_print(object, stdout);
}

static int count_sources(struct shuf__mix_options *o)
{
    const uint64_t position = o->offset + o->count;
    uint64_t *counts = calloc(o->sizes.count, sizeof *counts);
    if (!counts)
        return shuf__fail_with(EX_OSERR, "--counts: out of memory for %zu sources", o->sizes.count);
    const shuf_status status = shuf_mixture_counts(o->mixture, position, counts);
    if (status == SHUF_OK)
        (o->daemon.json ? print_counts_json : print_counts)(o, counts, position);
    free(counts);
    return status ? fail_status(status) : EX_OK;
}

/* ---- Indices to a file ---- */

static bool write_part(void *file, uint64_t done, size_t count)
{
    (void)done;
    return shuf__value_file_write(file, part.index, count * sizeof *part.index);
}

static int fill_file(struct shuf__value_file *file, const struct shuf__mix_options *o)
{
    const shuf_status status = each_part(o, &(shuf_mixed){.index = part.index}, write_part, file);
    if (status != SHUF_OK)
        return fail_status(status);
    return file->output.cause ? shuf__output_failed(&file->output) : shuf__value_file_commit(file);
}

static int print_file_json(const struct shuf__mix_options *o, uint64_t bytes, uint64_t ns)
{
    json_t *object = request_json(o);
    const bool to_stdout = shuf__output_path_descriptor(o->out) == STDOUT_FILENO;
    shuf__json_text(object, "dtype", shuf__dtype_text(SHUF_U64));
    shuf__json_integer(object, "bytes", bytes);
    shuf__json_text(object, "out", o->out);
    shuf__json_text(object, "format", shuf__format_name(o->format));
    shuf__json_seconds(object, "total_seconds", ns);
    shuf__json_print(object, to_stdout ? stderr : stdout);
    return to_stdout ? shuf__check_error_stream() : EX_OK;
}

static void print_file(const struct shuf__mix_options *o, const shuf_shape *shape, uint64_t ns)
{
    char text[SHUF__UNITS_TEXT];
    shuf__print_line(stdout, "written", "%s (%s)", o->out, shuf__format_name(o->format));
    shuf__print_line(stdout, "sources", "%zu", o->sizes.count);
    shuf__print_line(stdout, "seed", "%" PRIu64, o->seed);
    shuf__print_line(stdout, "positions", "offset %" PRIu64 ", count %" PRIu64 ", stride %" PRIu64,
                     o->offset, o->count, o->stride);
    shuf__print_line(stdout, "shape", "%" PRIu64 " %s (%s)", shape->count,
                     shuf__dtype_text(shape->dtype), shuf__units_bytes(text, shape->bytes));
    shuf__print_line(stdout, "total", "%s", shuf__units_time(text, ns));
}

static int summarize_file(const struct shuf__mix_options *o, const shuf_shape *shape, uint64_t ns)
{
    if (o->daemon.json)
        return print_file_json(o, shape->bytes, ns);
    if (!o->daemon.quiet && shuf__output_path_descriptor(o->out) != STDOUT_FILENO)
        print_file(o, shape, ns);
    return EX_OK;
}

static int write_places(struct shuf__mix_options *o)
{
    static struct shuf__value_file file;
    const uint64_t begin = shuf__clock_ns();
    const shuf_shape shape = {1, o->count, SHUF_U64, sizeof(uint64_t), o->count * sizeof(uint64_t)};
    int code = shuf__value_file_open(&file, o->out, o->format, &shape, false);
    if (code != EX_OK)
        return code;
    code = fill_file(&file, o);
    shuf__value_file_close(&file);
    shuf__progress_end();
    return code == EX_OK ? summarize_file(o, &shape, shuf__clock_ns() - begin) : code;
}

/* ---- The verb ---- */

int shuf__verb_mix(int argc, char **argv)
{
    struct shuf__mix_options options;
    shuf__mix_options(argc, argv, &options);
    shuf__progress_set_quiet(options.daemon.quiet);
    const int code = (options.counts        ? count_sources
                      : options.out         ? write_places
                      : options.daemon.json ? print_places_json
                                            : print_places)(&options);
    shuf__mix_options_free(&options);
    return code;
}
