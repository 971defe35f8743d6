/* SPDX-License-Identifier: MIT
 *
 * `shufctl bench`: the daemon's computations and small requests on this machine, next to memset and
 * torch.randperm, in half a minute. Each measurement repeats for two seconds, and at least three
 * times.
 */
#include "clock.h"
#include "connect.h"
#include "error.h"
#include "json.h"
#include "option.h"
#include "shuf.h"
#include "units.h"
#include "verb_options.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* ---- The measurements ---- */

struct row {
    const char *name;
    uint64_t ns;     /* the best time; for requests the median */
    uint64_t values; /* values computed in this time; 0: the row has only a time */
    unsigned width;  /* bytes of a value */
    char why[128];   /* why it was skipped; "": it was not */
};

struct bench {
    const char *name;
    /* Fails as calls of the library do, with the message in the handle. */
    shuf_status (*run)(shuf *handle, uint64_t n, struct row *row);
};

enum { LEAST_RUNS = 3, REQUESTS = 5000, REQUEST_N = 1000 };

static const uint64_t run_ns = 2000000000;

/* True if another run is needed. Counts the runs. */
static bool goes_on(uint64_t start, unsigned *runs)
{
    return (*runs)++ < LEAST_RUNS || shuf__clock_ns() - start < run_ns;
}

static void keep_best(struct row *row, uint64_t ns)
{
    if (row->ns == 0 || ns < row->ns)
        row->ns = ns ? ns : 1;
}

/* ---- Memory ---- */

/* The first pass only touches the pages, and is not measured. */
static shuf_status run_memset(shuf *handle, uint64_t n, struct row *row)
{
    unsigned runs = 0;
    const uint64_t begin = shuf__clock_ns();
    void *memory = malloc(n * row->width);
    (void)handle;
    if (!memory) {
        snprintf(row->why, sizeof row->why, "no memory for %" PRIu64 " bytes", n * row->width);
        return SHUF_OK;
    }
    memset(memory, 1, n * row->width);
    while (goes_on(begin, &runs)) {
        const uint64_t start = shuf__clock_ns();
        memset(memory, (int)runs, n * row->width);
        __asm__ volatile("" : : "r"(memory) : "memory"); /* makes the compiler keep the writes */
        keep_best(row, shuf__clock_ns() - start);
    }
    free(memory);
    row->values = n;
    return SHUF_OK;
}

/* ---- Results ---- */

/* The time on the device, without fingerprint and request. Each epoch is computed anew. */
static shuf_status run_permute(shuf *handle, uint64_t n, struct row *row)
{
    unsigned runs = 0;
    shuf_result result;
    const uint64_t begin = shuf__clock_ns();
    while (goes_on(begin, &runs)) {
        const shuf_request request = {.permutation = {.n = n, .seed = begin, .epoch = runs}};
        shuf_status status = shuf_summarize(handle, &request, &result);
        if (status != SHUF_OK)
            return status;
        keep_best(row, result.device_ns);
    }
    row->values = n;
    return SHUF_OK;
}

static shuf_status draw(shuf *handle, uint64_t n, const shuf_numbers *like, struct row *row)
{
    unsigned runs = 0;
    shuf_result result;
    const uint64_t begin = shuf__clock_ns();
    while (goes_on(begin, &runs)) {
        shuf_request request = {.kind = SHUF_NUMBERS, .numbers = *like};
        request.numbers.count = n;
        request.numbers.stream = runs;
        request.numbers.seed = begin;
        shuf_status status = shuf_summarize(handle, &request, &result);
        if (status != SHUF_OK)
            return status;
        keep_best(row, result.device_ns);
    }
    row->values = n;
    return SHUF_OK;
}

static shuf_status run_gauss(shuf *handle, uint64_t n, struct row *row)
{
    const shuf_numbers like = {.distribution = SHUF_GAUSS, .std = 1, .dtype = SHUF_F32};
    return draw(handle, n, &like, row);
}

static shuf_status run_uniform(shuf *handle, uint64_t n, struct row *row)
{
    const shuf_numbers like = {.distribution = SHUF_UNIFORM, .dtype = SHUF_F32};
    return draw(handle, n, &like, row);
}

