/* SPDX-License-Identifier: MIT
 *
 * The orders of a training job, without a daemon: what rank 3 of 8 reads next from data in chunks,
 * from a mixture of two data sets, and from draws by weights.
 */
#include <err.h>
#include <inttypes.h>
#include <shuf.h>
#include <stdio.h>

static void check(shuf_status status)
{
    if (status != SHUF_OK)
        errx(1, "%s", shuf_message(NULL));
}

int main(void)
{
    const uint64_t rank = 3, world = 8, position = 2024000000; /* of all ranks together */
    uint64_t record[100], counts[2], draw[100];
    uint32_t source[100];

    const shuf_request windowed = {.permutation = {.n = 10000000000000,
                                                   .seed = 7,
                                                   .chunk = 1000,
                                                   .window = 64,
                                                   .view = SHUF_VIEW_SLICE,
                                                   .offset = position + rank,
                                                   .count = 100,
                                                   .stride = world}};
    check(shuf_host_fill(&windowed, 1, record, sizeof record));
    printf("windowed %" PRIu64 ", ", record[0]);

    const shuf_source sources[] = {{.records = 8000000000, .chunk = 1000, .window = 64},
                                   {.records = 2000000}};
    const uint64_t weights[] = {7, 3}, later[] = {1, 1};
    const shuf_stage stages[] = {{0, weights}, {1000000000, later}};
    const shuf_mixture_request request = {
        .seed = 7, .sources = sources, .source_count = 2, .stages = stages, .stage_count = 2};
    shuf_mixture *mixture;
    check(shuf_mixture_make(&request, &mixture));
    check(shuf_mixture_fill(mixture, position + rank, 100, world, 1,
                            &(shuf_mixed){.source = source, .record = record}));
    check(shuf_mixture_counts(mixture, position, counts));
    printf("mixed %" PRIu64 " of source %" PRIu32 ", after %" PRIu64 " and %" PRIu64 ", ",
           record[0], source[0], counts[0], counts[1]);
    shuf_mixture_free(mixture);

    const double weight[] = {0.5, 0.0, 3.0, 1.5};
    shuf_weights *table;
    check(shuf_weights_make(weight, SHUF_F64, 4, &table));
    check(shuf_weights_draw(table, 7, 0, position + rank, 100, world, 1, draw));
    printf("drawn %" PRIu64 "\n", draw[0]);
    shuf_weights_free(table);
}
