/* SPDX-License-Identifier: MIT
 *
 * `shufctl permute`: a summary of a permutation, or its values in a file.
 */
#include "exit.h"
#include "npy.h"
#include "output.h"
#include "permute_options.h"
#include "progress.h"
#include "summary.h"
#include "target.h"
#include "text.h"
#include "verb.h"

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

static int start(struct writer *w, const struct shuf__permute_options *o)
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

static int fill(struct writer *w, shuf *daemon, const struct shuf__permute_options *o,
                shuf_result *result)
{
    int code = start(w, o);
    if (code != EX_OK)
        return code;
    shuf_status status = shuf_permute_stream(daemon, &o->what, take, w, result);
    shuf__progress_end(&w->progress);
    if (w->output.cause != 0)
        return shuf__output_failed(&w->output);
    return status == SHUF_OK ? finish(w) : shuf__fail_call(daemon, status, &o->daemon);
}

static int write_values(shuf *daemon, const struct shuf__permute_options *o, shuf_result *result)
{
    static struct writer writer;
    int code = shuf__output_open(&writer.output, o->out, o->format != SHUF__FORMAT_TEXT);
    if (code != EX_OK)
        return code;
    code = fill(&writer, daemon, o, result);
    shuf__output_close(&writer.output);
    return code;
}

static int summarize(shuf *daemon, const struct shuf__permute_options *o, shuf_result *result)
{
    shuf_status status = shuf_summarize(daemon, &o->what, result);
    return status == SHUF_OK ? EX_OK : shuf__fail_call(daemon, status, &o->daemon);
}

/* Values on standard output leave no room there for a summary. */
static bool to_standard_output(const struct shuf__permute_options *o)
{
    return o->out && shuf__target_descriptor(o->out) == STDOUT_FILENO;
}

static void report(const struct shuf__summary *summary)
{
    const struct shuf__permute_options *o = summary->options;
    bool standard = to_standard_output(o);
    if (o->daemon.json)
        shuf__summary_json(summary, standard ? stderr : stdout);
    else if (!standard)
        shuf__summary_print(summary, stdout);
}

static int permute(shuf *daemon, const struct shuf__permute_options *o)
{
    shuf_result result;
    uint64_t begin = shuf__clock_ns();
    int code = o->out ? write_values(daemon, o, &result) : summarize(daemon, o, &result);
    if (code == EX_OK)
        report(&(struct shuf__summary){o, &result, shuf__clock_ns() - begin});
    return code;
}

int shuf__verb_permute(int argc, char **argv)
{
    struct shuf__permute_options options;
    shuf *daemon;
    shuf__permute_options(argc, argv, &options);
    options.what.fingerprint =
        options.daemon.json || !to_standard_output(&options); /* where it is told */
    int code = shuf__connect_or_fail(&daemon, &options.daemon);
    if (code == EX_OK)
        code = permute(daemon, &options);
    shuf_close(daemon);
    return code;
}
