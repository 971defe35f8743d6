/* SPDX-License-Identifier: MIT
 *
 * See bench_rows.h.
 */
#include "bench_rows.h"

#include "clock.h"
#include "error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_RUNS = 3, REQUESTS = 5000, REQUEST_N = 1000 };

static const uint64_t run_ns = 2000000000;

/* True if another run is needed. Counts the runs. */
static bool goes_on(uint64_t start, unsigned *runs)
{
    return (*runs)++ < LEAST_RUNS || shuf__clock_ns() - start < run_ns;
}

static void keep_best(struct shuf__bench_row *row, uint64_t ns)
{
    if (row->ns == 0 || ns < row->ns)
        row->ns = ns ? ns : 1;
}

/* ---- memory ---- */

/* The first pass only touches the pages, and is not measured. */
static shuf_status run_memset(shuf *handle, uint64_t n, struct shuf__bench_row *row)
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

/* ---- results ---- */

/* The time on the device, without fingerprint and request. Each epoch is computed anew. */
static shuf_status run_permute(shuf *handle, uint64_t n, struct shuf__bench_row *row)
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

static shuf_status draw(shuf *handle, uint64_t n, const shuf_numbers *like,
                        struct shuf__bench_row *row)
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

static shuf_status run_gauss(shuf *handle, uint64_t n, struct shuf__bench_row *row)
{
    const shuf_numbers like = {.distribution = SHUF_GAUSS, .std = 1, .dtype = SHUF_F32};
    return draw(handle, n, &like, row);
}

static shuf_status run_uniform(shuf *handle, uint64_t n, struct shuf__bench_row *row)
{
    const shuf_numbers like = {.distribution = SHUF_UNIFORM, .dtype = SHUF_F32};
    return draw(handle, n, &like, row);
}

/* ---- requests ---- */

static int compare_times(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Measures the median time from the call to mapped values. */
static shuf_status run_request(shuf *handle, uint64_t n, struct shuf__bench_row *row)
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

/* ---- torch ---- */

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

static void run_torch(const char *device, uint64_t n, struct shuf__bench_row *row)
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

static shuf_status run_torch_cpu(shuf *handle, uint64_t n, struct shuf__bench_row *row)
{
    (void)handle;
    run_torch("cpu", n, row);
    return SHUF_OK;
}

static shuf_status run_torch_cuda(shuf *handle, uint64_t n, struct shuf__bench_row *row)
{
    (void)handle;
    run_torch("cuda", n, row);
    return SHUF_OK;
}

const struct shuf__bench shuf__benches[] = {
    {"memset, one thread", run_memset},
    {"shufd, permutation, u32", run_permute},
    {"shufd, normal numbers, f32", run_gauss},
    {"shufd, uniform numbers, f32", run_uniform},
    {"shufd, request for 1000 values", run_request},
    {"torch.randperm, cpu, i32", run_torch_cpu},
    {"torch.randperm, cuda, i32", run_torch_cuda},
    {0},
};
