/* SPDX-License-Identifier: MIT
 *
 * See output_format.h.
 */
#include "output_format.h"

#include "option_values.h"
#include "output_path.h"

#include <string.h>
#include <strings.h>
#include <sysexits.h>

static const char *const names[] = {[SHUF__FORMAT_RAW] = "raw",
                                    [SHUF__FORMAT_NPY] = "npy",
                                    [SHUF__FORMAT_TEXT] = "text",
                                    [SHUF__FORMAT_CSV] = "csv",
                                    NULL};

static const struct {
    const char *suffix;
    enum shuf__format format;
} suffixes[] = {
    {".npy", SHUF__FORMAT_NPY}, {".txt", SHUF__FORMAT_TEXT}, {".csv", SHUF__FORMAT_CSV},
    {".bin", SHUF__FORMAT_RAW}, {".raw", SHUF__FORMAT_RAW},
};

enum { SUFFIXES = sizeof suffixes / sizeof *suffixes };

const char *shuf__format_name(enum shuf__format format)
{
    return names[format];
}

bool shuf__format_is_text(enum shuf__format format)
{
    return format == SHUF__FORMAT_TEXT || format == SHUF__FORMAT_CSV;
}

enum shuf__format shuf__format_option(struct argp_state *state, const char *text)
{
    return (enum shuf__format)shuf__option_choice(state, "--format", text, names,
                                                  "npy, raw, text or csv");
}

const char *shuf__suffix(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? dot : "";
}

static enum shuf__format format_of_suffix(struct argp_state *state, const char *out)
{
    const char *suffix = shuf__suffix(out);
    for (int i = 0; i < SUFFIXES; i++)
        if (strcasecmp(suffix, suffixes[i].suffix) == 0)
            return suffixes[i].format;
    shuf__option_fail(
        state, EX_USAGE,
        "--out %.256s: %s%.32s; expected .npy, .txt, .csv, .bin or .raw, or --format npy, "
        "text, csv or raw",
        out, *suffix ? "unknown suffix " : "no suffix", suffix);
    return SHUF__FORMAT_RAW;
}

enum shuf__format shuf__format_of_file(struct argp_state *state, const char *out,
                                       enum shuf__format otherwise)
{
    if (shuf__output_path_is_terminal(out))
        return SHUF__FORMAT_TEXT;
    return shuf__output_path_is_direct(out) ? otherwise : format_of_suffix(state, out);
}
