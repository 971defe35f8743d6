/* SPDX-License-Identifier: MIT
 *
 * Times a lease that replaces the lease before, as samplers.py does in Python. Prints microseconds
 * of wall time and of CPU time of this process.
 *     python_call SOCKET N ROUNDS
 */
#include <shuf.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Exits on an error. */
static void take(shuf *handle, uint64_t n, uint64_t rounds, shuf_lease **lease)
{
    const shuf_lease_options options = {.transports = SHUF_MEMFD | SHUF_INLINE};
    for (uint64_t epoch = 0; epoch < rounds; epoch++) {
        const shuf_request request = {.permutation = {.n = n, .seed = 7, .epoch = epoch % 4}};
        if (shuf_lease_take(handle, &request, &options, lease)) {
            fprintf(stderr, "%s\n", shuf_message(handle));
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const uint64_t n = strtoull(argv[2], NULL, 10), rounds = strtoull(argv[3], NULL, 10);
    shuf *handle = NULL;
    shuf_lease *lease = NULL;
    if (shuf_connect(&handle, argv[1]))
        return 1;
    take(handle, n, 1000, &lease);
    const double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    take(handle, n, rounds, &lease);
    printf("%.3f %.3f\n", (now(CLOCK_MONOTONIC) - wall) / (double)rounds,
           (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)rounds);
    shuf_lease_release(handle, &lease);
    shuf_close(handle);
    return 0;
}
