/* SPDX-License-Identifier: MIT
 *
 * See verb_options.h.
 */
#include "verb_options.h"

#include "algorithm.h"
#include "number.h"
#include "option.h"
#include "output.h"
#include "request.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

#define WAIT_MAX \
    (UINT64_C(1000000) * 3600 * 1000000000) /* ns: added to the clock, it fits in 64 bits */

enum key {
    KEY_JSON = 0x200,
    KEY_SOCKET,
    KEY_WAIT,
    KEY_OUT,
    KEY_FORMAT,
    KEY_TRANSPORT,
    KEY_PREFETCH,
    KEY_QUIET = 'q',
};

/* ---- The daemon ---- */

static void read_wait(struct argp_state *state, const char *text, uint64_t *nanoseconds)
{
    struct shuf__error error;
    if (shuf__duration_parse("--wait", text, 0, WAIT_MAX, nanoseconds, &error))
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
}

static error_t parse_daemon_option(int key, char *text, struct argp_state *state)
{
    struct shuf__daemon_options *options = state->input;
    switch (key) {
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_SOCKET:
        if (!*text) /* libshuf would use the default */
            shuf__option_fail(state, EX_USAGE, "--socket '': expected the path of a socket");
        options->socket = text;
        return 0;
    case KEY_QUIET:
        options->quiet = true;
        return 0;
    case KEY_WAIT:
        read_wait(state, text, &options->wait_ns);
        return 0;
    default:
        return shuf__option_common(key, text, state);
    }
}

/* --json is the first row, so that the options without it are the rest of the table. */
static const struct argp_option daemon_table[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON object instead of text", 0},
    {"socket", KEY_SOCKET, "PATH", 0,
     "The socket of the daemon (default: see shufctl help environment)", 0},
    {"wait", KEY_WAIT, "TIME", 0,
     "Wait up to this time until a daemon answers, as in 5s or 2min (default 0)", 0},
    {"quiet", KEY_QUIET, NULL, 0,
     "Print only errors and the requested values: no progress and no summary of a file", 0},
    SHUF__OPTION_HELP,
    {0},
};

const struct argp shuf__daemon_argp = {.options = daemon_table, .parser = parse_daemon_option};
const struct argp shuf__connection_argp = {.options = daemon_table + 1,
                                           .parser = parse_daemon_option};

void shuf__daemon_options(int argc, char **argv, const char *doc,
                          struct shuf__daemon_options *options)
{
    struct argp argp = shuf__daemon_argp;
    argp.doc = doc;
    *options = (struct shuf__daemon_options){0};
    shuf__options_parse(&argp, argc, argv, options);
}

/* ---- The order ---- */

void shuf__check_seed_options(struct argp_state *state, bool seed, bool key)
{
    if (seed && key)
        shuf__option_refuse_both(state, "--key", "--seed");
}

const char *shuf__key_option(struct argp_state *state, const char *text)
{
    if (!shuf__key_name_is_valid(text))
        shuf__option_fail(
            state, EX_USAGE,
            "--key %.64s: expected the name of a key, 1 to %d letters, digits, '.', '_' and "
            "'-'",
            *text ? text : "''", SHUF__KEY_NAME);
    return text;
}

const char *shuf__algorithm_option(struct argp_state *state, const char *text)
{
    char expected[SHUF__ALGORITHM_LIST];
    struct shuf__error error;
    enum shuf_algorithm algorithm;
    if (!*text) /* libshuf would take the default */
        shuf__option_fail(state, EX_USAGE, "--algorithm \"\": expected %s",
                          shuf__algorithm_list(expected));
    if (shuf__algorithm_parse(text, &algorithm, &error))
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
    return text;
}

/* ---- Formats ---- */

static const char *const format_names[] = {[SHUF__FORMAT_RAW] = "raw",
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
    return format_names[format];
}

bool shuf__format_is_text(enum shuf__format format)
{
    return format == SHUF__FORMAT_TEXT || format == SHUF__FORMAT_CSV;
}

enum shuf__format shuf__format_option(struct argp_state *state, const char *text)
{
    return (enum shuf__format)shuf__option_choice(state, "--format", text, format_names,
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

/* ---- The output ---- */

static const struct argp_option output_table[] = {
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

static const struct argp_child output_children[] = {{&shuf__daemon_argp, 0, NULL, 3}, {0}};

const struct argp shuf__output_argp = {
    .options = output_table, .parser = parse_output_option, .children = output_children};
