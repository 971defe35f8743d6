/* SPDX-License-Identifier: MIT
 *
 * Gives the samples that rank 3 of 8 still has to read in epoch 3, after its first 100:
 *
 *     cc epoch.c $(pkg-config --cflags --libs libshuf) -o epoch && ./epoch
 */
#include <err.h>
#include <shuf.h>
#include <stdio.h>

int main(void)
{
    shuf *daemon;
    uint32_t order[25]; /* for uint64_t: .dtype = SHUF_U64 */
    shuf_request request = {.permutation = {.n = 1000,
                                            .seed = 7,
                                            .epoch = 3,
                                            .view = SHUF_VIEW_SHARD,
                                            .rank = 3,
                                            .world = 8,
                                            .step = 100}};
    if (shuf_connect(&daemon, NULL) != SHUF_OK ||
        shuf_copy(daemon, &request, order, sizeof order, NULL) != SHUF_OK)
        errx(1, "%s", shuf_message(daemon));
    printf("rank 3 goes on with sample %u\n", order[0]);
    shuf_close(daemon);
}
