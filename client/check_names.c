/* SPDX-License-Identifier: MIT
 *
 * See check_names.h.
 */
#include "check_names.h"

#include "algorithm.h"
#include "request.h"

shuf_status shuf__check_names(const char *algorithm, const char *key, struct shuf__error *error)
{
    char expected[SHUF__ALGORITHM_LIST];
    if (algorithm && !*algorithm)
        return shuf__fail(error, SHUF_INVALID,
                          "algorithm \"\": expected %s, or NULL for the default",
                          shuf__algorithm_list(expected));
    if (key && !*key)
        return shuf__fail(error, SHUF_INVALID,
                          "key \"\": expected the name of a key, 1 to %d letters, digits, '.', '_' "
                          "and '-', or NULL for the seed",
                          SHUF__KEY_NAME);
    return SHUF_OK;
}
