/* SPDX-License-Identifier: MIT
 *
 * The types of values, in one table. The numbers are part of the wire protocol.
 */
#ifndef SHUF_DTYPE_H
#define SHUF_DTYPE_H

/* X(NAME, number, "name", bytes). F16 is binary16 of IEEE 754, and BF16 is the upper half of an
 * F32; shuf/half.h reads both. torch uses I64 as indices. */
#define SHUF_DTYPE_MAP(X) \
    X(U32, 1, "u32", 4)   \
    X(U64, 2, "u64", 8)   \
    X(I64, 3, "i64", 8)   \
    X(F64, 4, "f64", 8)   \
    X(F32, 5, "f32", 4)   \
    X(F16, 6, "f16", 2)   \
    X(BF16, 7, "bf16", 2)

typedef enum shuf_dtype {
    SHUF_AUTO = 0, /* permutation: the smallest of U32 and U64 that holds n - 1; numbers: F64, but
                    * U32 for bits and for integers, and U64 for a bound above 2^32 */
#define SHUF__ROW(name, number, text, bytes) SHUF_##name = number,
    SHUF_DTYPE_MAP(SHUF__ROW)
#undef SHUF__ROW
} shuf_dtype;

#endif
