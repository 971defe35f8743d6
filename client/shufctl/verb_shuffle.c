/* SPDX-License-Identifier: MIT
 *
 * `shufctl shuffle`: shuffles the records of a file by a permutation, in the memory of the daemon.
 * If the daemon has no room for the array and its copy, this process moves the records.
 */
#include "clock.h"
#include "connect.h"
#include "describe_request.h"
#include "exit.h"
#include "json.h"
#include "order_options.h"
#include "output_options.h"
#include "output_path.h"
#include "progress.h"
#include "shuffle_run.h"
#include "units.h"
#include "verbs.h"

#include <inttypes.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

struct shuffle {
    struct shuf__shuffle_run run;
    uint64_t seen_ns;
    bool mapped; /* by this process */
};

int shuf__shuffle_begin_output(struct shuf__shuffle_run *run)
{
    const struct shuf__array *array = &run->array;
    int code = shuf__output_reserve(&run->output, array->header_size + array->bytes);
    if (code == EX_OK && array->header &&
        !shuf__output_write(&run->output, array->header, array->header_size))
        code = shuf__output_failed(&run->output);
    return code;
}

/* ---- Summary ------------------------------------------------------------- */

static const char *format_name(const struct shuf__shuffle_run *run)
{
    return run->array.header ? "npy" : "raw";
}

/* The daemon computed the shuffled bytes or, with `mapped`, only the values of the permutation. */
static void print_compute(const struct shuffle *s)
{
    char text[SHUF__UNITS_TEXT], rate[SHUF__UNITS_TEXT];
    const struct shuf__array *array = &s->run.array;
    const uint64_t ns = s->run.result.device_ns;
    shuf__units_time(text, ns);
    if (s->mapped || ns == 0)
        shuf__print_line(stdout, "compute", "%s, %s", text,
                         shuf__units_rate(rate, array->records, ns));
    else
        shuf__print_line(
            stdout, "compute", "%s, %s/s", text,
            shuf__units_bytes(rate, (uint64_t)((double)array->bytes * 1e9 / (double)ns)));
}

static void print_shuffle(const struct shuffle *s)
{
    const struct shuf__shuffle_run *run = &s->run;
    char text[SHUF__UNITS_TEXT];
    const shuf_result *r = &run->result;
    const shuf_records *records = &run->options->records;
    shuf__print_line(stdout, "written", "%s (%s)", run->options->out, format_name(run));
    shuf__print_line(stdout, "backend", "%s, %s", r->backend, r->device);
    shuf__print_line(stdout, "algorithm", "%s%s", r->algorithm,
                     records->inverse ? ", inverse" : "");
    shuf__print_seed(stdout, records->key, records->seed);
    shuf__print_line(stdout, "epoch", "%" PRIu64, records->epoch);
    shuf__print_line(stdout, "records", "%" PRIu64 " of %" PRIu64 " byte%s (%s)",
                     run->array.records, run->array.record, run->array.record == 1 ? "" : "s",
                     shuf__units_bytes(text, run->array.bytes));
    shuf__print_line(stdout, "shuffled by", "%s", s->mapped ? "shufctl" : "the daemon");
    print_compute(s);
    shuf__print_line(stdout, "total", "%s", shuf__units_time(text, s->seen_ns));
}

static void print_shuffle_json(const struct shuffle *s, FILE *to)
{
    const struct shuf__shuffle_run *run = &s->run;
    json_t *object = json_object();
    const shuf_result *r = &run->result;
    const shuf_records *records = &run->options->records;
    shuf__json_text(object, "backend", r->backend);
    shuf__json_text(object, "device", r->device);
    shuf__json_text(object, "algorithm", r->algorithm);
    shuf__json_integer(object, "n", run->array.records);
    shuf__json_integer(object, "record", run->array.record);
    shuf__json_seed(object, records->key, records->seed);
    shuf__json_decimal(object, "epoch", records->epoch);
    json_object_set_new(object, "inverse", json_boolean(records->inverse));
    shuf__json_integer(object, "bytes", run->array.bytes);
    shuf__json_text(object, "shuffled_by", s->mapped ? "shufctl" : "daemon");
    shuf__json_seconds(object, "compute_seconds", r->device_ns);
    shuf__json_seconds(object, "total_seconds", s->seen_ns);
    shuf__json_text(object, "in", run->options->in);
    shuf__json_text(object, "out", run->options->out);
    shuf__json_text(object, "format", format_name(run));
    shuf__json_print(object, to);
}

