/* SPDX-License-Identifier: MIT
 *
 * The plan of an exchange on the CPU, for some ranks of a large job, by default of 1024 ranks with
 * 2^34 records. Nothing is exchanged. The part of a rank may be larger than this machine's memory,
 * so the program can divide it into pieces: with P pieces it computes the plans of P neighbouring
 * ranks of a job with P times as many ranks, and adds their counts.
 *
 * The program checks each plan: the order and the places are permutations, the counts of two ranks
 * agree, and each record that one checked rank sends to another arrives at its place, which the
 * inline C computes. It ends with an error if a check fails.
 */
#include "backend.h"
#include "process.h"
#include "processor.h"
#include "report.h"
#include "shuf/primefold.h"
#include "timed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MOST = 8, WORLD_MOST = SHUF__RANKS_EQUAL, SEED = 7 };

/* The numbers of the records between the first pieces of two ranks, in the order of sending. */
struct between {
    uint64_t *numbers, count;
};

struct sampled {
    uint64_t rank;
    uint64_t *to, *from;                                 /* the counts of all ranks */
    struct between sent[RANKS_MOST], placed[RANKS_MOST]; /* to and from each sampled rank */
    double ns, cpu_s;                                    /* of the plans */
};

struct job {
    struct shuf__backend *backend;
    uint64_t n, world, pieces, part; /* records of a piece */
    struct shuf__block plan, workspace;
    struct shuf__computation computation;
    uint8_t *seen; /* one for each record of a piece */
    size_t ranks;
    struct sampled sampled[RANKS_MOST];
};

static void *zeros(uint64_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory)
        die("no memory for %zu bytes", (size_t)count * bytes);
    return memory;
}

/* ---- The plan of a piece ---- */

static void set_rank(struct job *job, uint64_t piece)
{
    struct shuf__computation *c = &job->computation;
    struct shuf__error error;
    memset(c, 0, sizeof *c);
    c->request.kind = SHUF__EXCHANGE;
    c->request.plan.permutation = timed_row(SHUF_ALGORITHM_PRIMEFOLD, job->n, SEED, 0);
    c->request.plan.world = job->world * job->pieces;
    c->request.plan.rank = piece;
    c->workspace = &job->workspace;
    if (shuf__exchange_make(&c->request, &error))
        die("%s", error.text);
}

/* The system gives memory on the first write, so the program writes before it starts the clock. */
static void allocate(struct job *job)
{
    const struct shuf__backend_ops *ops = job->backend->ops;
    const uint64_t unit = SHUF__BLOCK_UNIT;
    struct shuf__error error;
    set_rank(job, 0);
    const struct shuf__request *request = &job->computation.request;
    const struct shuf__workspace needs = ops->workspace(job->backend, request, ops->own);
    const uint64_t bytes = shuf__request_shape(request).bytes;
    if (shuf__backend_alloc_workspace(job->backend, &needs, &job->workspace, &error) ||
        ops->alloc(job->backend, ops->own, (bytes + unit - 1) / unit * unit, &job->plan, &error))
        die("%s", error.text);
    memset(job->workspace.memory, 1, job->workspace.bytes);
    memset(job->plan.memory, 1, job->plan.bytes);
}

/* Number `index` of the plan: its four lists follow each other. */
static uint64_t number(const struct job *job, uint64_t index)
{
    const void *all = job->plan.memory;
    return shuf__request_shape(&job->computation.request).width == 4
               ? ((const uint32_t *)all)[index]
               : ((const uint64_t *)all)[index];
}

static void check_permutation(const struct job *job, uint64_t first, const char *list)
{
    memset(job->seen, 0, job->part);
    for (uint64_t i = 0; i < job->part; i++) {
        const uint64_t value = number(job, first + i);
        if (value >= job->part || job->seen[value]++)
            die("%s[%llu] is %llu: expected each number below %llu once", list,
                (unsigned long long)i, (unsigned long long)value, (unsigned long long)job->part);
    }
}

