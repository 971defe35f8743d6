/* SPDX-License-Identifier: MIT
 *
 * Names of users.
 */
#ifndef SHUF__USER_H
#define SHUF__USER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { SHUF__USER_TEXT = 64 };

/* The name or, without one, the number. */
const char *shuf__user_text(char text[SHUF__USER_TEXT], uint32_t uid);

/* Finds a user by name or number; false if there is none of that name. Ends the program if the
 * names cannot be read. */
bool shuf__user_find(const char *text, uint32_t *uid);

/* Sets "uid", and "user": the name or null. */
void shuf__json_user(json_t *object, uint32_t uid);

#endif
