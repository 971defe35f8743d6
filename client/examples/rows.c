/* SPDX-License-Identifier: MIT
 *
 * Shuffles the rows of a table in every epoch. It writes the table once, to a buffer of the daemon,
 * and reads the shuffled rows of each epoch through a lease.
 *
 *     cc rows.c $(pkg-config --cflags --libs libshuf) -o rows && ./rows 3
 */
#include <shuf.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100000, COLUMNS = 4 };

typedef struct {
    float x[COLUMNS];
} row;

static void fill_table(row *table)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            table[i].x[j] = (float)i + (float)j / 10;
}

static shuf_status run_epochs(shuf *daemon, uint64_t epochs)
{
    shuf_lease *table = NULL, *shuffled = NULL;
    const shuf_request buffer = {SHUF_BUFFER, .bytes = ROWS * sizeof(row)};
    shuf_request shuffle = {SHUF_RECORDS, .records = {.n = ROWS, .record = sizeof(row), .seed = 7}};
    uint64_t *const epoch = &shuffle.records.epoch;
    shuf_status status = shuf_lease_take(daemon, &buffer, NULL, &table);
    if (status == SHUF_OK && table->buffer)
        fill_table(table->buffer);
    shuffle.records.input = table;
    for (; status == SHUF_OK && *epoch < epochs; ++*epoch) {
        status = shuf_lease_take(daemon, &shuffle, NULL, &shuffled);
        if (status != SHUF_OK)
            break;
        const row *rows = shuffled->data;
        printf("epoch %" PRIu64 ": %.1f %.1f %.1f %.1f, then %.1f\n", *epoch, (double)rows[0].x[0],
               (double)rows[0].x[1], (double)rows[0].x[2], (double)rows[0].x[3],
               (double)rows[1].x[0]);
    }
    return status; /* the leases end with the handle */
}

int main(int argc, char **argv)
{
    shuf *daemon;
    shuf_status status = shuf_connect(&daemon, NULL);
    if (status == SHUF_OK)
        status = run_epochs(daemon, argc > 1 ? strtoull(argv[1], NULL, 0) : 1);
    if (status != SHUF_OK)
        fprintf(stderr, "%s: %s\n", shuf_status_name(status), shuf_message(daemon));
    shuf_close(daemon);
    return status == SHUF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
