/* SPDX-License-Identifier: MIT
 *
 * Copies an epoch's permutation to the caller's memory:
 *
 *     cc epoch.c $(pkg-config --cflags --libs libshuf) -o epoch && ./epoch 3
 */
#include <shuf.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static uint32_t permutation[1000];
    shuf_permutation request = {
        .n = 1000,
        .seed = 7,
        .epoch = argc > 1 ? strtoull(argv[1], NULL, 0) : 0,
    };
    shuf *daemon;
    shuf_status status = shuf_connect(&daemon, NULL);
    if (status == SHUF_OK)
        status = shuf_permute(daemon, &request, permutation, sizeof permutation, NULL);
    if (status == SHUF_OK)
        printf("epoch %" PRIu64 " begins with samples %u, %u, %u\n", request.epoch, permutation[0],
               permutation[1], permutation[2]);
    else
        fprintf(stderr, "%s: %s\n", shuf_status_name(status), shuf_message(daemon));
    shuf_close(daemon);
    return status == SHUF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
