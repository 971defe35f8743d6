/* SPDX-License-Identifier: MIT
 *
 * See dtype.h.
 */
#include "dtype.h"

#include <stddef.h>

struct traits {
    const char *name;
    unsigned bytes;
    bool is_allowed[SHUF_DISTRIBUTION_COUNT];
};

static const struct traits table[SHUF__DTYPES] = {[SHUF_AUTO] = {.name = "auto"},
#define X(name, number, text, bytes, permutation, gauss, uniform) \
    [number] = {text, bytes, {permutation, gauss, uniform, gauss}},
                                                  SHUF_DTYPE_MAP(X)
#undef X
};

static const struct traits *traits_of(int dtype)
{
    return dtype >= 0 && dtype < SHUF__DTYPES ? &table[dtype] : NULL;
}

const char *shuf__dtype_name(int dtype)
{
    const struct traits *traits = traits_of(dtype);
    return traits ? traits->name : NULL;
}

unsigned shuf__dtype_bytes(int dtype)
{
    const struct traits *traits = traits_of(dtype);
    return traits ? traits->bytes : 0;
}

bool shuf__dtype_is_allowed(int dtype, enum shuf__distribution distribution)
{
    const struct traits *traits = traits_of(dtype);
    return traits && traits->is_allowed[distribution];
}
