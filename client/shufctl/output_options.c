/* SPDX-License-Identifier: MIT
 *
 * See output_options.h.
 */
#include "output_options.h"

#include "dtype.h"
#include "option_values.h"
#include "output_path.h"

#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

enum key { KEY_OUT = 0x300, KEY_FORMAT, KEY_TRANSPORT, KEY_PREFETCH };

static const struct argp_option option_table[] = {
    {"out", KEY_OUT, "FILE", 0,
     "Write the values to FILE, or for - to standard output: by default text on a terminal, else "
     "raw bytes",
     1},
    {"format", KEY_FORMAT, SHUF__FORMAT_VALUES, 0, SHUF__FORMAT_HELP, 1},
    {"transport", KEY_TRANSPORT, "memfd|cuda-fd|cuda-ipc|inline", 0,
     "Map the result instead of copying it; inline copies", 2},
    {"prefetch", KEY_PREFETCH, NULL, 0, "Compute and cache the result in the daemon; write nothing",
     2},
    {0},
};

static const char *const transport_names[] = {"inline", "memfd", "cuda-fd", "cuda-ipc", NULL};
static const shuf_transport transports[] = {SHUF_INLINE, SHUF_MEMFD, SHUF_CUDA_FD, SHUF_CUDA_IPC};

const char *shuf__dtype_text(shuf_dtype dtype)
{
    const char *name = shuf__dtype_name((int)dtype);
    return name ? name : "-";
}

bool shuf__writes_to_stdout(const struct shuf__output_options *options)
{
    return options->out && shuf__output_path_descriptor(options->out) == STDOUT_FILENO;
}

void shuf__check_out_option(struct argp_state *state, const char *out)
{
    if (!*out)
        shuf__option_fail(state, EX_USAGE, "--out '': expected a file, or - for standard output");
}

void shuf__output_options_complete(struct argp_state *state, struct shuf__output_options *options)
{
    if (options->format_given && !options->out)
        shuf__option_fail(state, EX_USAGE, "--format: nothing is written; expected --out FILE too");
    if (options->prefetch && options->out)
        shuf__option_refuse_both(state, "--prefetch", "--out");
    if (options->out && !options->format_given)
        options->format = shuf__format_of_file(state, options->out, SHUF__FORMAT_RAW);
    if (options->out && options->format == SHUF__FORMAT_NPY && options->shape.dtype == SHUF_BF16)
        shuf__option_fail(
            state, EX_USAGE,
            "--format npy: numpy has no bf16; expected raw, text or csv, or --dtype f32");
}

static error_t parse_output_option(int key, char *text, struct argp_state *state)
{
    struct shuf__output_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case KEY_OUT:
        shuf__check_out_option(state, text);
        options->out = text;
        return 0;
    case KEY_FORMAT:
        options->format_given = true;
        options->format = shuf__format_option(state, text);
        return 0;
    case KEY_TRANSPORT:
        options->transport = transports[shuf__option_choice(
            state, "--transport", text, transport_names, "inline, memfd, cuda-fd or cuda-ipc")];
        return 0;
    case KEY_PREFETCH:
        options->prefetch = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 3}, {0}};

const struct argp shuf__output_argp = {
    .options = option_table, .parser = parse_output_option, .children = children};

/* ---- formats ---- */

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
