/* SPDX-License-Identifier: MIT
 *
 * See deliver.h.
 */
#include "deliver.h"

#include "exit.h"
#include "npy.h"
#include "output.h"
#include "progress.h"
#include "summary.h"
#include "text.h"
#include "view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* What the stream of values passes on its way to the file. */
struct writer {
    struct shuf__output output;
    struct shuf__progress progress;
    enum shuf__format format;
    struct shuf__text text;
};

static bool take(void *context, const void *bytes, size_t size)
{
    struct writer *w = context;
    bool taken = w->format == SHUF__FORMAT_TEXT ? shuf__text_write(&w->text, bytes, size)
                                                : shuf__output_write(&w->output, bytes, size);
    shuf__progress_add(&w->progress, size);
    return taken;
}

static int start(struct writer *w, const struct shuf__order *o)
{
    char header[SHUF__NPY_HEADER_MAX];
    size_t head = 0;
    w->format = o->format;
    shuf__progress_start(&w->progress, o->shape.bytes, !isatty(w->output.fd));
    if (o->format == SHUF__FORMAT_TEXT) {
        shuf__text_start(&w->text, &w->output, &o->shape, o->batch);
        return EX_OK; /* its size is not known beforehand */
    }
    if (o->format == SHUF__FORMAT_NPY)
        head = shuf__npy_header(&o->shape, o->batch, header);
    int code = shuf__output_reserve(&w->output, head + o->shape.bytes);
    if (code == EX_OK && !shuf__output_write(&w->output, header, head))
        code = shuf__output_failed(&w->output);
    return code;
}

static int finish(struct writer *w)
{
    if (w->format == SHUF__FORMAT_TEXT && !shuf__text_flush(&w->text))
        return shuf__output_failed(&w->output);
    return shuf__output_commit(&w->output);
}

/* What is known when all is done. */
struct outcome {
    shuf_result result;     /* where there is no */
    struct shuf__view view; /* of it */
};

static shuf_status stream(shuf *daemon, const struct shuf__order *o, shuf_sink sink, void *context,
                          shuf_result *result)
{
    return o->numbers ? shuf_draw_stream(daemon, o->numbers, sink, context, result)
                      : shuf_permute_stream(daemon, o->permutation, sink, context, result);
}

static shuf_status pass_values(struct writer *w, shuf *daemon, const struct shuf__order *o,
                               struct outcome *outcome)
{
    if (o->transport)
        return shuf__view_read(daemon, o, take, w, &outcome->view);
    return stream(daemon, o, take, w, &outcome->result);
}

/* What does not fit may do so in parts. */
static int fail_call(shuf *daemon, shuf_status status, const struct shuf__order *o)
{
    const bool parts = o->numbers || (!o->batch && o->permutation->view != SHUF_VIEW_SHARD);
    if (status == SHUF_NO_MEMORY && parts)
        return shuf__fail_with(shuf__exit_code(status),
                               "%s; for %" PRIu64 " values in parts: --count and --offset",
                               shuf_message(daemon), o->shape.count);
    return shuf__fail_call(daemon, status, &o->daemon);
}

static int fill(struct writer *w, shuf *daemon, const struct shuf__order *o,
                struct outcome *outcome)
{
    int code = start(w, o);
    if (code != EX_OK)
        return code;
    shuf_status status = pass_values(w, daemon, o, outcome);
    shuf__progress_end(&w->progress);
    if (w->output.cause != 0)
        return shuf__output_failed(&w->output);
    return status == SHUF_OK ? finish(w) : fail_call(daemon, status, o);
}

static int write_values(shuf *daemon, const struct shuf__order *o, struct outcome *outcome)
{
    static struct writer writer;
    int code = shuf__output_open(&writer.output, o->out, o->format != SHUF__FORMAT_TEXT);
    if (code != EX_OK)
        return code;
    code = fill(&writer, daemon, o, outcome);
    shuf__output_close(&writer.output);
    return code;
}

static int end(shuf *daemon, shuf_status status, const struct shuf__order *o)
{
    return status == SHUF_OK ? EX_OK : fail_call(daemon, status, o);
}

static int summarize(shuf *daemon, const struct shuf__order *o, struct outcome *outcome)
{
    shuf_status status = o->transport ? shuf__view_read(daemon, o, NULL, NULL, &outcome->view)
                         : o->numbers ? shuf_draw_summary(daemon, o->numbers, &outcome->result)
                                      : shuf_summarize(daemon, o->permutation, &outcome->result);
    return end(daemon, status, o);
}

/* A summary that was asked for beside the values and did not arrive is a failure, though
 * perhaps nobody can be told why; main() sees to standard output. */
static int check_error_stream(void)
{
    return ferror(stderr) ? shuf__fail_with(EX_IOERR, "standard error: %s", strerror(errno))
                          : EX_OK;
}

static int report(const struct shuf__summary *summary)
{
    const struct shuf__order *o = summary->order;
    const bool standard = shuf__order_to_stdout(o);
    if (o->prefetch) {
        (o->daemon.json ? shuf__ready_json : shuf__ready_print)(summary, stdout);
        return EX_OK;
    }
    if (o->daemon.json)
        shuf__summary_json(summary, standard ? stderr : stdout);
    else if (!standard)
        shuf__summary_print(summary, stdout);
    else if (o->numbers && o->numbers->moments) /* which were asked for by name */
        shuf__summary_print(summary, stderr);
    return standard ? check_error_stream() : EX_OK;
}

/* What is not sent: it stays in the daemon, in memory that fits the transport. */
static int prefetch(shuf *daemon, const struct shuf__order *o, struct outcome *outcome)
{
    shuf_status status = o->transport > SHUF_INLINE
                             ? shuf__view_read(daemon, o, NULL, NULL, &outcome->view)
                             : stream(daemon, o, NULL, NULL, &outcome->result);
    return end(daemon, status, o);
}

static int deliver(shuf *daemon, const struct shuf__order *o)
{
    static struct outcome outcome;
    const shuf_lease *lease = &outcome.view.lease;
    uint64_t begin = shuf__clock_ns();
    int code = (o->prefetch ? prefetch : o->out ? write_values : summarize)(daemon, o, &outcome);
    uint64_t seen_ns = shuf__clock_ns() - begin;
    if (code != EX_OK)
        return code;
    if (!lease->transport)
        code = report(&(struct shuf__summary){o, &outcome.result, NULL, seen_ns});
    else if (outcome.view.right)
        code = report(&(struct shuf__summary){o, &lease->result, lease, seen_ns});
    else
        code = shuf__fail_with(EX_PROTOCOL,
                               "--transport %s: the first or last values read are not "
                               "those that the daemon told of",
                               shuf_transport_name(lease->transport));
    return code;
}

int shuf__deliver(const struct shuf__order *order)
{
    shuf *daemon;
    int code = shuf__connect_or_fail(&daemon, &order->daemon);
    if (code == EX_OK)
        code = deliver(daemon, order);
    shuf_close(daemon);
    return code;
}
