/* SPDX-License-Identifier: MIT
 *
 * One spelling for a function that C11, C++ and CUDA (host and device) inline, and
 * one for whole numbers of 128 bits.
 */
#ifndef SHUF_INLINE_H
#define SHUF_INLINE_H

#ifdef __CUDACC__
#define SHUF_FUNCTION static __host__ __device__ __forceinline__
#else
#define SHUF_FUNCTION static inline
#endif

#ifdef __SIZEOF_INT128__ /* ISO C has no such type; this tells a pedantic compiler that we know */
__extension__ typedef unsigned __int128 shuf__u128;
#endif

#endif
