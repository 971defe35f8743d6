/* SPDX-License-Identifier: MIT
 *
 * See inverse.h.
 */
#include "inverse.h"

/* y = m x + a (mod p), so x = m^-1 y - m^-1 a (mod p). */
void shuf__invert_maps(shuf_primefold *f)
{
    shuf_primefold there = *f;
    const unsigned maps = there.shape.maps;
    const uint64_t p = there.shape.p;
    shuf_primefold_make_inverse(&there);
    for (unsigned r = 0; r < maps; r++) {
        const unsigned from = maps - 1 - r;
        f->map[r] =
            (shuf_primefold_map){there.inverse[from], from > 0 ? there.map[from - 1].fold : 0};
    }
    f->addend = shuf__multiply_mod(there.inverse[0], (p - there.addend) % p, p);
}
