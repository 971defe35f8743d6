/* SPDX-License-Identifier: MIT
 *
 * Requests one worker's part of a stream of normally distributed numbers, with its moments. Then it
 * computes the first value again with the inline C functions:
 *
 *     cc noise.c $(pkg-config --cflags --libs libshuf) -o noise && ./noise 3
 */
#include <shuf.h>
#include <shuf/gauss.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { EACH = 100000 };

int main(int argc, char **argv)
{
    static double noise[EACH];
    uint64_t worker = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    shuf_request request = {.kind = SHUF_NUMBERS,
                            .numbers = {
                                .distribution = SHUF_GAUSS,
                                .seed = 7,
                                .offset = worker * EACH,
                                .count = EACH,
                                .std = 0.5,
                                .moments = true,
                            }};
    shuf *daemon;
    shuf_result result;
    shuf_status status = shuf_connect(&daemon, NULL);
    if (status == SHUF_OK)
        status = shuf_copy(daemon, &request, noise, sizeof noise, &result);
    if (status == SHUF_OK) {
        shuf_gauss g = shuf_gauss_make(request.numbers.seed, request.numbers.stream,
                                       request.numbers.mean, request.numbers.std);
        printf("values from %" PRIu64 ": mean %.4f, variance %.4f, kurtosis %.4f\n",
               request.numbers.offset, result.moments.mean, result.moments.variance,
               result.moments.kurtosis);
        printf("the first: %.17g, by itself: %.17g\n", noise[0],
               shuf_gauss_f64(&g, request.numbers.offset));
    } else {
        fprintf(stderr, "%s: %s\n", shuf_status_name(status), shuf_message(daemon));
    }
    shuf_close(daemon);
    return status == SHUF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
