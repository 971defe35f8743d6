/* SPDX-License-Identifier: MIT
 *
 * See number.h. The parser computes with integers only, because a double would round seeds above
 * 2^53.
 */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HINT = 64 };

struct unit {
    const char *name;
    uint64_t factor;
};

#define KI UINT64_C(1024)
#define PREFIX(letter, thousands, binary)                                 \
    {letter "iB", binary}, {letter "i", binary}, {letter "B", thousands}, \
    {                                                                     \
        letter, thousands                                                 \
    }

/* Units with the same factor stand together. Output uses the first of them. */
static const struct unit prefixes[] = {
    PREFIX("E", UINT64_C(1000000000000000000), KI *KI *KI *KI *KI *KI),
    PREFIX("P", UINT64_C(1000000000000000), KI *KI *KI *KI *KI),
    PREFIX("T", UINT64_C(1000000000000), KI *KI *KI *KI),
    PREFIX("G", 1000000000, KI *KI *KI),
    PREFIX("M", 1000000, KI *KI),
    PREFIX("K", 1000, KI),
    {"kB", 1000},
    {"k", 1000},
    {"", 1},
    {NULL, 0},
};

#define SECOND UINT64_C(1000000000)

static const struct unit times[] = {
    {"h", 3600 * SECOND}, {"min", 60 * SECOND},
    {"s", SECOND},        {"ms", 1000000},
    {"us", 1000},         {"ns", 1},
    {"", SECOND},         {NULL, 0},
};

/* Other spellings of the times, in small letters. */
static const struct alias {
    const char *text, *unit;
} aliases[] = {
    {"m", "min"},   {"mins", "min"}, {"minute", "min"}, {"minutes", "min"},
    {"sec", "s"},   {"secs", "s"},   {"second", "s"},   {"seconds", "s"},
    {"hr", "h"},    {"hrs", "h"},    {"hour", "h"},     {"hours", "h"},
    {"msec", "ms"}, {"usec", "us"},  {"\u00b5s", "us"}, {"nsec", "ns"},
};

/* ---- Reading ---- */

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

/* Trailing zeros do not count, so ".500" has one digit, and 1.500e1 is a whole number. */
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
    const bool minus = p[0] == '-';
    p = read_digits(p + (minus || p[0] == '+'), 10, &e);
    const int size = e.overflow || e.value > 1000 ? 1000 : (int)e.value;
    *exponent = minus ? -size : size;
    return p;
}

static bool begins_exponent(const char *p, bool may_be_negative)
{
    const bool sign = p[0] && (p[1] == '+' || (may_be_negative && p[1] == '-'));
    return (*p == 'e' || *p == 'E') && isdigit((unsigned char)p[1 + sign]);
}

static const struct unit *find_unit(const struct unit *units, const char *name,
                                    int (*compare)(const char *, const char *))
{
    while (units->name && compare(units->name, name) != 0)
        units++;
    return units->name ? units : NULL;
}

typedef unsigned __int128 wide_uint;

/* value * factor * 10^shift */
struct quantity {
    uint64_t value, factor;
    int shift;
};

enum outcome { READ, NO_NUMBER, NEGATIVE, NOT_WHOLE, TOO_LARGE };

/* Reads `text` as a number in one of the units, `small` also with a negative exponent. Sets *rest
 * to the end of the digits. */
static enum outcome read_quantity(const char *text, const struct unit *units, bool small,
                                  struct quantity *q, const char **rest)
{
    struct digits d = {0};
    int exponent = 0;
    const char *p = text;
    const bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    *rest = text;
    if (*p == '-')
        return NEGATIVE;
    p = read_digits(hex ? p + 2 : p, hex ? 16 : 10, &d);
    if (!d.any)
        return NO_NUMBER;
    if (!hex && *p == '.')
        p = read_fraction(p + 1, &d);
    *rest = p;
    if (!hex && begins_exponent(p, small))
        p = read_exponent(p + 1, &exponent);
    const struct unit *unit = find_unit(units, p, strcmp);
    if (!unit || (*p && (p != *rest || hex)))
        return NO_NUMBER;
    *q = (struct quantity){d.value, unit->factor, exponent - d.fraction};
    return d.overflow ? TOO_LARGE : READ;
}

static enum outcome read_whole(const char *text, const struct unit *units, uint64_t *value,
                               const char **rest)
{
    struct quantity q;
    const enum outcome outcome = read_quantity(text, units, false, &q, rest);
    if (outcome != READ)
        return outcome;
    wide_uint product = (wide_uint)q.value * q.factor;
    for (; q.shift < 0 && product != 0; q.shift++, product /= 10)
        if (product % 10 != 0)
            return NOT_WHOLE;
    for (; q.shift > 0 && product != 0 && product <= UINT64_MAX; q.shift--)
        product *= 10;
    *value = (uint64_t)product;
    return product > UINT64_MAX ? TOO_LARGE : READ;
}

/* ---- Numbers ---- */

