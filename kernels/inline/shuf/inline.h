/* SPDX-License-Identifier: MIT
 *
 * One spelling for a function that C11, C++ and CUDA (host and device) inline.
 */
#ifndef SHUF_INLINE_H
#define SHUF_INLINE_H

#ifdef __CUDACC__
#define SHUF_FUNCTION static __host__ __device__ __forceinline__
#else
#define SHUF_FUNCTION static inline
#endif

#endif
