/* SPDX-License-Identifier: MIT
 *
 * See number.h. Digits, exponent and suffix are applied in integers: a double
 * would round seeds above 2^53.
 */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct digits {
    uint64_t value;
    int fraction; /* digits after the point, trailing zeros left out */
    bool overflow, any;
};

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static void push_digit(struct digits *d, unsigned base, unsigned digit)
{
    d->any = true;
    if (__builtin_mul_overflow(d->value, base, &d->value) ||
        __builtin_add_overflow(d->value, digit, &d->value))
        d->overflow = true;
}

/* An underscore counts only between two digits. */
static const char *read_digits(const char *p, unsigned base, struct digits *d)
{
    for (;
         (unsigned)digit_of(*p) < base || (*p == '_' && d->any && (unsigned)digit_of(p[1]) < base);
         p++)
        if (*p != '_')
            push_digit(d, base, (unsigned)digit_of(*p));
    return p;
}

/* ".500" is one digit, so that 1.500e1 is whole. */
static const char *read_fraction(const char *p, struct digits *d)
{
    const char *end = p + strspn(p, "0123456789");
    const char *last = end;
    while (last > p && last[-1] == '0')
        last--;
    d->fraction = (int)(last - p);
    for (; p < last; p++)
        push_digit(d, 10, (unsigned)digit_of(*p));
    return end;
}

static const char *read_exponent(const char *p, int *exponent)
{
    struct digits e = {0};
    p = read_digits(p + (p[0] == '+'), 10, &e);
    *exponent = e.overflow || e.value > 1000 ? 1000 : (int)e.value;
    return e.any ? p : NULL;
}

static bool scale(uint64_t *value, uint64_t factor, int times)
{
    bool overflow = false;
    for (; times > 0 && *value != 0 && !overflow; times--)
        overflow = __builtin_mul_overflow(*value, factor, value);
    return !overflow;
}

static int suffix_power(const char *p)
{
    static const char prefixes[] = "KMGTPE";
    const char *found = *p ? strchr(prefixes, *p) : NULL;
    return found && p[1] == 'i' && p[2] == '\0' ? (int)(found - prefixes) + 1 : 0;
}

/* strtod() also passes over blanks and takes hexadecimal. */
shuf_status shuf__decimal_parse(const char *field, const char *text, double *value,
                                struct shuf__error *error)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    const bool form =
        end > text && *end == '\0' && !isspace((unsigned char)*text) && !strpbrk(text, "xX");
    const bool out = errno == ERANGE && (*value == 0 || isinf(*value)); /* tiny ones may round */
    if (form && !out)
        return SHUF_OK;
    if (form)
        return shuf__fail(error, SHUF_INVALID, "%s %.64s: is too %s for a double", field, text,
                          *value == 0 ? "small" : "large");
    return shuf__fail(error, SHUF_INVALID,
                      "%s %.64s: expected a decimal number such as 0.5 or 1e-3", field,
                      *text ? text : "''");
}

shuf_status shuf__number_parse(const char *field, const char *text, uint64_t *value,
                               struct shuf__error *error)
{
    struct digits d = {0};
    int exponent = 0, power = 0;
    const char *p = text, *why = "expected a whole number such as 1000, 1e9, 64Ki or 0x7";
    if (*p == '-') {
        why = "is negative; expected 0 or more";
        goto bad;
    }
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        p = read_digits(p + 2, 16, &d);
    } else {
        p = read_digits(p, 10, &d);
        if (d.any && *p == '.')
            p = read_fraction(p + 1, &d);
        if (d.any && d.fraction == 0 && (power = suffix_power(p)) != 0)
            p += 2; /* before the exponent, which an E begins too */
        else if (d.any && (*p == 'e' || *p == 'E'))
            p = read_exponent(p + 1, &exponent);
    }
    if (!p || !d.any || *p != '\0')
        goto bad;
    why = "is not whole; expected a whole number";
    if (d.fraction > exponent)
        goto bad;
    why = "is too large; expected less than 2^64";
    if (d.overflow || !scale(&d.value, 10, exponent - d.fraction) || !scale(&d.value, 1024, power))
        goto bad;
    *value = d.value;
    return SHUF_OK;
bad:
    return shuf__fail(error, SHUF_INVALID, "%s %.64s: %s", field, *text ? text : "''", why);
}