/* The unit that the user meant; NULL: none. */
static const char *meant_unit(const struct unit *units, const char *name)
{
    const struct unit *unit = find_unit(units, name, strcasecmp);
    for (size_t i = 0; !unit && units == times && i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(aliases[i].text, name) == 0)
            return aliases[i].unit;
    return unit && *unit->name ? unit->name : NULL;
}

static const char *write_hint(const char *text, const struct unit *units, char hint[HINT])
{
    const char *rest;
    uint64_t ignored;
    const bool wrong = read_whole(text, units, &ignored, &rest) == NO_NUMBER;
    const char *unit = rest > text ? meant_unit(units, rest + strspn(rest, " ")) : NULL;
    const bool hex = tolower((unsigned char)text[0] ? text[1] : 0) == 'x';
    *hint = '\0';
    if (wrong && unit && !hex && rest - text < SHUF__NUMBER_TEXT)
        snprintf(hint, HINT, "; did you mean %.*s%s?", (int)(rest - text), text, unit);
    return hint;
}

/* "; did you mean 10M?" if only the case of the prefix is wrong, or a blank stands before it. Else
 * an empty text. */
static const char *hint_of(const char *text, char hint[HINT])
{
    return write_hint(text, prefixes, hint);
}

shuf_status shuf__number_parse_in(const char *field, const char *text, uint64_t least,
                                  uint64_t most, uint64_t *value, struct shuf__error *error)
{
    char low[SHUF__NUMBER_TEXT], high[SHUF__NUMBER_TEXT], hint[HINT];
    const char *rest;
    uint64_t number = 0;
    const enum outcome outcome = read_whole(text, prefixes, &number, &rest);
    if (outcome == READ && number >= least && number <= most) {
        *value = number;
        return SHUF_OK;
    }
    if (outcome == NO_NUMBER)
        return shuf__fail(error, SHUF_INVALID,
                          "%s %.64s: expected a whole number such as 1000, 1e9, 10M or 64Ki%s",
                          field, *text ? text : "''", hint_of(text, hint));
    return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected %s%s to %s", field, text,
                      outcome == NOT_WHOLE ? "a whole number, " : "", shuf__bound_text(low, least),
                      shuf__bound_text(high, most));
}

shuf_status shuf__number_parse(const char *field, const char *text, uint64_t *value,
                               struct shuf__error *error)
{
    return shuf__number_parse_in(field, text, 0, UINT64_MAX, value, error);
}

shuf_status shuf__duration_parse(const char *field, const char *text, uint64_t least, uint64_t most,
                                 uint64_t *nanoseconds, struct shuf__error *error)
{
    char low[SHUF__NUMBER_TEXT], high[SHUF__NUMBER_TEXT], hint[HINT];
    const char *rest;
    uint64_t number = 0;
    const enum outcome outcome = read_whole(text, times, &number, &rest);
    if (outcome == READ && number >= least && number <= most) {
        *nanoseconds = number;
        return SHUF_OK;
    }
    if (outcome == NO_NUMBER)
        return shuf__fail(
            error, SHUF_INVALID,
            "%s %.64s: expected a duration such as 10min, 5s or 50us; the units are ns, "
            "us, ms, s, min and h%s",
            field, *text ? text : "''", write_hint(text, times, hint));
    return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected %s%s to %s", field, text,
                      outcome == NOT_WHOLE ? "whole nanoseconds, " : "",
                      shuf__duration_text(low, least), shuf__duration_text(high, most));
}

/* Checks the form first, because strtod() also accepts leading blanks and hexadecimal. */
shuf_status shuf__decimal_parse(const char *field, const char *text, double *value,
                                struct shuf__error *error)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    const bool form =
        end > text && *end == '\0' && !isspace((unsigned char)*text) && !strpbrk(text, "xX");
    const bool out =
        errno == ERANGE && (*value == 0 || isinf(*value)); /* a tiny number may lose digits */
    if (form && !out)
        return SHUF_OK;
    if (form)
        return shuf__fail(error, SHUF_INVALID, "%s %.64s: too %s for a double", field, text,
                          *value == 0 ? "small" : "large");
    return shuf__fail(error, SHUF_INVALID,
                      "%s %.64s: expected a decimal number such as 0.5 or 1e-3", field,
                      *text ? text : "''");
}

/* ---- Ratios ---- */

/* numerator / denominator in lowest terms. */
static enum outcome reduce(wide_uint numerator, wide_uint denominator, struct shuf__ratio *ratio)
{
    wide_uint a = numerator, b = denominator;
    while (b != 0) {
        const wide_uint rest = a % b;
        a = b;
        b = rest;
    }
    *ratio = (struct shuf__ratio){(uint64_t)(numerator / a), (uint64_t)(denominator / a)};
    return numerator / a > UINT64_MAX || denominator / a > UINT64_MAX ? TOO_LARGE : READ;
}

