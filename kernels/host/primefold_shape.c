/* SPDX-License-Identifier: MIT
 *
 * See primefold_shape.h.
 */
#include "host/primefold_shape.h"

shuf_primefold_shape shuf__primefold_shape(uint64_t n)
{
    static _Thread_local shuf_primefold_shape last;
    if (last.n != n)
        last = shuf_primefold_shape_of(n);
    return last;
}
