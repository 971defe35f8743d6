/* SPDX-License-Identifier: MIT
 *
 * A program that uses libshuf, for the fault tests: fault_client SOCKET [cuda|key|hold]. It makes
 * every kind of call, with "cuda" also leases of device memory. With "key" it only makes requests
 * with the named key "alpha", and with "hold" it only holds a lease until its standard input ends.
 * It checks the values of successful calls. Its exit status is 0 if all calls succeeded. It is 2 if
 * some failed, each with a status and a message. It is 3 after a wrong value or a failure without a
 * message.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 5000, FAILED = 2, WRONG = 3 };

const shuf_request permutation = {.permutation = {.n = N, .seed = SEED, .dtype = SHUF_U32}};
const shuf_records records = {.n = N, .record = RECORD, .seed = SEED};
static int result;

void wrong(const char *what)
{
    fprintf(stderr, "client: %s is wrong\n", what);
    exit(WRONG);
}

bool succeeded(shuf *h, shuf_status status, const char *what)
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

void check_values(const uint32_t *values, uint32_t n, const char *what)
{
    const shuf_primefold f = shuf_primefold_make(n, SEED, 0);
    for (uint32_t i = 0; i < n; i++)
        if (values[i] != shuf_primefold_forward(&f, i))
            wrong(what);
}

void check_permutation(const uint32_t *values, const char *what)
{
    check_values(values, N, what);
}

void fill_records(uint64_t in[N])
{
    for (uint64_t i = 0; i < N; i++)
        in[i] = 3 * i;
}

void check_shuffled(const uint64_t *out, const char *what)
{
    const shuf_primefold f = shuf_primefold_make(N, SEED, 0);
    for (uint64_t i = 0; i < N; i++)
        if (out[i] != 3 * shuf_primefold_forward(&f, i))
            wrong(what);
}

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
