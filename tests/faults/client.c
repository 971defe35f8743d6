/* SPDX-License-Identifier: MIT
 *
 * A program that uses libshuf, for the fault tests: fault_client SOCKET [cuda|key|hold]. It makes
 * every kind of call, with "cuda" also leases of device memory. With "key" it only makes requests
 * with the named key "alpha", and with "hold" it only holds a lease until its standard input ends.
 * It checks the values of successful calls. Its exit status is 0 if all calls succeeded. It is 2 if
 * some failed, each with a status and a message. It is 3 after a wrong value or a failure without a
 * message.
 */
#include "../support/take.h"
#include "shuf.h"
#include "shuf/primefold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, SEED = 7, RECORD = 8, TIMEOUT_MS = 5000, FAILED = 2, WRONG = 3 };

/* The permutation of most requests. */
static const shuf_request permutation = {.permutation = {.n = N, .seed = SEED, .dtype = SHUF_U32}};
/* Records of N numbers, which fill_records() makes and check_shuffled() checks. */
static const shuf_records records = {.n = N, .record = RECORD, .seed = SEED};
static int result;

/* Ends the program with the exit status of a wrong value. */
static _Noreturn void wrong(const char *what)
{
    fprintf(stderr, "client: %s is wrong\n", what);
    exit(WRONG);
}

/* Whether a call succeeded. Prints the status and the message of a failed one, and notes it for the
 * exit status. */
static bool succeeded(shuf *h, shuf_status status, const char *what)
{
    const char *message = shuf_message(h);
    if (status == SHUF_OK)
        return true;
    if (!*message)
        wrong("an empty message");
    fprintf(stderr, "client: %s: %s: %s\n", what, shuf_status_name(status), message);
    result = FAILED;
    return false;
}

static void check_values(const uint32_t *values, uint32_t n, const char *what)
{
    const shuf_primefold f = shuf_primefold_make(n, SEED, 0);
    for (uint32_t i = 0; i < n; i++)
        if (values[i] != shuf_primefold_forward(&f, i))
            wrong(what);
}

static void check_permutation(const uint32_t *values, const char *what)
{
    check_values(values, N, what);
}

static void fill_records(uint64_t in[N])
{
    for (uint64_t i = 0; i < N; i++)
        in[i] = 3 * i;
}

static void check_shuffled(const uint64_t *out, const char *what)
{
    const shuf_primefold f = shuf_primefold_make(N, SEED, 0);
    for (uint64_t i = 0; i < N; i++)
        if (out[i] != 3 * shuf_primefold_forward(&f, i))
            wrong(what);
}

/* ---- Copies, and requests without a result ---- */

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

/* ---- Permutations ---- */

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

/* ---- Numbers ---- */

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

/* ---- Records and plans ---- */

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

/* ---- The daemon ---- */

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

static void use_key(shuf *h)
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

static void copy_results(shuf *h)
{
    static void (*const calls[])(shuf *) = {
        permute, permute_in_lane, permute_each, summarize,    look_up,  look_up_by_rank_index,
        draw,    draw_each,       shuffle,      shuffle_each, exchange, summarize_numbers,
        ask,     permute};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        calls[i](h);
}

/* ---- Leases ---- */

enum { LARGE_N = 1 << 21 };

static void release(shuf *h, shuf_lease **lease)
{
    succeeded(h, shuf_lease_release(h, lease), "release");
    if (*lease)
        wrong("a lease after its release");
}

/* ---- Results ---- */

static void lease(shuf *h)
{
    shuf_lease *taken = NULL;
    if (!succeeded(h, shuf_lease_take(h, &permutation, NULL, &taken), "lease"))
        return;
    check_permutation(taken->data, "lease");
    release(h, &taken);
}

static void lease_copy(shuf *h)
{
    const shuf_lease_options options = {.transports = SHUF_INLINE};
    shuf_lease *taken = NULL;
    if (!succeeded(h, shuf_lease_take(h, &permutation, &options, &taken), "lease of a copy"))
        return;
    check_permutation(taken->data, "lease of a copy");
    release(h, &taken);
}

static void lease_prefetched(shuf *h)
{
    shuf_request request = permutation;
    shuf_lease *taken = NULL;
    request.permutation.n = LARGE_N;
    succeeded(h, shuf_prefetch(h, &request, NULL), "prefetch");
    if (!succeeded(h, shuf_lease_take(h, &request, NULL, &taken), "lease after a prefetch"))
        return;
    check_values(taken->data, LARGE_N, "lease after a prefetch");
    release(h, &taken);
}

static void lease_numbers(shuf *h)
{
    const shuf_request request = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_UNIFORM, .count = N, .dtype = SHUF_F64}};
    shuf_lease *taken = NULL;
    double first;
    succeeded(h, shuf_prefetch(h, &request, NULL), "draw prefetch");
    if (!succeeded(h, shuf_lease_take(h, &request, NULL, &taken), "draw lease"))
        return;
    if (succeeded(h, shuf_lease_read(h, taken, 0, sizeof first, &first), "lease read") &&
        !(first >= 0 && first < 1))
        wrong("draw lease");
    release(h, &taken);
}

/* ---- Buffers ---- */

