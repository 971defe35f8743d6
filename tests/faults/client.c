/* SPDX-License-Identifier: MIT
 *
 * A program that uses libshuf, for the fault tests: fault_client SOCKET [cuda|key]. It makes every
 * kind of call, with "cuda" also leases of device memory, with "key" also a request with the named
 * key "alpha". It checks the values of successful calls. Its exit status is 0 if all calls
 * succeeded. It is 2 if some failed, each with a status and a message. It is 3 after a wrong value
 * or a failure without a message.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 5000, FAILED = 2, WRONG = 3 };

const shuf_permutation permutation = {.n = N, .seed = SEED, .dtype = SHUF_U32};
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

int main(int argc, char **argv)
{
    const char *extra = argc == 3 ? argv[2] : "";
    const bool has_device = !strcmp(extra, "cuda"), has_key = !strcmp(extra, "key");
    shuf *h = NULL;
    if (argc != 2 && !has_device && !has_key)
        return 64;
    if (succeeded(h, shuf_connect_within(&h, argv[1], TIMEOUT_MS), "connect")) {
        shuf_set_reconnect(h, 0);
        shuf_set_timeout(h, TIMEOUT_MS);
        copy_results(h);
        lease_results(h);
        if (has_key)
            use_key(h);
        if (has_device)
            lease_from_device(h);
    }
    shuf_close(h);
    return result;
}
