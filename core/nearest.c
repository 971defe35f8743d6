/* SPDX-License-Identifier: MIT
 *
 * See nearest.h. The distance is that of optimal string alignment (Damerau and Levenshtein).
 */
#include "nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 32 }; /* most characters of the compared names and words */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static unsigned edit_distance(const char *a, const char *b)
{
    unsigned d[LONGEST + 1][LONGEST + 1];
    const size_t rows = strlen(a), columns = strlen(b);
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j <= columns; j++) {
            d[i][j] = (unsigned)(i == 0 ? j : i);
            if (i == 0 || j == 0)
                continue;
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
                            d[i - 1][j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[rows][columns];
}

static bool is_beginning(const char *text, const char *name)
{
    const size_t length = strlen(text);
    return length >= 2 && strncasecmp(text, name, length) == 0;
}

void shuf__nearest_offer(struct shuf__nearest *nearest, const char *name)
{
    const size_t length = strlen(nearest->text);
    if (length == 0 || length > LONGEST || strlen(name) > LONGEST)
        return;
    unsigned distance = edit_distance(nearest->text, name);
    if (distance > 1 && is_beginning(nearest->text, name))
        distance = 1;
    if (distance > 1 + length / 4 || distance >= length ||
        (nearest->name && distance >= nearest->distance))
        return;
    nearest->name = name;
    nearest->distance = distance;
}

const char *shuf__nearest_hint(const struct shuf__nearest *nearest, char hint[SHUF__HINT])
{
    *hint = '\0';
    if (nearest->name)
        snprintf(hint, SHUF__HINT, "; did you mean %s?", nearest->name);
    return hint;
}

const char *shuf__hint_of(const char *text, const char *const names[], char hint[SHUF__HINT])
{
    struct shuf__nearest nearest = {.text = text};
    for (int i = 0; names[i]; i++)
        shuf__nearest_offer(&nearest, names[i]);
    return shuf__nearest_hint(&nearest, hint);
}
