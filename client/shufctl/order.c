/* SPDX-License-Identifier: MIT
 *
 * See order.h.
 */
#include "order.h"

#include "target.h"

#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

enum key { KEY_OUT = 0x300, KEY_FORMAT, KEY_TRANSPORT, KEY_PREFETCH };

static const struct argp_option option_table[] = {
    {"out", KEY_OUT, "FILE", 0, "Write the values to FILE, or to standard output for -", 1},
    {"format", KEY_FORMAT, "FORMAT", 0,
     "npy, raw (the host's byte order) or text; by default npy for *.npy, text for *.txt and for a "
     "terminal, else raw",
     1},
    {"transport", KEY_TRANSPORT, "HOW", 0,
     "Lease the result and read it by inline, memfd, cuda-fd or cuda-ipc", 2},
    {"prefetch", KEY_PREFETCH, NULL, 0, "Only have it ready in the daemon, for who asks next", 2},
    {0},
};

static const char *const format_names[] = {"raw", "npy", "text", NULL};
static const char *const transport_names[] = {"inline", "memfd", "cuda-fd", "cuda-ipc", NULL};
static const shuf_transport transports[] = {SHUF_INLINE, SHUF_MEMFD, SHUF_CUDA_FD, SHUF_CUDA_IPC};

const char *const shuf__dtype_names[] = {"auto", "u32", "u64",  "i64", "f64",
                                         "f32",  "f16", "bf16", NULL};

const char *shuf__dtype_text(shuf_dtype dtype)
{
    return (unsigned)dtype <= SHUF_BF16 ? shuf__dtype_names[dtype] : "-";
}

const char *shuf__format_name(enum shuf__format format)
{
    return format_names[format];
}

bool shuf__order_to_stdout(const struct shuf__order *order)
{
    return order->out && shuf__target_descriptor(order->out) == STDOUT_FILENO;
}

void shuf__order_refuse_both(struct argp_state *state, const char *one, const char *other)
{
    argp_failure(state, EX_USAGE, 0, "%s: excludes %s; expected one of them", one, other);
}

void shuf__order_check_out(struct argp_state *state, const char *out)
{
    if (!*out)
        argp_failure(state, EX_USAGE, 0, "--out '': expected a file, or - for standard output");
}

int shuf__order_name(struct argp_state *state, const char *field, const char *text,
                     const char *const names[], const char *expected)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    argp_failure(state, EX_USAGE, 0, "%s %.64s: expected %s", field, *text ? text : "''", expected);
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcasecmp(text + length - tail, end) == 0;
}

static enum shuf__format default_format(const char *out)
{
    if (ends_with(out, ".npy"))
        return SHUF__FORMAT_NPY;
    return ends_with(out, ".txt") || shuf__target_is_terminal(out) ? SHUF__FORMAT_TEXT
                                                                   : SHUF__FORMAT_RAW;
}

void shuf__order_complete(struct argp_state *state, struct shuf__order *order)
{
    if (order->format_given && !order->out)
        argp_failure(state, EX_USAGE, 0, "--format: nothing is written; expected --out FILE too");
    if (order->prefetch && order->out)
        shuf__order_refuse_both(state, "--prefetch", "--out");
    if (order->out && !order->format_given)
        order->format = default_format(order->out);
    if (order->out && order->format == SHUF__FORMAT_NPY && order->shape.dtype == SHUF_BF16)
        argp_failure(state, EX_USAGE, 0,
                     "--format npy: numpy has no bf16; expected raw or text, or --dtype f32");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct shuf__order *order = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &order->daemon;
        return 0;
    case KEY_OUT:
        shuf__order_check_out(state, text);
        order->out = text;
        return 0;
    case KEY_FORMAT:
        order->format_given = true;
        order->format = (enum shuf__format)shuf__order_name(state, "--format", text, format_names,
                                                            "npy, raw or text");
        return 0;
    case KEY_TRANSPORT:
        order->transport = transports[shuf__order_name(state, "--transport", text, transport_names,
                                                       "inline, memfd, cuda-fd or cuda-ipc")];
        return 0;
    case KEY_PREFETCH:
        order->prefetch = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 3}, {0}};

const struct argp shuf__order_argp = {
    .options = option_table, .parser = parse_option, .children = children};