static void shuffle_buffer(shuf *h, const shuf_lease *buffer, const shuf_lease_options *options)
{
    uint64_t in[N], out[N];
    shuf_lease *shuffled = NULL;
    fill_records(in);
    if (!succeeded(h, shuf_lease_write(h, buffer, 0, sizeof in, in), "lease write") ||
        !succeeded(h, take_shuffle(h, &records, buffer, options, &shuffled), "shuffle lease"))
        return;
    if (succeeded(h, shuf_lease_read(h, shuffled, 0, sizeof out, out), "lease read"))
        check_shuffled(out, "shuffle lease");
    release(h, &shuffled);
}

static void use_buffer(shuf *h, const shuf_lease_options *options)
{
    shuf_lease *buffer = NULL;
    if (!succeeded(h, take_buffer(h, N * RECORD, options, &buffer), "buffer"))
        return;
    shuffle_buffer(h, buffer, options);
    release(h, &buffer);
}

static void use_mapped_buffer(shuf *h)
{
    use_buffer(h, NULL);
}

static void use_copied_buffer(shuf *h)
{
    use_buffer(h, &(shuf_lease_options){.transports = SHUF_INLINE});
}

/* ---- One-sided plans ---- */

/* Rank 1 of two ranks that have a half of the records each gets them in one part. Each rank is one
 * window. */
static void check_one_sided(const uint32_t *plan)
{
    enum { HALF = N / 2 };
    const uint32_t *begins = plan, *records_of_rank = begins + 3, *indices = records_of_rank + HALF;
    const shuf_primefold f = shuf_primefold_make(N, SEED, 0);
    for (uint32_t i = 0; i < HALF; i++) {
        const uint32_t at = indices[i], rank = at >= begins[1];
        if (at >= HALF || rank * HALF + records_of_rank[at] != shuf_primefold_forward(&f, HALF + i))
            wrong("one-sided exchange");
    }
}

static void lease_one_sided(shuf *h)
{
    const shuf_request ranks = {
        .kind = SHUF_RANKS, .ranks = {.n = N, .seed = SEED, .rank = 1, .world = 2, .part = 65536}};
    shuf_lease *plan = NULL;
    succeeded(h, shuf_prefetch(h, &ranks, NULL), "exchange prefetch");
    if (!succeeded(h, shuf_lease_take(h, &ranks, NULL, &plan), "one-sided exchange"))
        return;
    check_one_sided(plan->data);
    release(h, &plan);
}

/* ---- The list ---- */

struct search {
    uint64_t id;
    bool found;
};

static bool visit(void *context, const shuf_lease_entry *entry)
{
    struct search *search = context;
    search->found |= entry->id == search->id && entry->request.permutation.n == N &&
                     entry->request.permutation.seed == SEED;
    return true;
}

static void list(shuf *h)
{
    shuf_lease *taken = NULL;
    if (!succeeded(h, shuf_lease_take(h, &permutation, NULL, &taken), "lease to list"))
        return;
    struct search search = {.id = taken->id};
    if (succeeded(h, shuf_leases(h, visit, &search), "leases") && taken->id && !search.found)
        wrong("leases");
    release(h, &taken);
}

/* ---- Device memory ---- */

static void lease_of_device(shuf *h, shuf_transport transport)
{
    static uint32_t values[LARGE_N];
    const shuf_request request = {.permutation = {.n = LARGE_N, .seed = SEED, .dtype = SHUF_U32}};
    const shuf_lease_options options = {.transports = transport};
    const char *name = shuf_transport_name(transport);
    shuf_lease *taken = NULL;
    if (!succeeded(h, shuf_lease_take(h, &request, &options, &taken), name))
        return;
    if (succeeded(h, shuf_lease_read(h, taken, 0, sizeof values, values), name))
        check_values(values, LARGE_N, name);
    succeeded(h, shuf_lease_release(h, &taken), name);
}

static void lease_from_device(shuf *h)
{
    lease_of_device(h, SHUF_CUDA_FD);
    lease_of_device(h, SHUF_CUDA_IPC);
}

static void lease_results(shuf *h)
{
    static void (*const calls[])(shuf *) = {lease,         lease_copy,        lease_prefetched,
                                            lease_numbers, use_mapped_buffer, use_copied_buffer,
                                            list,          lease_one_sided};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        calls[i](h);
}

/* ---- The program ---- */

static void hold(shuf *h)
{
    shuf_lease *taken = NULL;
    succeeded(h, shuf_lease_take(h, &permutation, NULL, &taken), "lease to hold");
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    shuf_lease_release(h, &taken);
}

static void make_calls(shuf *h, const char *extra)
{
    if (!strcmp(extra, "hold")) {
        hold(h);
    } else if (!strcmp(extra, "key")) {
        use_key(h);
    } else {
        copy_results(h);
        lease_results(h);
        if (!strcmp(extra, "cuda"))
            lease_from_device(h);
    }
}

int main(int argc, char **argv)
{
    shuf *h = NULL;
    if (argc != 2 && argc != 3)
        return 64;
    if (succeeded(h, shuf_connect_within(&h, argv[1], TIMEOUT_MS), "connect")) {
        shuf_set_reconnect(h, 0);
        shuf_set_timeout(h, TIMEOUT_MS);
        make_calls(h, argc == 3 ? argv[2] : "");
    }
    shuf_close(h);
    return result;
}