/* ---- Requests ---- */

static int compare_times(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Measures the median time from the call to mapped values. */
static shuf_status run_request(shuf *handle, uint64_t n, struct row *row)
{
    static uint64_t times[REQUESTS];
    shuf_lease *lease = NULL;
    shuf_status status = SHUF_OK;
    const uint64_t seed = shuf__clock_ns();
    (void)n;
    for (unsigned i = 0; i < REQUESTS && status == SHUF_OK; i++) {
        const shuf_request request = {.permutation = {.n = REQUEST_N, .seed = seed, .epoch = i}};
        const uint64_t start = shuf__clock_ns();
        status = shuf_lease_take(handle, &request, NULL, &lease);
        times[i] = shuf__clock_ns() - start;
    }
    if (status != SHUF_OK)
        return status;
    qsort(times, REQUESTS, sizeof *times, compare_times);
    row->ns = times[REQUESTS / 2];
    return shuf_lease_release(handle, &lease);
}

/* ---- Torch ---- */

/* Prints the best time in nanoseconds, or a word. Without -I, Python would load a torch.py of the
 * current directory. */
static const char script[] = "import sys, time\n"
                             "n, device = int(float(sys.argv[1])), sys.argv[2]\n"
                             "try:\n"
                             "    import torch\n"
                             "except ImportError:\n"
                             "    sys.exit(print('python3 has no torch'))\n"
                             "if device == 'cuda' and not torch.cuda.is_available():\n"
                             "    sys.exit(print('torch sees no GPU'))\n"
                             "wait = torch.cuda.synchronize if device == 'cuda' else lambda: None\n"
                             "best, begin, runs = 1 << 62, time.monotonic(), 0\n"
                             "while runs < 2 or (time.monotonic() - begin < 3 and runs < 100):\n"
                             "    start = time.perf_counter_ns()\n"
                             "    torch.randperm(n, dtype=torch.int32, device=device)\n"
                             "    wait()\n"
                             "    best = min(best, time.perf_counter_ns() - start)\n"
                             "    runs += 1\n"
                             "print(best)\n";

static void run_torch(const char *device, uint64_t n, struct row *row)
{
    char command[2048], *end;
    snprintf(command, sizeof command,
             "exec timeout 20 python3 -I -c \"%s\" %" PRIu64 " %s 2>/dev/null", script, n, device);
    FILE *pipe = popen(command, "re");
    if (!pipe || !fgets(row->why, sizeof row->why, pipe))
        snprintf(row->why, sizeof row->why, "python3 has failed");
    if (pipe)
        pclose(pipe);
    row->why[strcspn(row->why, "\n")] = '\0';
    shuf__make_printable(row->why);
    const uint64_t ns = strtoull(row->why, &end, 10);
    if (end == row->why || *end)
        return;
    row->why[0] = '\0';
    row->ns = ns;
    row->values = n;
}

static shuf_status run_torch_cpu(shuf *handle, uint64_t n, struct row *row)
{
    (void)handle;
    run_torch("cpu", n, row);
    return SHUF_OK;
}

static shuf_status run_torch_cuda(shuf *handle, uint64_t n, struct row *row)
{
    (void)handle;
    run_torch("cuda", n, row);
    return SHUF_OK;
}

static const struct bench benches[] = {
    {"memset, one thread", run_memset},
    {"shufd, permutation, u32", run_permute},
    {"shufd, normal numbers, f32", run_gauss},
    {"shufd, uniform numbers, f32", run_uniform},
    {"shufd, request for 1000 values", run_request},
    {"torch.randperm, cpu, i32", run_torch_cpu},
    {"torch.randperm, cuda, i32", run_torch_cuda},
    {0},
};

/* ---- Output ---- */

static void print_row(const struct row *row)
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

static void add_row(json_t *rows, const struct row *row)
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
    for (const struct bench *bench = benches; bench->run; bench++) {
        struct row row = {.name = bench->name, .width = sizeof(uint32_t)};
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
