/* SPDX-License-Identifier: MIT
 *
 * Macros for inline functions of C11, C++ and CUDA (host and device), and a type of 128-bit
 * integers.
 */
#ifndef SHUF_INLINE_H
#define SHUF_INLINE_H

#ifdef __CUDACC__
#define SHUF_FUNCTION static __host__ __device__ __forceinline__
#else
#define SHUF_FUNCTION static inline
#endif

#ifdef __SIZEOF_INT128__ /* no type of ISO C; __extension__ silences -Wpedantic */
__extension__ typedef unsigned __int128 shuf__u128;
#endif

#endif
