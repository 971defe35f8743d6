/* SPDX-License-Identifier: MIT
 *
 * Names the keys that a reload has changed, for the log.
 */
#ifndef SHUFD_KEY_CHANGES_H
#define SHUFD_KEY_CHANGES_H

#include "key_set.h"

enum { SHUF__KEY_CHANGES = 400 };

/* Writes "2 changed (a, b), 1 new (c), 1 removed (d)", and returns it. Writes "" if no key has
 * changed. A key has changed if its bits or its group have changed. Leaves out names that do not
 * fit. */
const char *shuf__key_changes(const struct shuf__key_set *before, const struct shuf__key_set *after,
                              char text[SHUF__KEY_CHANGES]);

#endif