/* Adds the counts of a list, which must have the sum of a piece. */
static void add_counts(const struct job *job, uint64_t first, uint64_t *counts)
{
    uint64_t sum = 0;
    for (uint64_t r = 0; r < job->world * job->pieces; r++) {
        const uint64_t count = number(job, first + r);
        counts[r / job->pieces] += count;
        sum += count;
    }
    if (sum != job->part)
        die("the counts have the sum %llu: expected %llu", (unsigned long long)sum,
            (unsigned long long)job->part);
}

/* The numbers of `list` that belong to the rank: the lists before have `counts` of each rank. */
static struct between take(const struct job *job, uint64_t counts, uint64_t list, uint64_t rank)
{
    struct between b = {.count = number(job, counts + rank)};
    for (uint64_t r = 0; r < rank; r++)
        list += number(job, counts + r);
    b.numbers = zeros(b.count + 1, sizeof *b.numbers);
    for (uint64_t i = 0; i < b.count; i++)
        b.numbers[i] = number(job, list + i);
    return b;
}

static void plan_piece(struct job *job, struct sampled *own, uint64_t piece)
{
    const uint64_t world = job->world * job->pieces, order = 2 * world, places = order + job->part;
    struct shuf__error error;
    uint64_t took;
    const clock_t before = clock();
    set_rank(job, own->rank * job->pieces + piece);
    if (shuf__backend_compute(job->backend, &job->computation, &job->plan, &took, &error))
        die("%s", error.text);
    own->ns += (double)took;
    own->cpu_s += (double)(clock() - before) / CLOCKS_PER_SEC;
    check_permutation(job, order, "order");
    check_permutation(job, places, "places");
    add_counts(job, 0, own->to);
    add_counts(job, world, own->from);
    for (size_t i = 0; i < job->ranks && piece == 0; i++) {
        const uint64_t other = job->sampled[i].rank * job->pieces;
        own->sent[i] = take(job, 0, order, other);
        own->placed[i] = take(job, world, places, other);
    }
}

static void plan_rank(struct job *job, struct sampled *own)
{
    own->to = zeros(job->world, sizeof *own->to);
    own->from = zeros(job->world, sizeof *own->from);
    for (uint64_t piece = 0; piece < job->pieces; piece++)
        plan_piece(job, own, piece);
    printf("rank %llu: %.1f s, and %.1f s of CPU time\n", (unsigned long long)own->rank,
           own->ns / 1e9, own->cpu_s);
    fflush(stdout);
}

/* ---- Two ranks ---- */

/* Each record that the first piece of `from` sends to that of `to` arrives at its place in y. */
static uint64_t check_records(const struct job *job, size_t from, size_t to)
{
    const struct between *sent = &job->sampled[from].sent[to],
                         *placed = &job->sampled[to].placed[from];
    const uint64_t whole = job->part * job->pieces;
    const shuf_primefold f = shuf_primefold_make(job->n, SEED, 0);
    if (sent->count != placed->count)
        die("pieces of %zu and %zu: %llu records sent, %llu expected", from, to,
            (unsigned long long)sent->count, (unsigned long long)placed->count);
    for (uint64_t i = 0; i < sent->count; i++) {
        const uint64_t source = job->sampled[from].rank * whole + sent->numbers[i];
        const uint64_t place = job->sampled[to].rank * whole + placed->numbers[i];
        if (shuf_primefold_forward(&f, place) != source)
            die("record %llu goes to %llu: the permutation has %llu there",
                (unsigned long long)source, (unsigned long long)place,
                (unsigned long long)shuf_primefold_forward(&f, place));
    }
    return sent->count;
}

static void check_pairs(struct job *job, struct report *report)
{
    uint64_t records = 0;
    for (size_t i = 0; i < job->ranks; i++)
        for (size_t j = 0; j < job->ranks; j++) {
            const struct sampled *a = &job->sampled[i], *b = &job->sampled[j];
            if (a->to[b->rank] != b->from[a->rank])
                die("rank %llu sends %llu records to rank %llu, which expects %llu",
                    (unsigned long long)a->rank, (unsigned long long)a->to[b->rank],
                    (unsigned long long)b->rank, (unsigned long long)b->from[a->rank]);
            records += check_records(job, i, j);
        }
    report_value(report, "pairs of ranks that agree", job->n, (double)(job->ranks * job->ranks),
                 "");
    report_value(report, "records followed to their places", job->n, (double)records, "");
}

