/* SPDX-License-Identifier: MIT
 *
 * See run_request.h.
 */
#include "run_request.h"

#include "clock.h"
#include "connect.h"
#include "describe_request.h"
#include "exit.h"
#include "format_value.h"
#include "progress.h"
#include "start_command.h"
#include "units.h"
#include "value_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* The result, or its lease. */
struct outcome {
    shuf_result result; /* without a lease */
    struct shuf__lease_reading reading;
};

static shuf_status call_each(shuf *daemon, const struct shuf__output_options *o, shuf_sink sink,
                             void *context, shuf_result *result)
{
    return shuf_each(daemon, o->request, sink, context, result);
}

/* The inline transport copies, so it needs no lease: the copy arrives in parts. */
static bool takes_lease(const struct shuf__output_options *o)
{
    return o->transport > SHUF_INLINE;
}

static shuf_status receive_values(struct shuf__value_file *file, shuf *daemon,
                                  const struct shuf__output_options *o, struct outcome *outcome)
{
    if (takes_lease(o))
        return shuf__read_by_lease(daemon, o, shuf__value_file_write, file, &outcome->reading);
    return call_each(daemon, o, shuf__value_file_write, file, &outcome->result);
}

/* Adds advice to NO_MEMORY: only a lease and the cache need room for the whole result. */
static int fail_request(shuf *daemon, shuf_status status, const struct shuf__output_options *o)
{
    if (status == SHUF_NO_MEMORY && (takes_lease(o) || o->prefetch))
        return shuf__fail_with(shuf__exit_code(status),
                               "%s; without %s the result is computed in parts",
                               shuf_message(daemon), o->prefetch ? "--prefetch" : "--transport");
    return shuf__fail_call(daemon, status, &o->daemon);
}

static int fill_file(struct shuf__value_file *file, shuf *daemon,
                     const struct shuf__output_options *o, struct outcome *outcome)
{
    shuf_status status = receive_values(file, daemon, o, outcome);
    if (file->output.cause != 0)
        return shuf__output_failed(&file->output);
    return status == SHUF_OK ? shuf__value_file_commit(file) : fail_request(daemon, status, o);
}

static int write_values(shuf *daemon, const struct shuf__output_options *o, struct outcome *outcome)
{
    static struct shuf__value_file file;
    int code = shuf__value_file_open(&file, o->out, o->format, &o->shape, o->batch);
    if (code != EX_OK)
        return code;
    code = fill_file(&file, daemon, o, outcome);
    shuf__value_file_close(&file);
    return code;
}

static int to_exit_code(shuf *daemon, shuf_status status, const struct shuf__output_options *o)
{
    return status == SHUF_OK ? EX_OK : fail_request(daemon, status, o);
}

static int request_summary(shuf *daemon, const struct shuf__output_options *o,
                           struct outcome *outcome)
{
    shuf_status status = takes_lease(o)
                             ? shuf__read_by_lease(daemon, o, NULL, NULL, &outcome->reading)
                             : shuf_summarize(daemon, o->request, &outcome->result);
    return to_exit_code(daemon, status, o);
}

int shuf__check_error_stream(void)
{
    return ferror(stderr) ? shuf__fail_with(EX_IOERR, "standard error: %s", strerror(errno))
                          : EX_OK;
}

static void print_lines(shuf *daemon, const struct shuf__summary *summary)
{
    shuf__summary_print(summary, stdout);
    if (daemon && !summary->options->out)
        shuf__head_line_print(daemon, summary->options);
}

/* True if --quiet suppresses the summary. This is so if the values go to a file or stay in the
 * daemon, and no option requests a summary. */
static bool is_unasked(const struct shuf__output_options *o)
{
    const bool wants_moments = shuf__wants_moments(o->request);
    return o->daemon.quiet && !o->daemon.json && !wants_moments && (o->out || o->prefetch);
}

int shuf__print_summary(shuf *daemon, const struct shuf__summary *summary)
{
    const struct shuf__output_options *o = summary->options;
    const bool to_stdout = shuf__writes_to_stdout(o);
    if (is_unasked(o))
        return EX_OK;
    if (o->prefetch) {
        (o->daemon.json ? shuf__ready_json : shuf__ready_print)(summary, stdout);
        return EX_OK;
    }
    if (o->daemon.json)
        shuf__summary_json(summary, to_stdout ? stderr : stdout);
    else if (!to_stdout)
        print_lines(daemon, summary);
    else if (shuf__wants_moments(o->request)) /* the user gave --summary */
        shuf__summary_print(summary, stderr);
    return to_stdout ? shuf__check_error_stream() : EX_OK;
}

