/* SPDX-License-Identifier: MIT
 *
 * The C part of the Python package: loops over the inline functions of libshuf, the functions of
 * NumPy's interface for bit generators, and DLPack. For everything else, Python calls the functions
 * of shuf.h through cffi.
 */
#ifndef SHUFPY_SHIM_H
#define SHUFPY_SHIM_H

#include <shuf.h>
#include <shuf/algorithm.h>
#include <shuf/primefold.h>
#include <shuf/uniform.h>

/* Gives a lease back and frees it. */
shuf_status shufpy_release(shuf *handle, shuf_lease *lease);

/* ---- Look-ups in process ------------------------------------------------ */

typedef struct shufpy_order {
    shuf_primefold bijection;
} shufpy_order;

/* 1 <= n <= 2^62 */
void shufpy_order_make(shufpy_order *order, uint64_t n, uint64_t seed, uint64_t epoch);

/* out[i] is the value at position at[i], or with `inverse` the position of the value at[i]. Returns
 * the first i whose at[i] is n or more, else `count`. */
size_t shufpy_order_look_up(const shufpy_order *order, bool inverse, const uint64_t *at,
                            size_t count, uint64_t *out);

/* out[i] is the value at position (first + i * stride) mod n. */
void shufpy_order_range(const shufpy_order *order, uint64_t first, uint64_t stride, size_t count,
                        uint64_t *out);

/* Maps 64 random bits to [0, n): out[i] is the upper half of the 128-bit product bits[i] * n. */
void shufpy_scale(const uint64_t *bits, size_t count, uint64_t n, uint64_t *out);

/* ---- NumPy's bit generator ---------------------------------------------- */

/* The place in a uniform stream of 64-bit values. The upper half of a value waits in `half` after
 * next_uint32 has returned the lower one. */
typedef struct shufpy_draw {
    shuf_stream stream;
    uint64_t seed, number, offset; /* of the next value */
    uint64_t pair;                 /* of the values in `word`; UINT64_MAX: none */
    uint64_t word[2];
    uint32_t half;
    bool has_half;
} shufpy_draw;

void shufpy_draw_make(shufpy_draw *draw, uint64_t seed, uint64_t stream, uint64_t offset);

/* Fills the bitgen_t of NumPy (numpy/random/bitgen.h) at `bitgen`. `draw` must outlive it. */
void shufpy_bitgen_fill(void *bitgen, shufpy_draw *draw);

/* ---- DLPack ------------------------------------------------------------- */

/* Device memory that a consumer of DLPack takes over. `owner` is passed to shufpy_dlpack_owner_free
 * when the consumer has ended. */
typedef struct shufpy_tensor {
    void *data, *owner;
    int32_t device; /* the ordinal of the GPU in this process */
    uint8_t code, bits;
    int32_t dimensions; /* at most 8 */
    int64_t shape[8];
} shufpy_tensor;

/* A DLManagedTensorVersioned with the flag of read-only memory (`versioned`), or a DLManagedTensor.
 * NULL: out of memory. */
void *shufpy_dlpack_make(const shufpy_tensor *tensor, bool versioned);

/* Frees a tensor that no consumer took, and its owner. */
void shufpy_dlpack_free(void *managed, bool versioned);

#endif