/* ---- The report ---- */

static void report_counts(const struct job *job, struct report *report)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < job->ranks; i++)
        for (uint64_t r = 0; r < job->world; r++) {
            const uint64_t count = job->sampled[i].to[r];
            least = count < least ? count : least;
            most = count > most ? count : most;
        }
    report_value(report, "records of a pair, least", job->n, (double)least, "");
    report_value(report, "records of a pair, most", job->n, (double)most, "");
}

static void report_memory(const struct job *job, struct report *report)
{
    const struct shuf__request *request = &job->computation.request;
    const double records = (double)job->part;
    const struct shuf__workspace needs =
        job->backend->ops->workspace(job->backend, request, job->plan.kind);
    report_value(report, "plan, bytes a record of the part", job->n,
                 (double)shuf__request_shape(request).bytes / records, "B");
    report_value(report, "workspace, bytes a record of the part", job->n,
                 (double)needs.best / records, "B");
    report_value(report, "memory of the program", job->n, process_memory(getpid()) / (1 << 20),
                 "MiB");
}

static void report_plans(struct job *job, struct report *report)
{
    const uint64_t records = job->part * job->pieces;
    double ns[RANKS_MOST], cpu_s = 0;
    for (size_t i = 0; i < job->ranks; i++) {
        ns[i] = job->sampled[i].ns;
        cpu_s += job->sampled[i].cpu_s / (double)job->ranks;
    }
    report_add(report, "plan of one rank", job->n, records, "records", 0, ns, job->ranks);
    report_value(report, "CPU time of a plan, mean", job->n, cpu_s, "s");
    report_value(report, "records of a rank", job->n, (double)records, "");
    report_value(report, "pieces of a rank", job->n, (double)job->pieces, "");
    report_counts(job, report);
    report_memory(job, report);
}

static void divide(struct job *job)
{
    const uint64_t parts = job->world * job->pieces;
    if (parts > WORLD_MOST)
        die("--world times --pieces: %llu: expected at most %d", (unsigned long long)parts,
            WORLD_MOST);
    if (job->n % parts != 0)
        die("--n: %llu: expected a multiple of %llu, the number of all pieces",
            (unsigned long long)job->n, (unsigned long long)parts);
    job->part = job->n / parts;
    job->ranks = job->ranks < job->world ? job->ranks : job->world;
    for (size_t i = 0; i < job->ranks; i++)
        job->sampled[i].rank = job->ranks > 1 ? i * (job->world - 1) / (job->ranks - 1) : 0;
}

int main(int argc, char **argv)
{
    const char *n = "17179869184", *world = "1024", *pieces = "1", *ranks = "3";
    const struct report_option options[] = {{"--n", "N", &n},
                                            {"--world", "N", &world},
                                            {"--pieces", "N", &pieces},
                                            {"--ranks", "N", &ranks},
                                            {0}};
    struct report *report =
        report_begin_with("plans of an exchange on the CPU", options, argc, argv);
    static struct job job;
    struct shuf__error error;
    job.n = processor_number("--n", n, 0x1p53);
    job.world = processor_number("--world", world, WORLD_MOST);
    job.pieces = processor_number("--pieces", pieces, WORLD_MOST);
    job.ranks = processor_number("--ranks", ranks, RANKS_MOST);
    divide(&job);
    processor_say(report);
    if (shuf__backend_open("cpu", 0, &job.backend, &error))
        die("%s", error.text);
    job.seen = zeros(job.part, 1);
    allocate(&job);
    for (size_t i = 0; i < job.ranks; i++)
        plan_rank(&job, &job.sampled[i]);
    report_plans(&job, report);
    check_pairs(&job, report);
    return report_end(report);
}
