/* SPDX-License-Identifier: MIT
 *
 * Macros for inline functions of C99, C++11 and CUDA (host and device), powers of two, and a type
 * of 128-bit integers.
 */
#ifndef SHUF_INLINE_H
#define SHUF_INLINE_H

#include <stdint.h>

#ifdef __CUDACC__
#define SHUF_FUNCTION static __host__ __device__ __forceinline__
#else
#define SHUF_FUNCTION static inline
#endif

/* 2^-n, n at most 126, exactly: C++ before C++17 has no hexadecimal floating constants. */
#define SHUF__2_MINUS(n) \
    (1.0 / (double)(UINT64_C(1) << (n) / 2) / (double)(UINT64_C(1) << ((n) + 1) / 2))
#define SHUF__2_MINUS_F32(n) ((float)SHUF__2_MINUS(n))

#ifdef __SIZEOF_INT128__ /* no type of ISO C; __extension__ silences -Wpedantic */
__extension__ typedef unsigned __int128 shuf__u128;
#endif

#endif
