/* SPDX-License-Identifier: MIT
 *
 * The calls of fault_client that copy results, and those that ask the daemon.
 */
#include "client.h"

#include <stdlib.h>
#include <string.h>

enum { LATE_N = 20000, SUMMARY_N = 1 << 22 };

/* The bytes that a sink has received. */
struct received {
    uint8_t bytes[N * sizeof(uint64_t)];
    size_t size;
};

static bool receive(void *context, const void *bytes, size_t size)
{
    struct received *r = context;
    if (size > sizeof r->bytes - r->size)
        wrong("the size of a result in chunks");
    memcpy(r->bytes + r->size, bytes, size);
    r->size += size;
    return true;
}

/* ---- Permutations ------------------------------------------------------------------ */

static void permute(shuf *h)
{
    uint32_t values[N];
    shuf_result facts;
    if (succeeded(h, shuf_copy(h, &permutation, values, sizeof values, &facts), "permute"))
        check_permutation(values, "permute");
}

/* So large that a lane computes it, and not the loop's thread. */
static void permute_in_lane(shuf *h)
{
    static uint64_t values[LATE_N];
    uint64_t sum = 0;
    const shuf_request request = {
        .permutation = {.n = LATE_N, .algorithm = "philox24", .dtype = SHUF_U64}};
    if (!succeeded(h, shuf_copy(h, &request, values, sizeof values, NULL), "permute in a lane"))
        return;
    for (size_t i = 0; i < LATE_N; i++)
        sum += values[i];
    if (sum != (uint64_t)LATE_N * (LATE_N - 1) / 2)
        wrong("permute in a lane");
}

static void permute_each(shuf *h)
{
    static struct received r;
    r.size = 0;
    if (!succeeded(h, shuf_each(h, &permutation, receive, &r, NULL), "permute each"))
        return;
    if (r.size != N * sizeof(uint32_t))
        wrong("the size of permute each");
    check_permutation((const uint32_t *)(const void *)r.bytes, "permute each");
}

/* So large that a job computes the summary part by part. */
static void summarize(shuf *h)
{
    shuf_result facts;
    const shuf_request request = {.permutation = {.n = SUMMARY_N, .seed = SEED}};
    const shuf_primefold f = shuf_primefold_make(SUMMARY_N, SEED, 0);
    if (!succeeded(h, shuf_summarize(h, &request, &facts), "summarize"))
        return;
    for (unsigned i = 0; i < facts.n_first; i++)
        if (facts.first[i] != shuf_primefold_forward(&f, i))
            wrong("summarize");
    if (facts.n_first != SHUF_SAMPLES || !facts.fingerprint)
        wrong("summarize");
}

static void look_up(shuf *h)
{
    const uint64_t at[2] = {5, 999};
    uint64_t found[2];
    const shuf_primefold f = shuf_primefold_make(N, SEED, 0);
    const shuf_request request = {.permutation = {.n = N, .seed = SEED}};
    if (!succeeded(h, shuf_index(h, &request.permutation, SHUF_FORWARD, at, 2, found), "index"))
        return;
    for (int i = 0; i < 2; i++)
        if (found[i] != shuf_primefold_forward(&f, at[i]))
            wrong("index");
}

/* The first look-up with philox24 makes the daemon count the values before each position. */
static void look_up_by_rank_index(shuf *h)
{
    const uint64_t at = 999;
    uint64_t found, back;
    const shuf_request request = {.permutation = {.n = N, .algorithm = "philox24"}};
    if (succeeded(h, shuf_index(h, &request.permutation, SHUF_FORWARD, &at, 1, &found),
                  "rank index") &&
        succeeded(h, shuf_index(h, &request.permutation, SHUF_INVERSE, &found, 1, &back),
                  "rank index") &&
        back != at)
        wrong("rank index");
}

/* ---- Numbers ------------------------------------------------------------------------- */

static const shuf_request numbers = {
    .kind = SHUF_NUMBERS,
    .numbers = {.distribution = SHUF_UNIFORM, .count = N, .seed = 1, .dtype = SHUF_F64}};

static void check_uniform(const double *values, const char *what)
{
    for (int i = 0; i < N; i++)
        if (!(values[i] >= 0 && values[i] < 1))
            wrong(what);
}

static void draw(shuf *h)
{
    double values[N];
    if (succeeded(h, shuf_copy(h, &numbers, values, sizeof values, NULL), "draw"))
        check_uniform(values, "draw");
}

