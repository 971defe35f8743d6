/* SPDX-License-Identifier: MIT
 *
 * See daemon_options.h.
 */
#include "daemon_options.h"

#include <argp.h>
#include <sysexits.h>

enum key { KEY_JSON = 0x100, KEY_SOCKET };

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct shuf__daemon_options *options = state->input;
    switch (key) {
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_SOCKET:
        options->socket = text;
        return 0;
    case ARGP_KEY_ARG:
        argp_failure(state, EX_USAGE, 0, "argument '%.64s': expected only options", text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void shuf__daemon_options(int argc, char **argv, const char *doc,
                          struct shuf__daemon_options *options)
{
    static const struct argp_option table[] = {
        {"json", KEY_JSON, NULL, 0, "As one JSON object", 0},
        {"socket", KEY_SOCKET, "PATH", 0, "The daemon's socket (default: $SHUFD_SOCKET, ...)", 0},
        {0},
    };
    struct argp argp = {.options = table, .parser = parse_option, .doc = doc};
    *options = (struct shuf__daemon_options){0};
    argp_parse(&argp, argc, argv, 0, NULL, options);
}
