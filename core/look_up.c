/* SPDX-License-Identifier: MIT
 *
 * LOOK_UP: single values or positions of a permutation.
 */
#include "kind.h"

shuf_status shuf__look_up_make(struct shuf__request *request, const uint64_t *at, size_t count,
                               struct shuf__error *error)
{
    struct shuf__permutation *p = &request->look_up.permutation;
    request->kind = SHUF__LOOK_UP;
    request->dtype = SHUF_AUTO;
    if (shuf__check_n(p->n, error) || shuf__check_windows(p, error))
        return error->status;
    for (size_t i = 0; i < count; i++)
        if (at[i] >= p->n)
            return shuf__fail(error, SHUF_INVALID,
                              "at[%zu] %" PRIu64 ": expected less than n = %" PRIu64, i, at[i],
                              p->n);
    shuf__permutation_take_row(p);
    return SHUF_OK;
}

/* ---- The kind ---------------------------------------------------------------------- */

static int compare_look_ups(const struct shuf__look_up *a, const struct shuf__look_up *b)
{
    SHUF__RETURN_UNLESS_EQUAL(a->inverse, b->inverse);
    return shuf__permutation_compare(&a->permutation, &b->permutation);
}

static int compare(const struct shuf__request *a, const struct shuf__request *b)
{
    return compare_look_ups(&a->look_up, &b->look_up);
}

static void describe(const struct shuf__request *request, bool all, char *text)
{
    snprintf(text, SHUF__REQUEST_TEXT, "index n %" PRIu64, request->look_up.permutation.n);
    if (all)
        shuf__add_permutation(request, text);
}

const struct shuf__kind shuf__look_up_kind = {
    .name = "index",
    .has_permutation = true,
    .shape = NULL,
    .compare = compare,
    .describe = describe,
};
