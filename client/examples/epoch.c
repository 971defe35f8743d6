/* SPDX-License-Identifier: MIT
 *
 * An epoch's permutation in the caller's memory:
 *
 *     cc epoch.c $(pkg-config --cflags --libs libshuf) -o epoch && ./epoch 3
 */
#include <shuf.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static uint32_t order[1000];
    shuf_permutation what = {
        .n = 1000,
        .seed = 7,
        .epoch = argc > 1 ? strtoull(argv[1], NULL, 0) : 0,
    };
    shuf *daemon;
    shuf_status status = shuf_connect(&daemon, NULL);
    if (status == SHUF_OK)
        status = shuf_permute(daemon, &what, order, sizeof order, NULL);
    if (status == SHUF_OK)
        printf("epoch %" PRIu64 " begins with samples %u, %u, %u\n", what.epoch, order[0], order[1],
               order[2]);
    else
        fprintf(stderr, "%s: %s\n", shuf_status_name(status), shuf_message(daemon));
    shuf_close(daemon);
    return status == SHUF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
