/* SPDX-License-Identifier: MIT
 *
 * See number_list.h.
 */
#include "number_list.h"

#include "number.h"

#include <stdlib.h>

shuf_status shuf__numbers_add(struct shuf__numbers *numbers, const char *field, uint64_t number,
                              struct shuf__error *error)
{
    if (numbers->count == numbers->room) {
        const size_t room = numbers->room ? 2 * numbers->room : 64;
        uint64_t *at = reallocarray(numbers->at, room, sizeof *at);
        if (!at)
            return shuf__fail(error, SHUF_NO_MEMORY, "%s: out of memory for %zu numbers", field,
                              numbers->count + 1);
        numbers->at = at;
        numbers->room = room;
    }
    numbers->at[numbers->count++] = number;
    return SHUF_OK;
}

/* ---- Ratios ---- */

shuf_status shuf__ratios_add(struct shuf__ratios *ratios, const char *field, const char *text,
                             struct shuf__error *error)
{
    struct shuf__ratio ratio;
    if (shuf__ratio_parse(field, text, &ratio, error) ||
        shuf__numbers_add(&ratios->numerators, field, ratio.numerator, error) ||
        shuf__numbers_add(&ratios->denominators, field, ratio.denominator, error))
        return error->status;
    return SHUF_OK;
}

/* In lowest terms, the greatest common divisor of the numerators and the least common multiple of
 * the denominators give the smallest whole numbers. */
static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* False if the multiple needs more than 128 bits. The weight with the denominator d is at least the
 * multiple divided by d, so it then needs more than 64. */
static bool common_multiple(const struct shuf__numbers *denominators, unsigned __int128 *multiple)
{
    *multiple = 1;
    for (size_t i = 0; i < denominators->count; i++) {
        const uint64_t d = denominators->at[i];
        const uint64_t divisor = common_divisor(d, (uint64_t)(*multiple % d));
        if (__builtin_mul_overflow(*multiple, d / divisor, multiple))
            return false;
    }
    return true;
}

bool shuf__ratios_make_whole(struct shuf__ratios *ratios)
{
    unsigned __int128 multiple;
    uint64_t divisor = 0, sum = 0;
    struct shuf__numbers *weights = &ratios->numerators;
    if (!common_multiple(&ratios->denominators, &multiple))
        return false;
    for (size_t i = 0; i < weights->count; i++)
        divisor = common_divisor(divisor, weights->at[i]);
    for (size_t i = 0; i < weights->count && divisor > 0; i++) {
        const unsigned __int128 factor = multiple / ratios->denominators.at[i];
        if (__builtin_mul_overflow(weights->at[i] / divisor, factor, &weights->at[i]) ||
            __builtin_add_overflow(sum, weights->at[i], &sum))
            return false;
    }
    return sum < UINT64_C(1) << 61;
}

void shuf__ratios_free(struct shuf__ratios *ratios)
{
    free(ratios->numerators.at);
    free(ratios->denominators.at);
}