static void draw_each(shuf *h)
{
    static struct received r;
    r.size = 0;
    if (!succeeded(h, shuf_each(h, &numbers, receive, &r, NULL), "draw each"))
        return;
    if (r.size != sizeof r.bytes)
        wrong("the size of draw each");
    check_uniform((const double *)(const void *)r.bytes, "draw each");
}

static void summarize_numbers(shuf *h)
{
    shuf_result facts;
    const shuf_request request = {.kind = SHUF_NUMBERS,
                                  .numbers = {.distribution = SHUF_UNIFORM,
                                              .count = N,
                                              .seed = 1,
                                              .dtype = SHUF_F64,
                                              .moments = true}};
    if (succeeded(h, shuf_summarize(h, &request, &facts), "draw summary") &&
        !(facts.moments.mean > 0.4 && facts.moments.mean < 0.6))
        wrong("draw summary");
}

/* ---- Records and plans --------------------------------------------------------------- */

static void shuffle(shuf *h)
{
    uint64_t in[N], out[N];
    fill_records(in);
    if (succeeded(h, shuf_shuffle(h, &records, in, out, sizeof in, NULL), "shuffle"))
        check_shuffled(out, "shuffle");
}

static void shuffle_each(shuf *h)
{
    static struct received r;
    uint64_t in[N];
    r.size = 0;
    fill_records(in);
    if (!succeeded(h, shuf_shuffle_each(h, &records, in, sizeof in, receive, &r, NULL),
                   "shuffle each"))
        return;
    if (r.size != sizeof r.bytes)
        wrong("the size of shuffle each");
    check_shuffled((const uint64_t *)(const void *)r.bytes, "shuffle each");
}

/* The first of two ranks sends the records first that stay, and then those of the other rank. */
static void exchange(shuf *h)
{
    enum { IN = 600, OUT = 500, LISTS = 4 };
    static const uint64_t input[] = {IN, N - IN}, output[] = {OUT, N - OUT};
    static uint32_t plan[LISTS + IN + OUT];
    const shuf_request ranks = {
        .kind = SHUF_RANKS,
        .ranks = {.n = N, .seed = SEED, .world = 2, .input = input, .output = output}};
    shuf_primefold f = shuf_primefold_make(N, SEED, 0);
    if (!succeeded(h, shuf_copy(h, &ranks, plan, sizeof plan, NULL), "exchange"))
        return;
    shuf_primefold_make_inverse(&f);
    for (uint32_t i = 0; i < IN; i++)
        if ((shuf_primefold_inverse(&f, plan[LISTS + i]) < OUT) != (i < plan[0]))
            wrong("exchange");
}

/* ---- The daemon ---------------------------------------------------------------------- */

static void ask(shuf *h)
{
    static shuf_daemon daemon;
    char *text = NULL;
    if (succeeded(h, shuf_daemon_status(h, &daemon), "status") && daemon.clients == 0)
        wrong("status");
    if (succeeded(h, shuf_daemon_metrics(h, SHUF_PROMETHEUS, &text), "metrics") && !*text)
        wrong("metrics");
    free(text);
    succeeded(h, shuf_drop(h, SHUF_OWN, 0, NULL), "drop");
}

void use_key(shuf *h)
{
    static const shuf_key bits = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    const shuf_request request = {.permutation = {.n = N, .key = "alpha", .dtype = SHUF_U32}};
    const shuf_primefold f = shuf_primefold_make_keyed(N, bits, 0);
    uint32_t values[N];
    const uint64_t at = 5;
    uint64_t found;
    if (succeeded(h, shuf_copy(h, &request, values, sizeof values, NULL), "key"))
        for (uint32_t i = 0; i < N; i++)
            if (values[i] != shuf_primefold_forward(&f, i))
                wrong("key");
    const shuf_request looked_up = {.permutation = {.n = N, .key = "alpha"}};
    if (succeeded(h, shuf_index(h, &looked_up.permutation, SHUF_FORWARD, &at, 1, &found),
                  "index with a key") &&
        found != shuf_primefold_forward(&f, at))
        wrong("index with a key");
}

void copy_results(shuf *h)
{
    static void (*const calls[])(shuf *) = {
        permute, permute_in_lane, permute_each, summarize,    look_up,  look_up_by_rank_index,
        draw,    draw_each,       shuffle,      shuffle_each, exchange, summarize_numbers,
        ask,     permute};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        calls[i](h);
}