/* The settings that are too small for a result that the daemon would keep: in device memory, and in
 * host memory. */
enum limiting { CACHE, MEMORY, BOTH };
static const struct {
    const char *keys, *flags;
} limiting[2][3] = {
    {{"device_cache", "--device-cache"},
     {"device_memory", "--device-memory"},
     {"device_cache and device_memory", "--device-cache and --device-memory"}},
    {{"host_cache", "--host-cache"},
     {"host_memory", "--host-memory"},
     {"host_cache and host_memory", "--host-cache and --host-memory"}},
};

/* Rejects a prefetch of a result that the daemon would not keep. */
static int check_kept(shuf *daemon, const struct shuf__output_options *o)
{
    shuf_daemon now;
    char bytes[SHUF__UNITS_TEXT], most[SHUF__UNITS_TEXT];
    shuf_status status = shuf_daemon_status(daemon, &now);
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &o->daemon);
    const bool host = o->transport == SHUF_MEMFD || strcmp(now.backend, "cpu") == 0;
    const uint64_t limit = host ? now.host_idle_limit : now.device_idle_limit;
    const uint64_t memory = host ? now.host_limit : now.memory_limit;
    const enum limiting by = limit == memory ? MEMORY : o->shape.bytes > memory ? BOTH : CACHE;
    if (o->shape.bytes <= limit)
        return EX_OK;
    char advice[sizeof now.configuration + SHUF__START_COMMAND + 128], reload[SHUF__START_COMMAND];
    shuf__reload_command(shuf_socket(daemon), &now, reload);
    if (*now.configuration)
        snprintf(advice, sizeof advice,
                 "raise %s in %s, then %s; if shufd was started with %s, start it again with a "
                 "larger value",
                 limiting[host][by].keys, now.configuration, reload, limiting[host][by].flags);
    else
        snprintf(advice, sizeof advice, "it has read no configuration: start it with a larger %s",
                 limiting[host][by].flags);
    return shuf__fail_with(
        EX_OSERR, "--prefetch: the result has %s, but the daemon keeps at most %s: %s",
        shuf__units_memory(bytes, o->shape.bytes), shuf__units_memory(most, limit), advice);
}

/* The daemon computes the result and keeps it in memory that fits the transport. */
static int prefetch_result(shuf *daemon, const struct shuf__output_options *o,
                           struct outcome *outcome)
{
    const int code = check_kept(daemon, o);
    if (code != EX_OK)
        return code;
    shuf_status status = takes_lease(o)
                             ? shuf__read_by_lease(daemon, o, NULL, NULL, &outcome->reading)
                             : call_each(daemon, o, NULL, NULL, &outcome->result);
    return to_exit_code(daemon, status, o);
}

static int run_connected(shuf *daemon, const struct shuf__output_options *o)
{
    static struct outcome outcome;
    const shuf_lease copied = {.transport = SHUF_INLINE};
    const shuf_lease *lease = &outcome.reading.lease;
    uint64_t begin = shuf__clock_ns();
    shuf__progress_phase("computing", 0);
    int code = (o->prefetch ? prefetch_result
                : o->out    ? write_values
                            : request_summary)(daemon, o, &outcome);
    uint64_t seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (code != EX_OK)
        return code;
    if (!lease->transport)
        code = shuf__print_summary(
            daemon,
            &(struct shuf__summary){o, &outcome.result, o->transport ? &copied : NULL, seen_ns});
    else if (outcome.reading.ends_match)
        code =
            shuf__print_summary(daemon, &(struct shuf__summary){o, &lease->result, lease, seen_ns});
    else
        code = shuf__fail_with(EX_PROTOCOL,
                               "--transport %s: the first or last values read are not "
                               "those of the reply",
                               shuf_transport_name(lease->transport));
    return code;
}

int shuf__run_request(const struct shuf__output_options *options)
{
    shuf *daemon;
    int code = shuf__connect_or_fail(&daemon, &options->daemon);
    if (code == EX_OK)
        code = run_connected(daemon, options);
    shuf_close(daemon);
    return code;
}

/* ---- the head line ---- */

enum {
    BYTES_MOST = 1 << 30, /* bytes of a result; a larger one may be slow: the cache may lack it */
    KEY_COLUMNS = 12,
};

struct head {
    unsigned width; /* bytes of a value */
    size_t bytes;
    uint8_t values[SHUF__COLUMNS_MOST * sizeof(uint64_t)];
};

