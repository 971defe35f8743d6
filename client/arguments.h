/* SPDX-License-Identifier: MIT
 *
 * The check of the pointers that a public call was given. Every public call begins with it.
 */
#ifndef SHUF__ARGUMENTS_H
#define SHUF__ARGUMENTS_H

#include "error.h"
#include "shuf.h"

#include <stdbool.h>
#include <stddef.h>

struct shuf__argument {
    const char *name;
    bool is_null;
};

/* A pointer that must not be NULL, for SHUF__BEGIN_CALL(). */
#define SHUF__POINTER(name) \
    {                       \
#name, !(name)      \
    }

/* Clears the message of the handle. Fails with SHUF_INVALID, and the name of the argument in the
 * message, where the handle or one of the other pointers is NULL, or a callback uses the handle. */
#define SHUF__BEGIN_CALL(handle, ...)                         \
    shuf__begin_call(handle, (const struct shuf__argument[]){ \
                                 SHUF__POINTER(handle), ##__VA_ARGS__, {NULL, false}})

shuf_status shuf__begin_call(shuf *handle, const struct shuf__argument *arguments);

/* As above, with the message in *error. */
shuf_status shuf__check_pointers(const struct shuf__argument *arguments, struct shuf__error *error);

/* Where the message of a call goes: to the handle or, without one, to this thread. */
struct shuf__error *shuf__error_of(shuf *handle);

#endif
