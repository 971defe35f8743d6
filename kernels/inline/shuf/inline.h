/* SPDX-License-Identifier: MIT
 *
 * Macros that declare an inline function and a constant table in C99, C++11 and CUDA (host and
 * device), macros for powers of two, and a type of 128-bit integers.
 */
#ifndef SHUF_INLINE_H
#define SHUF_INLINE_H

#include <stdint.h>

#ifdef __CUDACC__
#define SHUF_FUNCTION static __host__ __device__ __forceinline__
#else
#define SHUF_FUNCTION static inline
#endif

#ifdef __cplusplus
#define SHUF_CONSTANT static constexpr
#else
#define SHUF_CONSTANT static const
#endif

/* Exactly 2^-n, for n up to 126. C++ before C++17 has no hexadecimal floating constants. */
#define SHUF__2_MINUS(n) \
    (1.0 / (double)(UINT64_C(1) << (n) / 2) / (double)(UINT64_C(1) << ((n) + 1) / 2))
#define SHUF__2_MINUS_F32(n) ((float)SHUF__2_MINUS(n))

#ifdef __SIZEOF_INT128__ /* ISO C has no such type; __extension__ silences -Wpedantic */
__extension__ typedef unsigned __int128 shuf__u128;
__extension__ typedef __int128 shuf__i128;
#endif

#endif
