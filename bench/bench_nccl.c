/* SPDX-License-Identifier: MIT
 *
 * Shuffles of records on several GPUs by libshuf-nccl, as a program sees them: from the call of the
 * first rank to the return of the last. The ranks are threads of this process. Each GPU has a
 * daemon of its own. The plan is timed apart, too, and NCCL's all-to-all of as many bytes.
 *
 *     bench_nccl [--ranks 4] [--records 268435456] [--record 8] [--budget 256] [--json FILE]
 *
 * Without --ranks there is one rank for each GPU. With more ranks than GPUs, ranks share GPUs, if
 * NCCL allows this.
 */
#include "clock.h"
#include "daemon.h"
#include "process.h"
#include "shuf_nccl.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MOST = 64, SAMPLES = 9 };

static const uint64_t timeout_ms = 60000;

struct settings {
    int ranks, devices;
    uint64_t records, record, budget; /* of a rank */
};

/* Ranks that share a GPU share its daemon. */
static struct settings settings;
static struct daemon daemons[RANKS_MOST];
static pthread_barrier_t all_ranks;
static ncclUniqueId id;
static uint64_t epoch; /* of the next work */

struct rank {
    int number;
    shuf *handle;
    ncclComm_t comm;
    cudaStream_t stream;
    char *in, *out;
};

static void check_cuda(cudaError_t e, const char *call)
{
    if (e != cudaSuccess)
        die("%s: %s", call, cudaGetErrorString(e));
}
#define CUDA(call) check_cuda(call, #call)

static void check_nccl(ncclResult_t result, const char *call)
{
    if (result != ncclSuccess)
        die("%s: %s", call, ncclGetErrorString(result));
}
#define NCCL(call) check_nccl(call, #call)

/* ---- The work of a rank ----------------------------------------------------------- */

typedef void work(struct rank *r);

static void shuffle(struct rank *r)
{
    const shuf_nccl_request request = {.seed = 7,
                                       .epoch = epoch,
                                       .record = settings.record,
                                       .input = settings.records,
                                       .output = settings.records,
                                       .budget = settings.budget,
                                       .timeout_ms = timeout_ms};
    if (shuf_nccl_shuffle(r->handle, r->comm, r->stream, &request, r->in, r->out) != SHUF_OK)
        die("rank %d: %s", r->number, shuf_nccl_message());
}

static void plan(struct rank *r)
{
    static const shuf_lease_options device = {.transports = SHUF_CUDA_FD};
    const shuf_ranks request = {.n = settings.records * (uint64_t)settings.ranks,
                                .seed = 7,
                                .epoch = epoch,
                                .rank = (uint64_t)r->number,
                                .world = (uint64_t)settings.ranks};
    shuf_lease *lease = NULL;
    if (shuf_exchange_lease(r->handle, &request, &device, &lease) != SHUF_OK)
        die("rank %d: %s", r->number, shuf_message(r->handle));
    shuf_lease_release(r->handle, &lease);
}

