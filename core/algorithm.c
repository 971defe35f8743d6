/* SPDX-License-Identifier: MIT
 *
 * See algorithm.h.
 */
#include "algorithm.h"

#include "nearest.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define X(name, text, description, random_access) [SHUF_ALGORITHM_##name] = text,
    SHUF_ALGORITHM_MAP(X)
#undef X
};

const char *shuf__algorithm_name(enum shuf_algorithm algorithm)
{
    return names[algorithm];
}

const char *shuf__algorithm_list(char text[SHUF__ALGORITHM_LIST])
{
    size_t used = 0;
    for (int i = 0; i < SHUF_ALGORITHM_COUNT && used < SHUF__ALGORITHM_LIST; i++) {
        const char *between = i == 0 ? "" : i + 1 == SHUF_ALGORITHM_COUNT ? " or " : ", ";
        used +=
            (size_t)snprintf(text + used, SHUF__ALGORITHM_LIST - used, "%s%s", between, names[i]);
    }
    return text;
}

static shuf_status refuse(const char *name, struct shuf__error *error)
{
    char expected[SHUF__ALGORITHM_LIST], hint[SHUF__HINT];
    struct shuf__nearest nearest = {.text = name};
    for (int i = 0; i < SHUF_ALGORITHM_COUNT; i++)
        shuf__nearest_offer(&nearest, names[i]);
    return shuf__fail(error, SHUF_INVALID, "algorithm \"%.64s\": expected %s%s", name,
                      shuf__algorithm_list(expected), shuf__nearest_hint(&nearest, hint));
}

shuf_status shuf__algorithm_parse(const char *name, enum shuf_algorithm *algorithm,
                                  struct shuf__error *error)
{
    for (int i = 0; i < SHUF_ALGORITHM_COUNT; i++)
        if (!name || *name == '\0' || strcmp(name, names[i]) == 0) {
            *algorithm = (enum shuf_algorithm)i;
            return SHUF_OK;
        }
    return refuse(name, error);
}