static enum outcome read_ratio(const char *text, struct shuf__ratio *ratio)
{
    const char *rest;
    struct quantity q;
    const enum outcome outcome = read_quantity(text, prefixes, true, &q, &rest);
    if (outcome != READ)
        return outcome;
    wide_uint product = (wide_uint)q.value * q.factor, divisor = 1;
    if (product == 0)
        q.shift = 0;
    for (; q.shift < 0 && product % 10 == 0; q.shift++)
        product /= 10;
    for (; q.shift < 0 && divisor <= UINT64_MAX; q.shift++)
        divisor *= 10;
    for (; q.shift > 0 && product <= UINT64_MAX; q.shift--)
        product *= 10;
    return q.shift ? TOO_LARGE : reduce(product, divisor, ratio);
}

shuf_status shuf__ratio_parse(const char *field, const char *text, struct shuf__ratio *ratio,
                              struct shuf__error *error)
{
    struct shuf__ratio lower = {1, 1};
    char upper_text[64];
    const char *slash = strchrnul(text, '/');
    snprintf(upper_text, sizeof upper_text, "%.*s", (int)(slash - text), text);
    enum outcome outcome =
        slash - text < (ptrdiff_t)sizeof upper_text ? read_ratio(upper_text, ratio) : NO_NUMBER;
    if (outcome == READ && *slash)
        outcome = read_ratio(slash + 1, &lower);
    if (outcome == READ && lower.numerator == 0)
        outcome = NO_NUMBER;
    if (outcome == READ)
        outcome = reduce((wide_uint)ratio->numerator * lower.denominator,
                         (wide_uint)ratio->denominator * lower.numerator, ratio);
    if (outcome == READ)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      outcome == TOO_LARGE
                          ? "%s %.64s: expected at most 19 digits; round it"
                          : "%s %.64s: expected a number of 0 or more such as 3, 0.7, 1e-3 or 2/3",
                      field, *text ? text : "''");
}

/* ---- Printing ---- */

/* Prints 0 without a unit. The last unit has the factor 1, so the search always ends. */
static void print_quantity(char text[SHUF__NUMBER_TEXT], const struct unit *units, uint64_t value)
{
    while (value % units->factor != 0)
        units++;
    snprintf(text, SHUF__NUMBER_TEXT, "%" PRIu64 "%s", value / units->factor,
             value ? units->name : "");
}

const char *shuf__duration_text(char text[SHUF__NUMBER_TEXT], uint64_t nanoseconds)
{
    print_quantity(text, times, nanoseconds);
    return text;
}

const char *shuf__size_text(char text[SHUF__NUMBER_TEXT], uint64_t bytes)
{
    static const struct unit binary[] = {
        {"Ei", KI * KI * KI * KI * KI * KI},
        {"Pi", KI * KI * KI * KI * KI},
        {"Ti", KI * KI * KI * KI},
        {"Gi", KI * KI * KI},
        {"Mi", KI * KI},
        {"Ki", KI},
        {"", 1},
    };
    print_quantity(text, binary, bytes);
    return text;
}

const char *shuf__bound_text(char text[SHUF__NUMBER_TEXT], uint64_t bound)
{
    const uint64_t below = bound - 1;
    const bool large = bound >= UINT64_C(1) << 31;
    if (large && (bound & below) == 0)
        snprintf(text, SHUF__NUMBER_TEXT, "2^%d", __builtin_ctzll(bound));
    else if (large && (bound & (bound + 1)) == 0)
        snprintf(text, SHUF__NUMBER_TEXT, "2^%d - 1", 64 - __builtin_clzll(bound));
    else
        snprintf(text, SHUF__NUMBER_TEXT, "%" PRIu64, bound);
    return text;
}

/* ---- Amounts ---- */

static shuf_status refuse_amount(const char *field, const char *text, struct shuf__error *error)
{
    char hint[HINT];
    return shuf__fail(error, SHUF_INVALID,
                      "%s %.64s: expected a whole number below 2^63, such as 2e9 or 8Gi, or whole "
                      "percent, 0%% to 100%%%s",
                      field, *text ? text : "''", hint_of(text, hint));
}

shuf_status shuf__amount_parse(const char *field, const char *text, struct shuf__amount *amount,
                               struct shuf__error *error)
{
    char number[64];
    const size_t length = strlen(text);
    const bool percent = length > 0 && text[length - 1] == '%';
    if (length - percent >= sizeof number)
        return refuse_amount(field, text, error);
    snprintf(number, sizeof number, "%.*s", (int)(length - percent), text);
    amount->percent = percent;
    snprintf(amount->written, sizeof amount->written, "%s",
             length < sizeof amount->written ? text : "");
    if (shuf__number_parse_in(field, number, 0, percent ? 100 : INT64_MAX, &amount->number, error))
        return refuse_amount(field, text, error);
    return SHUF_OK;
}

const char *shuf__amount_text(char text[SHUF__NUMBER_TEXT], struct shuf__amount amount)
{
    if (!amount.percent)
        return shuf__size_text(text, amount.number);
    snprintf(text, SHUF__NUMBER_TEXT, "%" PRIu64 "%%", amount.number);
    return text;
}

uint64_t shuf__amount_bytes(struct shuf__amount amount, uint64_t total)
{
    if (!amount.percent)
        return amount.number;
    return total / 100 * amount.number + total % 100 * amount.number / 100;
}
