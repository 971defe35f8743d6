/* SPDX-License-Identifier: MIT
 *
 * `shufctl metrics`: prints the metrics of the daemon.
 */
#include "connect.h"
#include "daemon_options.h"
#include "error.h"
#include "exit.h"
#include "json.h"
#include "metric_samples.h"
#include "option_parse.h"
#include "option_values.h"
#include "verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

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
