/* SPDX-License-Identifier: MIT
 *
 * The public calls that compute the shape of a result. They use no daemon and no handle.
 */
#include "arguments.h"
#include "request_message.h"

#include <stdio.h>

/* Checks the pointers first, then the request. */
static shuf_status compute_shape(const struct shuf__argument *pointers,
                                 const struct shuf__request_options *options, shuf_shape *shape,
                                 char *message, size_t size)
{
    struct shuf__request_message m;
    struct shuf__error *error = shuf__error_of(NULL);
    *error = (struct shuf__error){0};
    if (shuf__check_pointers(pointers, error) == SHUF_OK &&
        shuf__request_message_make(&m, options, error) == SHUF_OK)
        *shape = m.shape;
    if (message && size > 0)
        snprintf(message, size, "%s", error->text);
    return error->status;
}

shuf_status shuf_permutation_shape(const shuf_permutation *permutation, shuf_shape *shape,
                                   char *message, size_t size)
{
    const struct shuf__argument pointers[] = {
        SHUF__POINTER(permutation), SHUF__POINTER(shape), {NULL, false}};
    const struct shuf__request_options options = {.permutation = permutation};
    return compute_shape(pointers, &options, shape, message, size);
}

shuf_status shuf_exchange_shape(const shuf_ranks *ranks, shuf_shape *shape, char *message,
                                size_t size)
{
    const struct shuf__argument pointers[] = {
        SHUF__POINTER(ranks), SHUF__POINTER(shape), {NULL, false}};
    const struct shuf__request_options options = {.ranks = ranks};
    return compute_shape(pointers, &options, shape, message, size);
}

shuf_status shuf_numbers_shape(const shuf_numbers *numbers, shuf_shape *shape, char *message,
                               size_t size)
{
    const struct shuf__argument pointers[] = {
        SHUF__POINTER(numbers), SHUF__POINTER(shape), {NULL, false}};
    const struct shuf__request_options options = {.numbers = numbers};
    return compute_shape(pointers, &options, shape, message, size);
}
