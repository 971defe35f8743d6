/* SPDX-License-Identifier: MIT
 *
 * In a message, an empty name stands for the default. A caller asks for the default with NULL. An
 * empty name is probably a mistake, such as a variable that is not set. Without this check, a
 * request with an empty key would get public values.
 */
#ifndef SHUF__CHECK_NAMES_H
#define SHUF__CHECK_NAMES_H

#include "error.h"

/* Each may be NULL. Fails with SHUF_INVALID if one is empty. */
shuf_status shuf__check_names(const char *algorithm, const char *key, struct shuf__error *error);

#endif
