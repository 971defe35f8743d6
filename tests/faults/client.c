/* SPDX-License-Identifier: MIT
 *
 * A program that uses libshuf, for the fault tests: fault_client SOCKET [cuda]. It makes every kind
 * of call, with "cuda" also leases of device memory, and checks the values of successful calls. Its
 * exit status is 0 if all calls succeeded. It is 2 if some failed, each with a status and a
 * message. It is 3 after a wrong value or a failure without a message.
 */
#include "shuf.h"
#include "shuf/primefold.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N = 1000,
    LATE_N = 20000,
    RECORD = 8,
    DEVICE_N = 1 << 21,
    TIMEOUT_MS = 5000,
    FAILED = 2,
    WRONG = 3
};

static const shuf_permutation permutation = {.n = N, .seed = 7, .dtype = SHUF_U32};
static int result;

static void wrong(const char *what)
{
    fprintf(stderr, "client: %s is wrong\n", what);
    exit(WRONG);
}

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
    const shuf_primefold f = shuf_primefold_make(n, 7, 0);
    for (uint32_t i = 0; i < n; i++)
        if (values[i] != shuf_primefold_forward(&f, i))
            wrong(what);
}

static void check_permutation(const uint32_t *values, const char *what)
{
    check_values(values, N, what);
}

static void permute(shuf *h)
{
    uint32_t values[N];
    shuf_result facts;
    if (succeeded(h, shuf_permute(h, &permutation, values, sizeof values, &facts), "permute"))
        check_permutation(values, "permute");
}

/* So large that a lane computes it, and not the loop's thread. */
static void permute_in_lane(shuf *h)
{
    static const shuf_permutation large = {.n = LATE_N, .algorithm = "philox24"};
    static uint64_t sum, values[LATE_N];
    const shuf_permutation request = {
        .n = large.n, .algorithm = large.algorithm, .dtype = SHUF_U64};
    if (!succeeded(h, shuf_permute(h, &request, values, sizeof values, NULL), "permute in a lane"))
        return;
    for (size_t i = 0; i < LATE_N; i++)
        sum += values[i];
    if (sum != (uint64_t)LATE_N * (LATE_N - 1) / 2)
        wrong("permute in a lane");
}

static void lease(shuf *h)
{
    shuf_lease *taken = NULL;
    if (!succeeded(h, shuf_lease_take(h, &permutation, NULL, &taken), "lease"))
        return;
    check_permutation(taken->data, "lease");
    succeeded(h, shuf_lease_release(h, &taken), "release");
    if (taken)
        wrong("a lease after its release");
}

static void lease_of_device(shuf *h, shuf_transport transport)
{
    static uint32_t values[DEVICE_N];
    const shuf_permutation request = {.n = DEVICE_N, .seed = 7, .dtype = SHUF_U32};
    const shuf_lease_options options = {.transports = transport};
    const char *name = shuf_transport_name(transport);
    shuf_lease *taken = NULL;
    if (!succeeded(h, shuf_lease_take(h, &request, &options, &taken), name))
        return;
    if (succeeded(h, shuf_lease_read(h, taken, 0, sizeof values, values), name))
        check_values(values, DEVICE_N, name);
    succeeded(h, shuf_lease_release(h, &taken), name);
}

static void leases_of_device(shuf *h)
{
    lease_of_device(h, SHUF_CUDA_FD);
    lease_of_device(h, SHUF_CUDA_IPC);
}

static void look_up(shuf *h)
{
    const uint64_t at[2] = {5, 999};
    uint64_t found[2];
    const shuf_primefold f = shuf_primefold_make(N, 7, 0);
    const shuf_permutation request = {.n = N, .seed = 7};
    if (!succeeded(h, shuf_index(h, &request, SHUF_FORWARD, at, 2, found), "index"))
        return;
    for (int i = 0; i < 2; i++)
        if (found[i] != shuf_primefold_forward(&f, at[i]))
            wrong("index");
}

static void draw(shuf *h)
{
    const shuf_numbers numbers = {
        .distribution = SHUF_UNIFORM, .count = N, .seed = 1, .dtype = SHUF_F64};
    double values[N];
    if (!succeeded(h, shuf_draw(h, &numbers, values, sizeof values, NULL), "draw"))
        return;
    for (int i = 0; i < N; i++)
        if (!(values[i] >= 0 && values[i] < 1))
            wrong("draw");
}

static void shuffle(shuf *h)
{
    const shuf_records records = {.n = N, .record = RECORD, .seed = 7};
    uint64_t in[N], out[N];
    const shuf_primefold f = shuf_primefold_make(N, 7, 0);
    for (uint64_t i = 0; i < N; i++)
        in[i] = 3 * i;
    if (!succeeded(h, shuf_shuffle(h, &records, in, out, sizeof in, NULL), "shuffle"))
        return;
    for (uint64_t i = 0; i < N; i++)
        if (out[i] != 3 * shuf_primefold_forward(&f, i))
            wrong("shuffle");
}

/* The first of two ranks sends the records first that stay, and then those of the other rank. */
static void exchange(shuf *h)
{
    enum { IN = 600, OUT = 500, LISTS = 4 };
    static const uint64_t input[] = {IN, N - IN}, output[] = {OUT, N - OUT};
    static uint32_t plan[LISTS + IN + OUT];
    const shuf_ranks ranks = {.n = N, .seed = 7, .world = 2, .input = input, .output = output};
    shuf_primefold f = shuf_primefold_make(N, 7, 0);
    if (!succeeded(h, shuf_exchange(h, &ranks, plan, sizeof plan, NULL), "exchange"))
        return;
    shuf_primefold_make_inverse(&f);
    for (uint32_t i = 0; i < IN; i++)
        if ((shuf_primefold_inverse(&f, plan[LISTS + i]) < OUT) != (i < plan[0]))
            wrong("exchange");
}

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

int main(int argc, char **argv)
{
    static void (*const calls[])(shuf *) = {
        permute, permute_in_lane, lease, look_up, draw, shuffle, ask, exchange, permute};
    const bool has_device = argc == 3 && !strcmp(argv[2], "cuda");
    shuf *h = NULL;
    if (argc != 2 && !has_device)
        return 64;
    const shuf_status status = shuf_connect_within(&h, argv[1], 5000);
    if (succeeded(h, status, "connect")) {
        shuf_set_reconnect(h, 0);
        shuf_set_timeout(h, TIMEOUT_MS);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            calls[i](h);
        if (has_device)
            leases_of_device(h);
    }
    shuf_close(h);
    return result;
}
