/* SPDX-License-Identifier: MIT
 *
 * The loops of `primefold`, in three forms of integers and one of doubles (primefold_form.h). They
 * use words of 16, 32 or 64 bits, the shortest that hold 2 p. With AVX2 and AVX-512 they use
 * doubles for 2^31 <= p < 2^50. Like simd_ops.c, this file is compiled once for each instruction
 * set.
 */
#include "primefold_form.h"
#include "simd/simd_ops.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__AVX2__)
#include "primefold_vector.h"
#elif defined(SHUF__SIMD_VECTORS)
#include "primefold_neon.h"
#endif

enum { BLOCK = 256, GROUP = 4 };

/* The properties of a row that are constants in a compiled loop. */
struct form {
    unsigned maps;
    int shift; /* shift of a fold */
    bool small, inverse;
};

static inline struct form form_of(const struct shuf__primefold *row)
{
    const shuf_primefold_shape *s = &row->plain.shape;
    return (struct form){s->maps, (int)s->shift, shuf_primefold_is_small(s), row->inverse};
}

#define BITS 16
#define WORD uint16_t
#define WIDER uint32_t
#define OUT uint32_t
#include "primefold_form.inc"

#define BITS 32
#define WORD uint32_t
#define WIDER uint64_t
#define OUT uint32_t
#include "primefold_form.inc"

#ifdef __AVX2__
#define BITS 50
#define WORD uint64_t
#define WIDER unsigned __int128
#define OUT uint64_t
#include "primefold_form.inc"
#endif

#define BITS 64
#define WORD uint64_t
#define WIDER unsigned __int128
#define OUT uint64_t
#include "primefold_form.inc"

/* For n <= SHUF_PRIMEFOLD_EXACT: does all exchanges on a table, and then reads the requested values
 * or positions. */
static void exchanged(const shuf_primefold *f, bool inverse, uint32_t position, uint32_t stride,
                      uint32_t *restrict out, size_t count)
{
    uint8_t at[SHUF_PRIMEFOLD_EXACT] = {0}, value[SHUF_PRIMEFOLD_EXACT];
    const unsigned n = (unsigned)f->shape.n;
    for (unsigned k = 1; k < n; k++) {
        const unsigned other = f->exchange[k];
        at[k] = (uint8_t)k;
        at[k] = at[other];
        at[other] = (uint8_t)k;
    }
    for (unsigned v = 0; v < n; v++)
        value[at[v]] = (uint8_t)v;
    for (size_t i = 0; i < count; i++)
        out[i] = (inverse ? at : value)[position + i * stride];
}

#define SMALL(k) \
    ((struct form){SHUF_PRIMEFOLD_MAPS_SMALL_##k, SHUF_PRIMEFOLD_SHIFT_SMALL, true, inverse})
#define LARGE(k) \
    ((struct form){SHUF_PRIMEFOLD_MAPS_LARGE_##k, SHUF_PRIMEFOLD_SHIFT_LARGE_##k, false, inverse})

static inline __attribute__((always_inline)) void shortest(const struct shuf__primefold *row,
                                                           bool inverse, uint16_t position,
                                                           uint16_t stride, uint32_t *restrict out,
                                                           size_t count)
{
    const unsigned bits = row->plain.shape.bits;
    if (bits <= 9)
        fill_16(row, SMALL(9), position, stride, out, count);
    else if (bits <= 10)
        fill_16(row, SMALL(10), position, stride, out, count);
    else if (bits <= 13)
        fill_16(row, SMALL(13), position, stride, out, count);
    else
        fill_16(row, SMALL(16), position, stride, out, count);
}

static inline __attribute__((always_inline)) void narrow(const struct shuf__primefold *row,
                                                         bool inverse, uint32_t position,
                                                         uint32_t stride, uint32_t *restrict out,
                                                         size_t count)
{
    const unsigned n_bits = shuf__bits(row->plain.shape.n - 1);
    if (row->word_bits == 16)
        shortest(row, inverse, (uint16_t)position, (uint16_t)stride, out, count);
    else if (shuf_primefold_is_small(&row->plain.shape))
        fill_32(row, SMALL(16), position, stride, out, count);
    else if (n_bits <= SHUF_PRIMEFOLD_MEDIUM_BITS)
        fill_32(row, LARGE(21), position, stride, out, count);
    else
        fill_32(row, LARGE(62), position, stride, out, count);
}

void SHUF__SIMD_NAME(shuf__primefold_narrow)(const union shuf__bijection *f, uint32_t position,
                                             uint32_t stride, uint32_t *restrict out, size_t count)
{
    const struct shuf__primefold *row = &f->primefold;
    assert(row->word_bits <= 32);
    if (row->word_bits == 0)
        exchanged(&row->plain, row->inverse, position, stride, out, count);
    else if (row->inverse)
        narrow(row, true, position, stride, out, count);
    else
        narrow(row, false, position, stride, out, count);
}

static inline __attribute__((always_inline)) void wide(const struct shuf__primefold *row,
                                                       bool inverse, uint64_t position,
                                                       uint64_t stride, uint64_t *restrict out,
                                                       size_t count)
{
#ifdef __AVX2__
    if (row->plain.shape.p >> 50 == 0) {
        fill_50(row, LARGE(62), position, stride, out, count);
        return;
    }
#endif
    fill_64(row, LARGE(62), position, stride, out, count);
}

void SHUF__SIMD_NAME(shuf__primefold_wide)(const union shuf__bijection *f, uint64_t position,
                                           uint64_t stride, uint64_t *restrict out, size_t count)
{
    assert(f->primefold.word_bits == 64);
    if (f->primefold.inverse)
        wide(&f->primefold, true, position, stride, out, count);
    else
        wide(&f->primefold, false, position, stride, out, count);
}
