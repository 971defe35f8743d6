/* SPDX-License-Identifier: MIT
 *
 * `shufctl bench`: the daemon's computations and small requests on this machine, next to memset and
 * torch.randperm, in half a minute.
 */
#include "bench_rows.h"
#include "connect.h"
#include "daemon_options.h"
#include "json.h"
#include "option_parse.h"
#include "option_values.h"
#include "units.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

enum key { KEY_N = 0x400 };

static const uint64_t n_default = 100000000, n_least = 1000, n_most = UINT64_C(1) << 40;

struct bench_options {
    struct shuf__daemon_options daemon;
    uint64_t n; /* 0: as fits */
};

static const struct argp_option option_table[] = {
    {"n", KEY_N, "N", 0, "Values of a result (default: 1e8, or what fits the daemon's memory)", 0},
    {0},
};

static error_t parse_bench_option(int key, char *text, struct argp_state *state)
{
    struct bench_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case KEY_N:
        shuf__option_number_in(state, "--n", text, n_least, n_most, &options->n);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Picks n so that two results and a workspace fit the memory together. */
static uint64_t pick_n(const shuf_daemon *daemon)
{
    const uint64_t fits = daemon->memory_limit / 4 / sizeof(uint32_t);
    return fits < n_least ? n_least : fits < n_default ? fits : n_default;
}

/* ---- output ---- */

static void print_row(const struct shuf__bench_row *row)
{
    char time[SHUF__UNITS_TEXT], rate[SHUF__UNITS_TEXT];
    if (row->why[0])
        printf("%-34s -            %s\n", row->name, row->why);
    else if (row->values)
        printf("%-34s %-12s %-20s %6.1f GB/s\n", row->name, shuf__units_time(time, row->ns),
               shuf__units_rate(rate, row->values, row->ns),
               (double)row->values * row->width / (double)row->ns);
    else
        printf("%-34s %s\n", row->name, shuf__units_time(time, row->ns));
    fflush(stdout);
}

static void add_row(json_t *rows, const struct shuf__bench_row *row)
{
    json_t *object = json_object();
    shuf__json_text(object, "name", row->name);
    if (row->why[0]) {
        shuf__json_text(object, "skipped", row->why);
    } else {
        shuf__json_seconds(object, "seconds", row->ns);
        shuf__json_integer(object, "values", row->values);
        shuf__json_integer(object, "bytes", row->values * row->width);
    }
    json_array_append_new(rows, object);
}

static shuf_status run_rows(shuf *handle, uint64_t n, json_t *rows)
{
    for (const struct shuf__bench *bench = shuf__benches; bench->run; bench++) {
        struct shuf__bench_row row = {.name = bench->name, .width = sizeof(uint32_t)};
        shuf_status status = bench->run(handle, n, &row);
        if (status != SHUF_OK)
            return status;
        if (rows)
            add_row(rows, &row);
        else
            print_row(&row);
    }
    return SHUF_OK;
}

static int run_bench(shuf *handle, const struct bench_options *options)
{
    shuf_daemon daemon;
    shuf_status status = shuf_daemon_status(handle, &daemon);
    const uint64_t n = options->n ? options->n : pick_n(&daemon);
    json_t *rows = options->daemon.json ? json_array() : NULL;
    if (status == SHUF_OK && !rows)
        printf("%s, %s: %s, n = %" PRIu64 ", best time of each row\n", daemon.version,
               daemon.backend, daemon.device, n);
    if (status == SHUF_OK)
        status = run_rows(handle, n, rows);
    if (status != SHUF_OK) {
        json_decref(rows);
        return shuf__fail_call(handle, status, &options->daemon);
    }
    if (rows) {
        json_t *object = json_object();
        shuf__json_text(object, "daemon", daemon.version);
        shuf__json_text(object, "device", daemon.device);
        shuf__json_integer(object, "n", n);
        json_object_set_new(object, "rows", rows);
        shuf__json_print(object, stdout);
    }
    return EX_OK;
}

int shuf__verb_bench(int argc, char **argv)
{
    static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_bench_option,
        .doc = "Measures the daemon next to memset and torch.randperm, in half a minute.",
        .children = children,
    };
    struct bench_options options = {0};
    shuf *handle;
    shuf__options_parse(&argp, argc, argv, &options);
    int code = shuf__connect_or_fail(&handle, &options.daemon);
    if (code == EX_OK)
        code = run_bench(handle, &options);
    shuf_close(handle);
    return code;
}
