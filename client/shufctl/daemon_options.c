/* SPDX-License-Identifier: MIT
 *
 * See daemon_options.h.
 */
#include "daemon_options.h"

#include "number.h"
#include "option_parse.h"
#include "option_values.h"

#include <sysexits.h>

#define WAIT_MAX \
    (UINT64_C(1000000) * 3600 * 1000000000) /* ns: added to the clock, it fits in 64 bits */

enum key { KEY_JSON = 0x200, KEY_SOCKET, KEY_WAIT, KEY_QUIET = 'q' };

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
static const struct argp_option option_table[] = {
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

const struct argp shuf__daemon_argp = {.options = option_table, .parser = parse_daemon_option};
const struct argp shuf__connection_argp = {.options = option_table + 1,
                                           .parser = parse_daemon_option};

void shuf__daemon_options(int argc, char **argv, const char *doc,
                          struct shuf__daemon_options *options)
{
    struct argp argp = shuf__daemon_argp;
    argp.doc = doc;
    *options = (struct shuf__daemon_options){0};
    shuf__options_parse(&argp, argc, argv, options);
}
