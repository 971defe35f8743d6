/* SPDX-License-Identifier: MIT
 *
 * See units.h.
 */
#include "units.h"

#include <inttypes.h>
#include <stdio.h>

/* Divides by `base` until the value is below it. */
static double reduce_by(double base, double value, const char *const prefixes[], int count,
                        const char **prefix)
{
    int i = 0;
    while (i + 1 < count && value >= base - 0.5) {
        value /= base;
        i++;
    }
    *prefix = prefixes[i];
    return value;
}

static double reduce(double value, const char *const prefixes[], int count, const char **prefix)
{
    return reduce_by(1000, value, prefixes, count, prefix);
}

static int decimals(double value, int digits)
{
    int whole = value < 9.995 ? 1 : value < 99.95 ? 2 : 3;
    return digits > whole ? digits - whole : 0;
}

static void long_time(char text[SHUF__UNITS_TEXT], uint64_t seconds)
{
    const uint64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
    if (days > 0)
        snprintf(text, SHUF__UNITS_TEXT, "%" PRIu64 " d %" PRIu64 " h", days, hours % 24);
    else if (hours > 0)
        snprintf(text, SHUF__UNITS_TEXT, "%" PRIu64 " h %" PRIu64 " min", hours, minutes % 60);
    else
        snprintf(text, SHUF__UNITS_TEXT, "%" PRIu64 " min %" PRIu64 " s", minutes, seconds % 60);
}

const char *shuf__units_time(char text[SHUF__UNITS_TEXT], uint64_t ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    const char *unit;
    if (ns >= 60 * UINT64_C(1000000000)) {
        long_time(text, ns / 1000000000);
        return text;
    }
    double value = reduce((double)ns, units, 4, &unit);
    snprintf(text, SHUF__UNITS_TEXT, "%.*f %s", ns < 1000 ? 0 : decimals(value, 4), value, unit);
    return text;
}

const char *shuf__units_bytes(char text[SHUF__UNITS_TEXT], uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    const char *unit;
    double value = reduce((double)bytes, units, 7, &unit);
    snprintf(text, SHUF__UNITS_TEXT, "%.*f %s", bytes < 1000 ? 0 : decimals(value, 3), value, unit);
    return text;
}

const char *shuf__units_memory(char text[SHUF__UNITS_TEXT], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const char *unit;
    const double value = reduce_by(1024, (double)bytes, units, 7, &unit);
    const int digits = value == (double)(uint64_t)value ? 0 : decimals(value, 3);
    snprintf(text, SHUF__UNITS_TEXT, "%.*f %s", digits, value, unit);
    return text;
}

const char *shuf__units_rate(char text[SHUF__UNITS_TEXT], uint64_t values, uint64_t ns)
{
    static const char *const units[] = {"", "k ", "M ", "G ", "T "};
    const char *unit;
    if (ns == 0)
        return "-";
    double value = reduce((double)values * 1e9 / (double)ns, units, 5, &unit);
    snprintf(text, SHUF__UNITS_TEXT, "%.*f %svalues/s", decimals(value, 3), value, unit);
    return text;
}