static bool take_chunk(void *context, const void *bytes, size_t size)
{
    struct head *head = context;
    const size_t room = sizeof head->values - head->bytes;
    const size_t taken = size < room ? size : room;
    memcpy(head->values + head->bytes, bytes, taken);
    head->bytes += taken;
    return head->bytes < sizeof head->values;
}

/* Prints the values that fit a line of `room` columns, and "..." if there are more. */
static void print_values(const struct head *head, const shuf_shape *shape, size_t room)
{
    char line[SHUF__COLUMNS_MOST + 8] = "", text[SHUF__VALUE_TEXT];
    const uint64_t all = shape->rows * shape->count;
    size_t used = 0;
    uint64_t shown = 0;
    for (; shown < head->bytes / head->width; shown++) {
        uint64_t bits = 0; /* little-endian: fewer bytes fill its low end */
        memcpy(&bits, head->values + shown * head->width, head->width);
        const size_t length = shuf__value_text(shape->dtype, bits, text);
        const size_t rest = shown + 1 < all ? strlen(" ...") : 0;
        if (used + length + 1 + rest > room)
            break;
        used += (size_t)sprintf(line + used, "%s%s", shown > 0 ? " " : "", text);
    }
    if (shown > 0)
        shuf__print_line(stdout, "values", "%s%s", line, shown < all ? " ..." : "");
}

void shuf__head_line_print(shuf *daemon, const struct shuf__output_options *o)
{
    static struct head head;
    const size_t columns = shuf__terminal_columns(STDOUT_FILENO);
    if (!isatty(STDOUT_FILENO) || o->shape.bytes > BYTES_MOST || columns <= KEY_COLUMNS)
        return;
    head = (struct head){.width = o->shape.width};
    shuf_status status = shuf_each(daemon, o->request, take_chunk, &head, NULL);
    if (status == SHUF_OK || status == SHUF_CANCELLED)
        print_values(&head, &o->shape, columns - KEY_COLUMNS);
}

/* ---- leases ---- */

enum { CHUNK = 1 << 20 };

static shuf_status read_chunks(shuf *daemon, const shuf_lease *lease, shuf_sink sink, void *context)
{
    static char chunk[CHUNK];
    uint64_t all = lease->result.shape.bytes;
    for (uint64_t done = 0; done < all;) {
        size_t size = all - done < sizeof chunk ? (size_t)(all - done) : sizeof chunk;
        shuf_status status = shuf_lease_read(daemon, lease, done, size, chunk);
        if (status != SHUF_OK)
            return status;
        if (!sink(context, chunk, size))
            return SHUF_CANCELLED;
        done += size;
    }
    return SHUF_OK;
}

/* Compares `count` values, from number `first` on, with those of the reply. */
static shuf_status compare_values(shuf *daemon, const shuf_lease *lease, uint64_t first,
                                  unsigned count, const uint64_t *expected, bool *match)
{
    unsigned width = lease->result.shape.width;
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0; /* little-endian: fewer bytes fill its low end */
        shuf_status status = shuf_lease_read(daemon, lease, (first + i) * width, width, &value);
        if (status != SHUF_OK)
            return status;
        *match = *match && value == expected[i];
    }
    return SHUF_OK;
}

static shuf_status compare_ends(shuf *daemon, const shuf_lease *lease, bool *match)
{
    const shuf_result *r = &lease->result;
    *match = true;
    shuf_status status = compare_values(daemon, lease, 0, r->n_first, r->first, match);
    if (status == SHUF_OK)
        status = compare_values(daemon, lease, r->shape.rows * r->shape.count - r->n_last,
                                r->n_last, r->last, match);
    return status;
}

shuf_status shuf__read_by_lease(shuf *daemon, const struct shuf__output_options *options,
                                shuf_sink sink, void *context, struct shuf__lease_reading *reading)
{
    const shuf_lease_options lease_options = {.transports = options->transport};
    shuf_lease *lease = NULL;
    shuf_status status = shuf_lease_take(daemon, options->request, &lease_options, &lease);
    if (status != SHUF_OK)
        return status;
    status = compare_ends(daemon, lease, &reading->ends_match);
    if (status == SHUF_OK && sink)
        status = read_chunks(daemon, lease, sink, context);
    reading->lease = *lease;
    if (status != SHUF_OK)
        return status; /* shuf_close() ends the lease; a release would replace the message */
    return shuf_lease_release(daemon, &lease);
}
