/* SPDX-License-Identifier: MIT
 *
 * See golden.h.
 */
#include "golden.h"

#include "shuf/fingerprint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

FILE *golden_open(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", SHUF_VECTORS, name);
    FILE *table = fopen(path, "re");
    if (!table) {
        perror(path);
        exit(1);
    }
    return table;
}

char *golden_line(FILE *table)
{
    static _Thread_local char line[1 << 14];
    while (fgets(line, sizeof line, table))
        if (line[0] != '#') {
            line[strcspn(line, "\n")] = '\0';
            return line;
        }
    return NULL;
}

bool golden_next(FILE *table, struct golden *row)
{
    int used = 0;
    const char *line = golden_line(table);
    if (!line)
        return false;
    if (sscanf(line, "%15s %" SCNu64 " %" SCNx64 " %" SCNx64 " %" SCNx64 "%n", row->algorithm,
               &row->n, &row->seed, &row->epoch, &row->fingerprint, &used) != 5)
        goto bad;
    row->count = row->n <= GOLDEN_WHOLE ? (unsigned)row->n : GOLDEN_HEAD + GOLDEN_TAIL;
    char *next = NULL;
    const char *p = line + used;
    for (unsigned i = 0; i < row->count; i++, p = next) {
        row->values[i] = strtoull(p, &next, 10);
        if (next == p)
            goto bad;
    }
    if (*p == '\0')
        return true;
bad:
    fprintf(stderr, "permute.txt: not a row: %s\n", line);
    exit(1);
}

bool golden_next_positions(FILE *table, struct golden_positions *row)
{
    int used = 0;
    const char *line = golden_line(table);
    if (!line)
        return false;
    bool good = sscanf(line, "%" SCNu64 " %" SCNx64 " %" SCNx64 "%n", &row->n, &row->seed,
                       &row->epoch, &used) == 3;
    const char *p = line + used;
    for (row->count = 0; good && *p != '\0'; row->count++) {
        good = row->count < GOLDEN_POSITIONS &&
               sscanf(p, " %" SCNu64 " %" SCNu64 "%n", &row->position[row->count],
                      &row->value[row->count], &used) == 2;
        p += used;
    }
    if (good && row->count > 0)
        return true;
    fprintf(stderr, "primefold.txt: not a row: %s\n", line);
    exit(1);
}

bool golden_next_stream(FILE *table, struct golden_stream *row)
{
    int used = 0;
    const char *line = golden_line(table);
    if (!line)
        return false;
    char mean[32] = "";
    bool good =
        sscanf(line,
               "%15s %15s %" SCNx64 " %" SCNx64 " %31s %lf %" SCNu64 " %" SCNu64 " %" SCNx64 "%n",
               row->distribution, row->dtype, &row->seed, &row->stream, mean, &row->std,
               &row->offset, &row->count, &row->fingerprint, &used) == 9;
    const bool has_bound = strcmp(row->distribution, "integers") == 0;
    row->mean = has_bound ? 0 : strtod(mean, NULL);
    row->bound = has_bound ? strtoull(mean, NULL, 10) : 0;
    const char *p = line + used;
    for (row->shown = 0; good && *p != '\0'; row->shown++) {
        good = row->shown < GOLDEN_SHOWN &&
               sscanf(p, " %" SCNx64 "%n", &row->bits[row->shown], &used) == 1;
        p += used;
    }
    if (good && row->shown == (row->count < GOLDEN_SHOWN ? row->count : GOLDEN_SHOWN))
        return true;
    fprintf(stderr, "streams.txt: not a row: %s\n", line);
    exit(1);
}

uint64_t golden_position(const struct golden *row, unsigned index)
{
    if (row->n <= GOLDEN_WHOLE || index < GOLDEN_HEAD)
        return index;
    return row->n - GOLDEN_HEAD - GOLDEN_TAIL + index;
}

uint64_t golden_fingerprint(const uint64_t *values, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += shuf_fingerprint_term(i, values[i]);
    return sum;
}

uint64_t golden_number(char **row)
{
    char *end;
    const uint64_t value = strtoull(*row, &end, 0);
    if (end == *row) {
        fprintf(stderr, "golden table: expected a number at '%s'\n", *row);
        exit(1);
    }
    *row = end;
    return value;
}
