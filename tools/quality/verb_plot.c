/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality plot`: draws reports of `rounds` from files in one picture.
 */
#include "draw.h"
#include "fail.h"
#include "option_parse.h"
#include "option_values.h"
#include "verb.h"

#include <sysexits.h>

enum { REPORTS = 16 };

struct pictures {
    const char *out;
    const char *path[REPORTS];
    unsigned count;
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct pictures *p = state->input;
    switch (key) {
    case 'o':
        p->out = text;
        return 0;
    case ARGP_KEY_ARG:
        if (p->count == REPORTS)
            shuf__option_fail(state, EX_USAGE, "argument '%.64s': expected at most %d reports",
                              text, REPORTS);
        p->path[p->count++] = text;
        return 0;
    case ARGP_KEY_END:
        if (!p->out)
            shuf__option_fail(state, EX_USAGE, "--out: missing; expected it, as in --out mmd.svg");
        if (p->count == 0)
            shuf__option_fail(state, EX_USAGE, "expected reports that `rounds --json` wrote");
        return 0;
    default:
        return shuf__option_common(key, text, state);
    }
}

static int load(const char *path, json_t **report)
{
    json_error_t error;
    *report = json_load_file(path, 0, &error);
    if (!*report)
        return shuf__fail_with(EX_NOINPUT, "%.128s: %s", path, error.text);
    if (json_array_size(json_object_get(*report, "points")) == 0)
        return shuf__fail_with(EX_DATAERR, "%.128s: expected a report of `rounds --json`", path);
    return EX_OK;
}

int shuf__quality_plot(int argc, char **argv)
{
    static const struct argp_option option_table[] = {
        {"out", 'o', "FILE.svg", 0, "The picture (required)", 0},
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .args_doc = "REPORT...",
        .doc = "Draws reports that `rounds --json` wrote, one panel each.",
    };
    struct pictures pictures = {0};
    json_t *reports[REPORTS] = {0};
    int code = EX_OK;
    shuf__options_parse(&argp, argc, argv, &pictures);
    for (unsigned i = 0; i < pictures.count && code == EX_OK; i++)
        code = load(pictures.path[i], &reports[i]);
    if (code == EX_OK)
        code = shuf__draw(pictures.out, reports, pictures.count);
    for (unsigned i = 0; i < pictures.count; i++)
        json_decref(reports[i]);
    return code;
}
