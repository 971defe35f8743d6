/* SPDX-License-Identifier: MIT
 *
 * See sizes.h.
 */
#include "sizes.h"

#include "number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reads one number, or A:B, of `length` characters. */
static shuf_status parse_range(const char *field, const char *text, int length, uint64_t range[2],
                               struct shuf__error *error)
{
    char word[80];
    snprintf(word, sizeof word, "%.*s", length, text);
    char *colon = strchr(word, ':');
    if (colon)
        *colon = '\0';
    shuf_status status = shuf__number_parse(field, word, &range[0], error);
    range[1] = range[0];
    if (status == SHUF_OK && colon)
        status = shuf__number_parse(field, colon + 1, &range[1], error);
    return status;
}

shuf_status shuf__sizes_parse(const char *field, const char *text, uint32_t least, uint32_t most,
                              uint32_t *sizes, unsigned room, unsigned *count,
                              struct shuf__error *error)
{
    uint64_t range[2];
    *count = 0;
    for (const char *p = text;; p++) {
        const char *end = strchrnul(p, ',');
        shuf_status status = parse_range(field, p, (int)(end - p), range, error);
        if (status != SHUF_OK)
            return status;
        if (range[0] < least || range[1] > most || range[0] > range[1])
            return shuf__fail(error, SHUF_INVALID,
                              "%s %.64s: expected numbers from %" PRIu32 " to %" PRIu32
                              ", or A:B with A at most B",
                              field, text, least, most);
        if (range[1] - range[0] >= room - *count)
            return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected at most %u numbers", field,
                              text, room);
        for (uint64_t n = range[0]; n <= range[1]; n++)
            sizes[(*count)++] = (uint32_t)n;
        p = end;
        if (!*p)
            return SHUF_OK;
    }
}

uint64_t shuf__sizes_samples(uint32_t n)
{
    static const struct {
        uint32_t from;
        uint64_t samples;
    } rows[] = {{1 << 20, 1000}, {32768, 10000}, {1000, 100000},
                {9, 1000000},    {4, 10000000},  {0, 1000000}};
    int i = 0;
    while (n < rows[i].from)
        i++;
    return rows[i].samples;
}
