/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of a public call. It checks the pointers, and that no other thread uses
 * the handle. The checks of arrays and look-ups are the same for a daemon and for this process.
 */
#ifndef SHUF__ARGUMENTS_H
#define SHUF__ARGUMENTS_H

#include "error.h"
#include "request.h"
#include "shuf.h"
#include "shuf_request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shuf__argument {
    const char *name;
    bool is_null;
};

/* A pointer that must not be NULL, for SHUF__BEGIN_CALL(). */
#define SHUF__POINTER(name) \
    {                       \
#name, !(name)      \
    }

/* Declares `call`: the handle, which only this thread uses until the function returns. `call` is
 * NULL if the handle or one of the other pointers is NULL, or if a callback or another thread uses
 * the handle. The function must then return SHUF_INVALID. Clears the message of the handle. */
#define SHUF__BEGIN_CALL(call, handle, ...)                                       \
    __attribute__((cleanup(shuf__end_call))) shuf *const call = shuf__begin_call( \
        handle,                                                                   \
        (const struct shuf__argument[]){SHUF__POINTER(handle), ##__VA_ARGS__, {NULL, false}})

shuf *shuf__begin_call(shuf *handle, const struct shuf__argument *arguments);

/* Unmaps idle mappings if a reply has asked for it. */
void shuf__end_call(shuf *const *call);

/* The beginning of a call without a handle: clears the message of the thread, and checks the
 * pointers. Returns the place of the message, with the status of the check. */
#define SHUF__BEGIN_LOCAL(...) \
    shuf__begin_local((const struct shuf__argument[]){__VA_ARGS__, {NULL, false}})

struct shuf__error *shuf__begin_local(const struct shuf__argument *arguments);

/* The place for the message of a call: the handle. Without a handle, or if another thread used the
 * handle at this thread's last call, it is a variable of this thread. */
struct shuf__error *shuf__error_of(shuf *handle);

/* Whether two arrays of a caller overlap. Both have `bytes` bytes. */
static inline bool shuf__overlap(const void *a, const void *b, uint64_t bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y ? y - x < bytes : x - y < bytes;
}

/* Checks that the `count` positions first, first + stride, ... are below `length`. */
shuf_status shuf__check_range(uint64_t length, uint64_t first, uint64_t count, uint64_t stride,
                              struct shuf__error *error);

/* ---- Look-ups ---- */

/* Makes a LOOK_UP. Fails with SHUF_INVALID. */
shuf_status shuf__look_up_request(const shuf_permutation *permutation, shuf_direction direction,
                                  struct shuf__request *request, struct shuf__error *error);

/* The same, and checks the arrays and each at[i]. */
shuf_status shuf__look_up_arguments(const shuf_permutation *permutation, shuf_direction direction,
                                    const uint64_t *at, size_t count, const uint64_t *out,
                                    struct shuf__request *request, struct shuf__error *error);

/* Checks that `at` and `out`, of `count` numbers of `width` bytes each, are one array or apart. */
shuf_status shuf__check_places(const void *at, const void *out, size_t count, unsigned width,
                               struct shuf__error *error);

#endif
