/* SPDX-License-Identifier: MIT
 *
 * The contract between the daemon and whatever computes: a small table of
 * functions that every backend fills at the end of its own file; backend.c
 * lists the tables. One thread drives a backend at a time, and every function
 * returns only when its work is done.
 */
#ifndef SHUF__BACKEND_H
#define SHUF__BACKEND_H

#include "error.h"
#include "shuf/algorithm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One computation: `rows` rows of `count` values of `width` bytes, row-major.
 * Row r is the permutation of [0, n) for (seed, epoch + r); its value i stands
 * at position (offset + i * stride) mod n. The last value alone may wrap.
 * 1 <= n <= 2^62, offset < n, 1 <= stride <= 2^62, width 4 (n <= 2^32) or 8. */
struct shuf__job {
    enum shuf_algorithm algorithm;
    uint64_t n, seed, epoch, rows;
    uint64_t offset, count, stride;
    unsigned width;
    /* Asked now and then during long work; true ends it with SHUF_CANCELLED.
     * May be NULL. */
    bool (*cancelled)(void *context);
    void *cancel_context;
};

/* Memory of one result, on the device or in the host's memory. */
struct shuf__block {
    void *memory;
    uint64_t bytes;
    const void *host; /* where the host may read it directly, or NULL */
};

struct shuf__backend {
    const struct shuf__backend_ops *ops;
    char device[128];   /* its name for people: "NVIDIA H200", "AMD EPYC, 2 threads" */
    char device_id[64]; /* the GPU's UUID, or the CPU's instruction set */
};

struct shuf__backend_ops {
    const char *name; /* "cpu", "cuda" */

    /* `device`: what stands behind the colon of `--backend cuda:1`, NULL for the
     * default. `threads`: CPU threads, 0 for all. */
    shuf_status (*open)(const char *device, unsigned threads, struct shuf__backend **backend,
                        struct shuf__error *error);
    void (*close)(struct shuf__backend *backend);

    /* Bytes that alloc could still give, and all there are. */
    shuf_status (*memory)(struct shuf__backend *backend, uint64_t *available, uint64_t *total,
                          struct shuf__error *error);
    /* bytes may be 0. The contents are undefined. SHUF_NO_MEMORY names what was asked and had. */
    shuf_status (*alloc)(struct shuf__backend *backend, uint64_t bytes, struct shuf__block *block,
                         struct shuf__error *error);
    void (*free)(struct shuf__backend *backend, struct shuf__block *block);

    /* Fills the block (bytes >= rows * count * width). *device_ns: what the
     * device needed for it. */
    shuf_status (*permute)(struct shuf__backend *backend, const struct shuf__job *job,
                           struct shuf__block *block, uint64_t *device_ns,
                           struct shuf__error *error);
    /* shuf/fingerprint.h over the first `values` values of the block. */
    shuf_status (*fingerprint)(struct shuf__backend *backend, const struct shuf__block *block,
                               unsigned width, uint64_t values, uint64_t *fingerprint,
                               struct shuf__error *error);
    /* Copies [offset, offset + bytes) of the block to host memory. */
    shuf_status (*read)(struct shuf__backend *backend, const struct shuf__block *block,
                        uint64_t offset, uint64_t bytes, void *out, struct shuf__error *error);
};

extern const struct shuf__backend_ops shuf__cpu_ops;
extern const struct shuf__backend_ops shuf__cuda_ops; /* where SHUF_HAVE_CUDA is set */

/* Opens what `spec` names: "auto" (the first of the table that has a device),
 * "cpu", "cpu:scalar|avx2|avx512", "cuda", "cuda:1", "cuda:GPU-<uuid>". With
 * "auto", *error says why each better backend was passed over, even on success
 * (an empty text when none was). SHUF_INVALID means that there is no such name; a device
 * that is not there, or not in this build, is SHUF_DEVICE. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error);

/* The compiled-in backends, best first; NULL past the end. */
const struct shuf__backend_ops *shuf__backend_at(unsigned index);

#ifdef __cplusplus
}
#endif

#endif
