/* SPDX-License-Identifier: MIT
 *
 * `shufctl shuffle`: shuffles the records of a file by a permutation. It reads them into a buffer
 * of the daemon, leases the shuffled result, and writes this to the output.
 */
#include "array.h"
#include "clock.h"
#include "connect.h"
#include "describe_request.h"
#include "exit.h"
#include "json.h"
#include "output.h"
#include "output_path.h"
#include "progress.h"
#include "shuffle_options.h"
#include "units.h"
#include "verbs.h"

#include <inttypes.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    PART = 4 << 20,  /* bytes between two updates of the progress bar */
    LOSSES_MAX = 16, /* daemons that one shuffle may lose */
};

struct shuffle_run {
    const struct shuf__shuffle_options *options;
    struct shuf__array array;
    struct shuf__output output;
    shuf_lease *buffer;
    shuf_result result;
    uint64_t seen_ns;
    bool lost; /* a daemon was lost */
    int code;  /* the exit code of a failure on this side */
};

/* ---- Input ---------------------------------------------------------------------- */

/* Reads into the buffer itself where it is mapped. */
static shuf_status fill_part(shuf *daemon, struct shuffle_run *run, uint64_t offset, size_t size)
{
    static char part[PART];
    const shuf_lease *buffer = run->buffer;
    char *to = buffer->buffer ? (char *)buffer->buffer + offset : part;
    run->code = shuf__array_read(&run->array, offset, size, to);
    if (run->code != EX_OK || buffer->buffer)
        return SHUF_OK;
    return shuf_lease_write(daemon, buffer, offset, size, part);
}

static shuf_status fill_buffer(shuf *daemon, struct shuffle_run *run)
{
    struct shuf__progress progress;
    const uint64_t all = run->array.bytes;
    shuf_status status = SHUF_OK;
    shuf__progress_start(&progress, all, true);
    for (uint64_t done = 0; done < all && status == SHUF_OK && run->code == EX_OK;) {
        const size_t size = all - done < PART ? (size_t)(all - done) : PART;
        status = fill_part(daemon, run, done, size);
        done += size;
        shuf__progress_add(&progress, size);
    }
    shuf__progress_end(&progress);
    return status;
}

/* After a failure, shuf_close() ends the leases: a release would replace the message. The next try
 * releases the buffer of this one. */
static shuf_status shuffle_file_once(shuf *daemon, struct shuffle_run *run, shuf_lease **shuffled)
{
    shuf_records records = run->options->records;
    records.n = run->array.records;
    records.record = run->array.record;
    shuf_status status = shuf_buffer_take(daemon, run->array.bytes, NULL, &run->buffer);
    if (status == SHUF_OK)
        status = fill_buffer(daemon, run);
    if (status == SHUF_OK && run->code == EX_OK)
        status = shuf_shuffle_lease(daemon, &records, run->buffer, NULL, shuffled);
    return status == SHUF_OK ? shuf_lease_release(daemon, &run->buffer) : status;
}

/* shuf_daemon_status() waits for the next daemon as long as the library's reconnect time. */
static shuf_status shuffle_file(shuf *daemon, struct shuffle_run *run, shuf_lease **shuffled)
{
    shuf_daemon ignored;
    shuf_status status = shuffle_file_once(daemon, run, shuffled);
    for (int losses = 0; status == SHUF_NO_DAEMON && losses < LOSSES_MAX; losses++) {
        run->lost = true;
        if ((status = shuf_daemon_status(daemon, &ignored)) != SHUF_OK)
            break;
        status = shuffle_file_once(daemon, run, shuffled);
    }
    return status;
}

/* ---- Output --------------------------------------------------------------------- */

static int write_records(struct shuffle_run *run, const shuf_lease *shuffled)
{
    struct shuf__progress progress;
    struct shuf__output *output = &run->output;
    const uint64_t all = run->array.bytes;
    bool written = true;
    int code = shuf__output_reserve(output, run->array.header_size + all);
    if (code != EX_OK)
        return code;
    if (run->array.header)
        written = shuf__output_write(output, run->array.header, run->array.header_size);
    shuf__progress_start(&progress, all, !isatty(output->fd));
    for (uint64_t done = 0; done < all && written;) {
        const size_t size = all - done < PART ? (size_t)(all - done) : PART;
        written = shuf__output_write(output, (const char *)shuffled->data + done, size);
        done += size;
        shuf__progress_add(&progress, size);
    }
    shuf__progress_end(&progress);
    return written ? shuf__output_commit(output) : shuf__output_failed(output);
}

/* ---- Summary ------------------------------------------------------------- */

static const char *format_name(const struct shuffle_run *run)
{
    return run->array.header ? "npy" : "raw";
}

