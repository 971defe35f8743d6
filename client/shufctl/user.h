/* SPDX-License-Identifier: MIT
 *
 * The names of users, for people.
 */
#ifndef SHUF__USER_H
#define SHUF__USER_H

#include <stdint.h>

/* NULL where it has none. Valid until the next call. */
const char *shuf__user_name(uint32_t uid);

enum { SHUF__USER_TEXT = 64 };

/* Its name, or its number. */
const char *shuf__user_text(char text[SHUF__USER_TEXT], uint32_t uid);

#endif
