/* SPDX-License-Identifier: MIT
 *
 * The types of values, in one table. The numbers are part of the wire protocol.
 */
#ifndef SHUF_DTYPE_H
#define SHUF_DTYPE_H

/* X(NAME, number, "name", bytes, permutation, gauss, uniform): the last three say where the type is
 * allowed. F16 is IEEE 754's binary16, BF16 the upper half of an F32; shuf/half.h reads both. I64
 * is what torch indexes with. */
#define SHUF_DTYPE_MAP(X)        \
    X(U32, 1, "u32", 4, 1, 0, 1) \
    X(U64, 2, "u64", 8, 1, 0, 1) \
    X(I64, 3, "i64", 8, 1, 0, 0) \
    X(F64, 4, "f64", 8, 0, 1, 1) \
    X(F32, 5, "f32", 4, 0, 1, 1) \
    X(F16, 6, "f16", 2, 0, 1, 0) \
    X(BF16, 7, "bf16", 2, 0, 1, 0)

typedef enum shuf_dtype {
    SHUF_AUTO = 0, /* a permutation: the smaller of U32 and U64 that holds n - 1; numbers: F64 */
#define X(name, number, text, bytes, permutation, gauss, uniform) SHUF_##name = number,
    SHUF_DTYPE_MAP(X)
#undef X
} shuf_dtype;

#endif
