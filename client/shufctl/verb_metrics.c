/* SPDX-License-Identifier: MIT
 *
 * `shufctl metrics`: prints the metrics of the daemon.
 */
#include "verb_metrics.h"

#include "connect.h"
#include "error.h"
#include "exit.h"
#include "json.h"
#include "option.h"
#include "verb_options.h"
#include "verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* ---- Samples ---- */

/* Copies bytes up to the first one of `ends`, and returns its address; NULL if they do not fit. */
static const char *copy_until(const char *at, const char *ends, char *out, size_t room)
{
    const size_t length = strcspn(at, ends);
    if (length >= room || at[length] == '\0')
        return NULL;
    memcpy(out, at, length);
    out[length] = '\0';
    return at + length;
}

/* Reads the value of a label. Returns the address after its closing quote. */
static const char *read_value(const char *at, char *out, size_t room)
{
    size_t used = 0;
    for (; *at && *at != '"' && used + 1 < room; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            out[used++] = *at == 'n' ? '\n' : *at;
        } else {
            out[used++] = *at;
        }
    }
    out[used] = '\0';
    return *at == '"' ? at + 1 : NULL;
}

/* Reads the labels after an opening brace. Returns the address after the closing brace. */
static const char *read_labels(const char *at, struct shuf__metric_sample *sample)
{
    while (*at != '}') {
        if (sample->labels == SHUF__SAMPLE_LABELS)
            return NULL;
        struct shuf__metric_label *label = &sample->label[sample->labels++];
        if (!(at = copy_until(at, "=", label->name, sizeof label->name)) || at[1] != '"' ||
            !(at = read_value(at + 2, label->value, sizeof label->value)))
            return NULL;
        at += *at == ',';
    }
    return at + 1;
}

static const char *read_sample(const char *at, struct shuf__metric_sample *sample)
{
    char *end;
    sample->labels = 0;
    at = copy_until(at, "{ ", sample->name, sizeof sample->name);
    if (at && *at == '{')
        at = read_labels(at + 1, sample);
    if (!at || *at != ' ')
        return NULL;
    sample->value = strtod(at, &end);
    return end == at || *end != '\n' ? NULL : end + 1;
}

bool shuf__metric_sample_next(const char **at, struct shuf__metric_sample *sample)
{
    while (**at == '#') {
        const char *end = strchr(*at, '\n');
        *at = end ? end + 1 : *at + strlen(*at);
    }
    const char *next = **at ? read_sample(*at, sample) : NULL;
    if (next)
        *at = next;
    return next != NULL;
}

const char *shuf__metric_label_of(const struct shuf__metric_sample *sample, const char *name)
{
    for (unsigned i = 0; i < sample->labels; i++)
        if (strcmp(sample->label[i].name, name) == 0)
            return sample->label[i].value;
    return "";
}

/* ---- The verb ---- */

enum key { KEY_OPENMETRICS = 0x400 };

struct metrics_options {
    struct shuf__daemon_options daemon;
    shuf_metrics_format format;
};

static const struct argp_option option_table[] = {
    {"openmetrics", KEY_OPENMETRICS, NULL, 0,
     "Print OpenMetrics, with exemplars, instead of the text format of Prometheus", 0},
    {0},
};

static error_t parse_metrics_option(int key, char *text, struct argp_state *state)
{
    struct metrics_options *options = state->input;
    (void)text;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case KEY_OPENMETRICS:
        options->format = SHUF_OPENMETRICS;
        return 0;
    case ARGP_KEY_END:
        if (options->daemon.json && options->format == SHUF_OPENMETRICS)
            shuf__option_refuse_both(state, "--json", "--openmetrics");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static json_t *make_sample(const struct shuf__metric_sample *sample)
{
    json_t *object = json_object(), *labels = json_object();
    shuf__json_text(object, "name", sample->name);
    for (unsigned i = 0; i < sample->labels; i++)
        shuf__json_text(labels, sample->label[i].name, sample->label[i].value);
    json_object_set_new(object, "labels", labels);
    json_object_set_new(object, "value",
                        isfinite(sample->value) ? json_real(sample->value) : json_null());
    return object;
}

static int print_json(const char *text)
{
    struct shuf__metric_sample sample;
    json_t *object = json_object(), *samples = json_array();
    while (shuf__metric_sample_next(&text, &sample))
        json_array_append_new(samples, make_sample(&sample));
    json_object_set_new(object, "samples", samples);
    if (*text) {
        json_decref(object);
        return shuf__fail_with(EX_PROTOCOL, "metrics: %.40s: expected a sample", text);
    }
    shuf__json_print_exact(object, stdout);
    return EX_OK;
}

/* The daemon may be another program, whose text controls the terminal. */
static void clean_lines(char *text)
{
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        shuf__make_printable(line);
        if (end)
            *end = '\n';
        line = end ? end + 1 : NULL;
    }
}

static int print_metrics(shuf *handle, const struct metrics_options *options)
{
    char *text;
    int code = EX_OK;
    shuf_status status = shuf_daemon_metrics(handle, options->format, &text);
    if (status != SHUF_OK)
        return shuf__fail_call(handle, status, &options->daemon);
    clean_lines(text);
    if (options->daemon.json)
        code = print_json(text);
    else
        fputs(text, stdout);
    free(text);
    return code;
}

int shuf__verb_metrics(int argc, char **argv)
{
    static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_metrics_option,
        .doc = "Prints the metrics of the daemon in the text format of Prometheus.",
        .children = children,
    };
    struct metrics_options options = {0};
    shuf *handle;
    shuf__options_parse(&argp, argc, argv, &options);
    int code = shuf__connect_or_fail(&handle, &options.daemon);
    if (code == EX_OK)
        code = print_metrics(handle, &options);
    shuf_close(handle);
    return code;
}