static void print_shuffle(const struct shuffle_run *run)
{
    char text[SHUF__UNITS_TEXT];
    const shuf_result *r = &run->result;
    const shuf_records *records = &run->options->records;
    const uint64_t ns = r->device_ns;
    shuf__print_line(stdout, "written", "%s (%s)", run->options->out, format_name(run));
    shuf__print_line(stdout, "backend", "%s, %s", r->backend, r->device);
    shuf__print_line(stdout, "algorithm", "%s%s", r->algorithm,
                     records->inverse ? ", inverse" : "");
    shuf__print_line(stdout, "seed", "%" PRIu64, records->seed);
    shuf__print_line(stdout, "epoch", "%" PRIu64, records->epoch);
    shuf__print_line(stdout, "records", "%" PRIu64 " of %" PRIu64 " byte%s (%s)",
                     run->array.records, run->array.record, run->array.record == 1 ? "" : "s",
                     shuf__units_bytes(text, run->array.bytes));
    shuf__print_line(stdout, "on device", "%s", shuf__units_time(text, ns));
    shuf__print_line(stdout, "seen", "%s", shuf__units_time(text, run->seen_ns));
    if (ns > 0)
        shuf__units_bytes(text, (uint64_t)((double)run->array.bytes * 1e9 / (double)ns));
    shuf__print_line(stdout, "rate", "%s%s on device", ns > 0 ? text : "-", ns > 0 ? "/s" : "");
}

static void print_shuffle_json(const struct shuffle_run *run, FILE *to)
{
    json_t *object = json_object();
    const shuf_result *r = &run->result;
    const shuf_records *records = &run->options->records;
    shuf__json_text(object, "backend", r->backend);
    shuf__json_text(object, "device", r->device);
    shuf__json_text(object, "algorithm", r->algorithm);
    shuf__json_integer(object, "n", run->array.records);
    shuf__json_integer(object, "record", run->array.record);
    shuf__json_decimal(object, "seed", records->seed);
    shuf__json_decimal(object, "epoch", records->epoch);
    json_object_set_new(object, "inverse", json_boolean(records->inverse));
    shuf__json_integer(object, "bytes", run->array.bytes);
    shuf__json_seconds(object, "device_seconds", r->device_ns);
    shuf__json_seconds(object, "seen_seconds", run->seen_ns);
    shuf__json_text(object, "in", run->options->in);
    shuf__json_text(object, "out", run->options->out);
    shuf__json_text(object, "format", format_name(run));
    shuf__json_print(object, to);
}

static void print_shuffle_summary(const struct shuffle_run *run)
{
    const bool to_stdout = shuf__output_path_descriptor(run->options->out) == STDOUT_FILENO;
    if (run->options->daemon.json)
        print_shuffle_json(run, to_stdout ? stderr : stdout);
    else if (!to_stdout)
        print_shuffle(run);
}

/* ---- The verb ------------------------------------------------------------------ */

/* Only the daemon knows the algorithms. Checks the name before the array is copied. */
static shuf_status check_algorithm(shuf *daemon, const char *name)
{
    uint32_t value;
    const shuf_permutation one = {.algorithm = name, .n = 1};
    return name ? shuf_permute(daemon, &one, &value, sizeof value, NULL) : SHUF_OK;
}

/* The daemon checks this too, but only after the array is copied. */
static int check_host_memory(shuf *daemon, const struct shuffle_run *run)
{
    shuf_daemon now;
    const uint64_t bytes = run->array.bytes;
    shuf_status status = shuf_daemon_status(daemon, &now);
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &run->options->daemon);
    if (bytes <= now.host_limit / 2)
        return EX_OK;
    return shuf__fail_with(EX_OSERR,
                           "--in %s: %" PRIu64
                           " bytes, and as many for the shuffled copy: expected "
                           "at most %" PRIu64 " together, all that results may hold (host_memory)",
                           run->options->in, bytes, now.host_limit);
}

static int write_shuffled(shuf *daemon, struct shuffle_run *run)
{
    shuf_lease *shuffled = NULL;
    const uint64_t begin = shuf__clock_ns();
    shuf_status status = shuffle_file(daemon, run, &shuffled);
    if (status == SHUF_NO_DAEMON && run->lost)
        return shuf__fail_with(shuf__exit_code(status), "the daemon was lost; %s",
                               shuf_message(daemon));
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &run->options->daemon);
    if (run->code == EX_OK)
        run->code = write_records(run, shuffled);
    run->seen_ns = shuf__clock_ns() - begin;
    if (run->code != EX_OK)
        return run->code;
    run->result = shuffled->result;
    print_shuffle_summary(run);
    return EX_OK;
}

static int run_shuffle(shuf *daemon, struct shuffle_run *run)
{
    shuf_status status = check_algorithm(daemon, run->options->records.algorithm);
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &run->options->daemon);
    int code = check_host_memory(daemon, run);
    if (code == EX_OK)
        code = shuf__output_open(&run->output, run->options->out, true);
    if (code != EX_OK)
        return code;
    code = write_shuffled(daemon, run);
    shuf__output_close(&run->output);
    return code;
}

int shuf__verb_shuffle(int argc, char **argv)
{
    struct shuf__shuffle_options options;
    struct shuffle_run run = {.options = &options};
    shuf *daemon;
    shuf__shuffle_options(argc, argv, &options);
    int code = shuf__array_open(&run.array, options.in, options.record);
    if (code != EX_OK)
        return code;
    code = shuf__connect_or_fail(&daemon, &options.daemon);
    if (code == EX_OK)
        code = run_shuffle(daemon, &run);
    shuf_close(daemon);
    shuf__array_close(&run.array);
    return code;
}
