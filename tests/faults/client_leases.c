/* SPDX-License-Identifier: MIT
 *
 * The calls of fault_client that lease results, and the list of leases.
 */
#include "../support/take.h"
#include "client.h"

enum { LARGE_N = 1 << 21 };

static void release(shuf *h, shuf_lease **lease)
{
    succeeded(h, shuf_lease_release(h, lease), "release");
    if (*lease)
        wrong("a lease after its release");
}

/* ---- Results ------------------------------------------------------------------------- */

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
    const shuf_request numbers = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_UNIFORM, .count = N, .dtype = SHUF_F64}};
    shuf_lease *taken = NULL;
    double first;
    succeeded(h, shuf_prefetch(h, &numbers, NULL), "draw prefetch");
    if (!succeeded(h, shuf_lease_take(h, &numbers, NULL, &taken), "draw lease"))
        return;
    if (succeeded(h, shuf_lease_read(h, taken, 0, sizeof first, &first), "lease read") &&
        !(first >= 0 && first < 1))
        wrong("draw lease");
    release(h, &taken);
}

/* ---- Buffers ------------------------------------------------------------------------- */

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

/* ---- One-sided plans ----------------------------------------------------------------- */

/* Rank 1 of two ranks that have a half of the records each gets them in one part. Each rank is one
 * window. */
static void check_one_sided(const uint32_t *plan)
{
    enum { HALF = N / 2 };
    const uint32_t *begins = plan, *numbers = begins + 3, *indices = numbers + HALF;
    const shuf_primefold f = shuf_primefold_make(N, SEED, 0);
    for (uint32_t i = 0; i < HALF; i++) {
        const uint32_t at = indices[i], rank = at >= begins[1];
        if (at >= HALF || rank * HALF + numbers[at] != shuf_primefold_forward(&f, HALF + i))
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

/* ---- The list ------------------------------------------------------------------------ */

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

/* ---- Device memory ------------------------------------------------------------------- */

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

void lease_from_device(shuf *h)
{
    lease_of_device(h, SHUF_CUDA_FD);
    lease_of_device(h, SHUF_CUDA_IPC);
}

void lease_results(shuf *h)
{
    static void (*const calls[])(shuf *) = {lease,         lease_copy,        lease_prefetched,
                                            lease_numbers, use_mapped_buffer, use_copied_buffer,
                                            list,          lease_one_sided};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        calls[i](h);
}
