/* SPDX-License-Identifier: MIT
 *
 * See fail.h.
 */
#include "fail.h"

#include <sysexits.h>

int shuf__quality_fail_error(const struct shuf__error *error, shuf_status status, bool data)
{
    return shuf__fail_with(data ? EX_DATAERR : shuf__exit_code(status), "%s", error->text);
}
