/* SPDX-License-Identifier: MIT
 *
 * See algorithm_option.h.
 */
#include "algorithm_option.h"

#include "option_parse.h"

#include <sysexits.h>

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