static void all_to_all(struct rank *r)
{
    const uint64_t bytes = settings.records / (uint64_t)settings.ranks * settings.record;
    NCCL(ncclGroupStart());
    for (int other = 0; other < settings.ranks; other++) {
        const uint64_t at = (uint64_t)other * bytes;
        NCCL(ncclSend(r->in + at, bytes, ncclUint8, other, r->comm, r->stream));
        NCCL(ncclRecv(r->out + at, bytes, ncclUint8, other, r->comm, r->stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(r->stream));
}

static void copy(struct rank *r)
{
    CUDA(cudaMemcpyAsync(r->out, r->in, settings.records * settings.record,
                         cudaMemcpyDeviceToDevice, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
}

/* ---- Times ------------------------------------------------------------------------ */

static struct {
    const char *label;
    work *work;
    bool is_new; /* each sample has an epoch of its own */
} const rows[] = {
    {"copy", copy, false},      {"NCCL's all-to-all", all_to_all, false},
    {"plan", plan, true},       {"plan, from the cache", plan, false},
    {"shuffle", shuffle, true}, {"shuffle, plan from the cache", shuffle, false},
};
enum { ROWS = sizeof rows / sizeof *rows };

static double times[ROWS][SAMPLES]; /* written by rank 0 */

/* The first run is a warm-up. */
static void time_row(struct rank *r, int row)
{
    for (int i = -1; i < SAMPLES; i++) {
        pthread_barrier_wait(&all_ranks);
        if (r->number == 0)
            epoch += rows[row].is_new || i < 0;
        pthread_barrier_wait(&all_ranks);
        const double begin = now_ns();
        rows[row].work(r);
        pthread_barrier_wait(&all_ranks);
        if (r->number == 0 && i >= 0)
            times[row][i] = now_ns() - begin;
    }
}

static void begin(struct rank *r)
{
    const uint64_t bytes = settings.records * settings.record;
    const int device = r->number % settings.devices;
    CUDA(cudaSetDevice(device));
    r->handle = daemon_connect(&daemons[device]);
    NCCL(ncclCommInitRank(&r->comm, settings.ranks, id, r->number));
    CUDA(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&r->in, bytes));
    CUDA(cudaMalloc((void **)&r->out, bytes));
    CUDA(cudaMemset(r->in, r->number, bytes));
}

static void end(struct rank *r)
{
    NCCL(ncclCommDestroy(r->comm));
    CUDA(cudaStreamDestroy(r->stream));
    CUDA(cudaFree(r->in));
    CUDA(cudaFree(r->out));
    shuf_close(r->handle);
}

static void *run_rank(void *context)
{
    struct rank *r = context;
    begin(r);
    for (int row = 0; row < ROWS; row++)
        time_row(r, row);
    end(r);
    return NULL;
}

/* ---- The whole -------------------------------------------------------------------- */

static uint64_t number_of(const char *text, uint64_t otherwise)
{
    char *end;
    if (!text)
        return otherwise;
    const uint64_t number = strtoull(text, &end, 10);
    if (*end || number == 0)
        die("%s: expected a number from 1 on", text);
    return number;
}

static struct report *read_settings(int argc, char **argv)
{
    const char *ranks = NULL, *records = NULL, *record = NULL, *budget = NULL;
    const struct report_option options[] = {{"--ranks", "N", &ranks},
                                            {"--records", "N", &records},
                                            {"--record", "BYTES", &record},
                                            {"--budget", "MIB", &budget},
                                            {NULL, NULL, NULL}};
    struct report *out = report_begin_with("shuffles by libshuf-nccl", options, argc, argv);
    CUDA(cudaGetDeviceCount(&settings.devices));
    settings.ranks = (int)number_of(ranks, (uint64_t)settings.devices);
    settings.records = number_of(records, UINT64_C(1) << 28);
    settings.record = number_of(record, 8);
    settings.budget = number_of(budget, 256) << 20;
    if (settings.ranks > RANKS_MOST)
        die("--ranks: %d: expected at most %d", settings.ranks, RANKS_MOST);
    if (settings.devices > settings.ranks)
        settings.devices = settings.ranks;
    return out;
}

static void start_daemons(struct report *out)
{
    const char *log = process_file("shufd.log");
    for (int device = 0; device < settings.devices; device++) {
        char backend[16], name[16];
        snprintf(backend, sizeof backend, "cuda:%d", device);
        snprintf(name, sizeof name, "shufd%d", device);
        daemon_start_with(&daemons[device], name, backend,
                          "device_memory = 50%\ndevice_cache = 20%\n", log);
    }
    daemon_fact(&daemons[0], out, "first daemon");
}

static void run_ranks(void)
{
    pthread_t threads[RANKS_MOST];
    struct rank ranks[RANKS_MOST];
    NCCL(ncclGetUniqueId(&id));
    pthread_barrier_init(&all_ranks, NULL, (unsigned)settings.ranks);
    for (int r = 0; r < settings.ranks; r++) {
        ranks[r] = (struct rank){.number = r};
        if (pthread_create(&threads[r], NULL, run_rank, &ranks[r]))
            die("rank %d: no thread", r);
    }
    for (int r = 0; r < settings.ranks; r++)
        pthread_join(threads[r], NULL);
}

int main(int argc, char **argv)
{
    struct report *out = read_settings(argc, argv);
    char ranks[64];
    snprintf(ranks, sizeof ranks, "%d on %d GPUs, records of %llu bytes", settings.ranks,
             settings.devices, (unsigned long long)settings.record);
    report_fact(out, "ranks", ranks);
    start_daemons(out);
    run_ranks();
    for (int row = 0; row < ROWS; row++)
        report_add(out, rows[row].label, settings.records * (uint64_t)settings.ranks,
                   settings.records, "records of a rank", 2 * settings.records * settings.record,
                   times[row], SAMPLES);
    for (int device = 0; device < settings.devices; device++)
        daemon_stop(&daemons[device]);
    return report_end(out);
}