static void print_shuffle_summary(const struct shuffle *s)
{
    const struct shuf__shuffle_run *run = &s->run;
    const bool to_stdout = shuf__output_path_descriptor(run->options->out) == STDOUT_FILENO;
    if (run->options->daemon.json)
        print_shuffle_json(s, to_stdout ? stderr : stdout);
    else if (!to_stdout && !run->options->daemon.quiet)
        print_shuffle(s);
}

/* ---- The verb ------------------------------------------------------------------ */

/* Lets the daemon check the name of the algorithm, which only the daemon knows, before the array is
 * copied. */
static shuf_status check_algorithm(shuf *daemon, const char *name)
{
    uint32_t value;
    const shuf_request one = {.permutation = {.algorithm = name, .n = 1}};
    return name ? shuf_copy(daemon, &one, &value, sizeof value, NULL) : SHUF_OK;
}

/* Writes an array of no bytes as it is. The daemon only checks the other options, by a permutation
 * of one record. */
static int write_empty(shuf *daemon, struct shuf__shuffle_run *run)
{
    uint32_t value;
    const shuf_records *records = &run->records;
    const shuf_request one = {.permutation = {.algorithm = records->algorithm,
                                              .n = 1,
                                              .seed = records->seed,
                                              .key = records->key,
                                              .epoch = records->epoch}};
    const shuf_status status = shuf_copy(daemon, &one, &value, sizeof value, &run->result);
    run->result.device_ns = 0;
    return status == SHUF_OK ? shuf__shuffle_begin_output(run)
                             : shuf__fail_call(daemon, status, &run->options->daemon);
}

static int write_shuffled(shuf *daemon, struct shuffle *s)
{
    const uint64_t begin = shuf__clock_ns();
    int code = s->run.array.bytes == 0 ? write_empty(daemon, &s->run)
                                       : shuf__shuffle_in_daemon(daemon, &s->run, &s->mapped);
    if (code == EX_OK && s->mapped)
        code = shuf__shuffle_mapped(daemon, &s->run);
    shuf__progress_phase("waiting for the disk", 0);
    if (code == EX_OK)
        code = shuf__output_commit(&s->run.output);
    s->seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (code == EX_OK)
        print_shuffle_summary(s);
    return code;
}

/* The output has the format of the input. */
static int check_suffix(const struct shuf__shuffle_run *run)
{
    const char *out = run->options->out, *suffix = shuf__suffix(out);
    const bool npy = run->array.header,
               as_in = strcasecmp(suffix, shuf__suffix(run->options->in)) == 0;
    if (shuf__output_path_is_direct(out) || !*suffix ||
        (npy ? strcasecmp(suffix, ".npy") == 0
             : as_in || strcasecmp(suffix, ".bin") == 0 || strcasecmp(suffix, ".raw") == 0))
        return EX_OK;
    return shuf__fail_with(
        EX_USAGE, "--out %s: suffix %s; the output is %s as the input, expected %s", out, suffix,
        npy ? "npy" : "raw", npy ? ".npy" : ".bin, .raw or the suffix of --in");
}

static int run_shuffle(shuf *daemon, struct shuffle *s)
{
    struct shuf__shuffle_run *run = &s->run;
    shuf_status status = check_algorithm(daemon, run->options->records.algorithm);
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &run->options->daemon);
    int code = shuf__output_open(&run->output, run->options->out, true);
    if (code != EX_OK)
        return code;
    code = write_shuffled(daemon, s);
    shuf__output_close(&run->output);
    return code;
}

int shuf__verb_shuffle(int argc, char **argv)
{
    struct shuf__shuffle_options options;
    struct shuffle s = {.run = {.options = &options}};
    shuf *daemon;
    shuf__shuffle_options(argc, argv, &options);
    shuf__progress_set_quiet(options.daemon.quiet);
    int code = shuf__array_open(&s.run.array, options.in, options.record);
    if (code != EX_OK)
        return code;
    s.run.records = options.records;
    s.run.records.n = s.run.array.records;
    s.run.records.record = s.run.array.record;
    code = check_suffix(&s.run);
    if (code == EX_OK) {
        code = shuf__connect_or_fail(&daemon, &options.daemon);
        if (code == EX_OK)
            code = run_shuffle(daemon, &s);
        shuf_close(daemon);
    }
    shuf__array_close(&s.run.array);
    return code;
}
