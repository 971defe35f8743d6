/* SPDX-License-Identifier: MIT
 *
 * Shuffles of records on the CPU, all threads: as the backend makes them, each record moved at
 * once, and by parts of the block; next to a copy, a gather by indices that are there already, and
 * shuffles that draw as they go, which move 4 bytes where the others move 8. Memory is touched
 * before the clock runs; what is said is the wall's time.
 */
#include "backend.h"
#include "clock.h"
#include "cpu/host.h"
#include "cpu/partition.h"
#include "cpu/shuffle.h"
#include "memfd.h"
#include "peers/shuffles.h"
#include "process.h"
#include "processor.h"
#include "report.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MOST = 99 };

/* A size and what is moved. */
struct room {
    const struct shuf__lanes *lanes;
    int threads;
    struct shuf__job job;
    uint64_t *in, *out;
    uint32_t *index; /* the job's permutation */
};

/* ---- Ways to do it ---- */

static void copy(const struct room *room)
{
    shuf__host_copy(room->threads, room->out, room->in, room->job.n * room->job.record);
}

static void gather(const struct room *room)
{
#pragma omp parallel for schedule(static) num_threads(room->threads)
    for (uint64_t i = 0; i < room->job.n; i++)
        room->out[i] = room->in[room->index[i]];
}

static void directly(const struct room *room)
{
    shuf__cpu_shuffle_directly(room->lanes, room->threads, &room->job, room->out);
}

static void by_parts(const struct room *room)
{
    bool done;
    if (!shuf__partition(room->lanes, room->threads, &room->job, shuf__partition_bits(&room->job),
                         room->out, &done))
        die("no memory for a list of places");
}

static void as_chosen(const struct room *room)
{
    shuf__cpu_shuffle(room->lanes, room->threads, &room->job, room->out);
}

static void philox24(const struct room *room)
{
    struct room other = *room;
    other.job.algorithm = SHUF_ALGORITHM_PHILOX24;
    directly(&other);
}

#ifdef BENCH_HAVE_CXX
static void std_shuffle(const struct room *room)
{
    peer_std_shuffle((uint32_t *)room->out, room->job.n);
}
#endif

static void rao_sandelius(const struct room *room)
{
    uint32_t *values = (uint32_t *)room->out;
    peer_rao_sandelius(values, values + room->job.n, room->job.n, 7, room->threads);
}

static void merge_shuffle(const struct room *room)
{
    peer_merge_shuffle((uint32_t *)room->out, room->job.n, 7, room->threads);
}

static const struct way {
    const char *what;
    void (*run)(const struct room *room);
    enum { OTHER, PRIMEFOLD, PEER } kind;
} ways[] = {
    {"copy", copy, OTHER},
    {"gather u64 by u32 indices that are there", gather, PRIMEFOLD},
    {"primefold u64, each record at once", directly, PRIMEFOLD},
    {"primefold u64, by parts", by_parts, PRIMEFOLD},
    {"primefold u64, as the backend chooses", as_chosen, PRIMEFOLD},
    {"philox24 u64, each record at once", philox24, OTHER},
#ifdef BENCH_HAVE_CXX
    {"std::shuffle, mt19937_64, u32, one thread", std_shuffle, PEER},
#endif
    {"Rao-Sandelius, u32", rao_sandelius, PEER},
    {"MergeShuffle, u32", merge_shuffle, PEER},
};

/* ---- Rows ---- */

static void check(const struct room *room, const char *what)
{
    for (uint64_t i = 0; i < room->job.n; i++)
        if (room->out[i] != room->in[room->index[i]])
            die("%s: record %llu is not what it must be", what, (unsigned long long)i);
}

static void row(struct report *report, const struct way *way, const struct room *room,
                unsigned samples)
{
    double ns[SAMPLES_MOST];
    const uint64_t n = room->job.n, width = way->kind == PEER ? 4 : 8;
    way->run(room); /* the kernel gives what memory it takes more slowly the first time */
    for (unsigned i = 0; i < samples; i++) {
        const double start = now_ns();
        way->run(room);
        ns[i] = now_ns() - start;
    }
    if (way->kind == PRIMEFOLD)
        check(room, way->what);
    report_add(report, way->what, n, n, "records", 2 * n * width, ns, samples);
}

/* In shared memory, as blocks are. */
static struct shuf__block block_of(uint64_t bytes)
{
    struct shuf__block block;
    struct shuf__error error;
    const uint64_t unit = SHUF__BLOCK_UNIT;
    if (shuf__host_alloc((bytes + unit - 1) / unit * unit, &block, &error))
        die("%s", error.text);
    memset(block.memory, 1, block.bytes);
    return block;
}

static void make_index(struct room *room)
{
    struct shuf__backend *backend;
    struct shuf__error error;
    struct shuf__block block = {.memory = room->index};
    struct shuf__job job = room->job;
    uint64_t ns;
    job.record = 0;
    if (shuf__backend_open("cpu", 0, &backend, &error) ||
        shuf__backend_permute(backend, &job, &block, &ns, &error))
        die("%s", error.text);
    backend->ops->close(backend);
}

static void rows_of(struct report *report, uint64_t n, unsigned samples, bool peers)
{
    struct shuf__error error;
    struct room room = {
        .threads = omp_get_max_threads(),
        .job = {.n = n, .seed = 7, .rows = 1, .count = n, .stride = 1, .width = 4, .record = 8}};
    struct shuf__block in = block_of(8 * n), out = block_of(8 * n), index = block_of(4 * n);
    room.in = in.memory;
    room.out = out.memory;
    room.index = index.memory;
    room.job.input = &in;
    if (shuf__lanes_choose(NULL, &room.lanes, &error))
        die("%s", error.text);
    for (uint64_t i = 0; i < n; i++)
        room.in[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    make_index(&room);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (peers || ways[i].kind != PEER)
            row(report, &ways[i], &room, samples);
    shuf__memfd_free(&in);
    shuf__memfd_free(&out);
    shuf__memfd_free(&index);
}

int main(int argc, char **argv)
{
    const char *n_text = NULL, *samples_text = "5", *no_peers = NULL;
    const struct report_option options[] = {{"--n", "N", &n_text},
                                            {"--samples", "N", &samples_text},
                                            {"--no-peers", NULL, &no_peers},
                                            {0}};
    struct report *report = report_begin_with("shuffles on the CPU", options, argc, argv);
    const unsigned samples = (unsigned)processor_number("--samples", samples_text, SAMPLES_MOST);
    processor_say(report);
    if (n_text)
        rows_of(report, processor_number("--n", n_text, UINT32_MAX), samples, !no_peers);
    for (unsigned bits = 20; !n_text && bits <= 28; bits += bits == 20 ? 6 : 2)
        rows_of(report, (UINT64_C(1) << bits) + 1, samples, !no_peers);
    return report_end(report);
}
