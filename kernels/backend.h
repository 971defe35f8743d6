/* SPDX-License-Identifier: MIT
 *
 * The contract between the daemon and a backend: a table of functions, struct shuf__backend_ops.
 * Every backend fills its table at the end of its own file. backends.c lists the backends.
 *
 * At most one thread at a time calls a backend, but not always the same thread. Functions marked
 * "on any thread" may run beside the others. `launch` and `event` may return before the device is
 * done. `wait` returns when the device is done or its timeout has passed. All other functions
 * return when their work is done.
 */
#ifndef SHUF__BACKEND_H
#define SHUF__BACKEND_H

#include "error.h"
#include "request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shuf__backend;
struct shuf__block;
struct shuf__rank_index;
struct shuf__rank_index_limits;

/* One computation and its inputs. */
struct shuf__computation {
    /* A PERMUTATION, STREAM, SHUFFLE or EXCHANGE; for look-ups only, also a LOOK_UP. */
    struct shuf__request request;
    /* SHUFFLE: the block with the records, in the same kind of memory (host or device) as the block
     * that the computation fills. The two blocks differ. The computation only reads this one. */
    const struct shuf__block *input;
    /* Scratch memory of the kind that ops->workspace requests, with `least` bytes or more. NULL is
     * allowed if `least` is 0. */
    const struct shuf__block *workspace;
    /* Called repeatedly during long work. If it returns true, the computation ends with
     * SHUF_CANCELLED. May be NULL. */
    bool (*cancelled)(void *context);
    void *cancel_context;
    /* The index of the permutation, which has one row. `launch` reads it and adds to it, but does
     * not use it after its return. May be NULL. */
    struct shuf__rank_index *rank_index;
    /* Called by shuf__backend_compute() between the launch and the wait. It may call `fingerprint`
     * and `sums` of the block, which wait for the computation as well. NULL: none. */
    shuf_status (*follow)(void *context, struct shuf__backend *backend,
                          const struct shuf__block *block, struct shuf__error *error);
    void *follow_context;
};

/* The kind of a block's memory. It decides how another process can map the block. */
enum shuf__memory {
    SHUF__MEMORY_MEMFD,        /* host memory: by a read-only descriptor (memfd.h) */
    SHUF__MEMORY_PRIVATE,      /* host memory: not at all, for workspaces */
    SHUF__MEMORY_CUDA_FD,      /* device memory of cuMemCreate: by a descriptor */
    SHUF__MEMORY_CUDA_IPC,     /* device memory of cudaMalloc: by a cudaIpcMemHandle_t */
    SHUF__MEMORY_CUDA_PRIVATE, /* device memory: not at all, for workspaces */
    SHUF__MEMORY_KINDS,
};

enum {
    SHUF__IPC_HANDLE = 64, /* bytes of a cudaIpcMemHandle_t, and of a cudaIpcEventHandle_t */
    SHUF__BLOCK_UNIT =
        2 << 20, /* blocks have a multiple of so many bytes; small MEMFD blocks need not */
};

/* The scratch memory of a computation. `least` bytes are required, and `best` bytes give full
 * speed. Both are 0 if the computation needs none. The kind of memory is private: a process that
 * could write to it could make the computation read and write anywhere. The contents have no
 * meaning before or after the computation. */
struct shuf__workspace {
    enum shuf__memory kind;
    uint64_t best, least;
};

/* Memory of a result. A process that maps a block sees the whole allocation, so each block is an
 * allocation of its own. */
struct shuf__block {
    enum shuf__memory kind;
    void *memory; /* the backend's address of it; NULL if the block has no memory */
    uint64_t bytes;
    const void *host; /* the host's address of it; NULL if the host cannot read it */
    int fd; /* MEMFD: the daemon's own (memfd.h); CUDA_FD: other processes import it; else -1 */
    uint8_t ipc[SHUF__IPC_HANDLE]; /* CUDA_IPC: other processes open it */
    uint64_t detail[2];            /* private to the backend */
    bool client_writable;          /* MEMFD: other processes may write to it (memfd.h) */
};

/* Sums over all values x of a block, with z = (x - centre) * scale, in double precision. The
 * backend chooses the order of the additions. An integer counts as the double of its value. */
struct shuf__sums {
    double power[4];       /* the sums of z, z^2, z^3 and z^4 */
    double least, largest; /* the least and the largest x */
};

/* What a pass over values that stores none of them is asked for, and what it finds. */
struct shuf__pass {
    uint64_t index;       /* of the first value in the result */
    bool moments;         /* sums too; only of a stream */
    double centre, scale; /* of the sums */
    uint64_t fingerprint;
    struct shuf__sums sums; /* if requested */
    uint64_t device_ns;     /* the time, measured by the device */
};

/* Whether another process has a block open or mapped. */
enum shuf__mapped { SHUF__UNMAPPED, SHUF__MAPPED, SHUF__MAPPED_UNKNOWN };

struct shuf__backend {
    const struct shuf__backend_ops *ops;
    char device[128];   /* its name for people: "NVIDIA H200", "AMD EPYC, 2 threads" */
    char device_id[64]; /* the GPU's UUID, or the CPU's instruction set */
};

struct shuf__backend_ops {
    const char *name; /* "cpu", "cuda" */
    bool makes[SHUF__MEMORY_KINDS];
    enum shuf__memory own; /* the kind of memory for results, if the request names none */
    /* A computation of at most so many evaluations is quick: it takes microseconds, less than
     * waking another thread. The evaluations of a row are
     *
     *     count    streams, and primefold with n > SHUF_PRIMEFOLD_EXACT
     *     n        primefold with n <= SHUF_PRIMEFOLD_EXACT
     *     2^B      the other algorithms; B = shuf_domain_bits(n), so 2^B is the next power of two
     *
     * A quick shuffle also moves at most 8 * quick bytes. In a batch, the keys of a row take as
     * long as `quick_row` evaluations more. */
    uint64_t quick, quick_row;
    /* The same limit of small computations, which do not wait for others: a GPU gives them its
     * next free multiprocessors. They use no rank index. 0: the system shares the processors. */
    uint64_t small;
    /* Says when a computation is faster with a rank index. NULL: `launch` uses no rank index. */
    const struct shuf__rank_index_limits *rank_index_limits;

    /* `device`: the text after the colon of `--backend cuda:1`, or NULL for the default device.
     * `threads`: CPU threads, 0 for all. */
    shuf_status (*open)(const char *device, unsigned threads, struct shuf__backend **backend,
                        struct shuf__error *error);
    void (*close)(struct shuf__backend *backend);

    /* The bytes of that kind of memory: available to `alloc`, and in total. On any thread, at any
     * time. */
    shuf_status (*memory)(struct shuf__backend *backend, enum shuf__memory kind,
                          uint64_t *available, uint64_t *total, struct shuf__error *error);
    /* Allocates a block. `bytes` is a multiple of SHUF__BLOCK_UNIT; for a smaller MEMFD block, a
     * multiple of a page; or 0 for a block without memory. The memory is all zeros, because other
     * processes can map it and must not see earlier contents. The text of SHUF_NO_MEMORY has the
     * requested and the available bytes. Host memory: on any thread, at any time. */
    shuf_status (*alloc)(struct shuf__backend *backend, enum shuf__memory kind, uint64_t bytes,
                         struct shuf__block *block, struct shuf__error *error);
    /* Frees a block. If a launch still uses the block, `free` waits for the launch. Host memory: on
     * any thread, at any time. */
    void (*free)(struct shuf__backend *backend, struct shuf__block *block);

    /* A new descriptor of a MEMFD or CUDA_FD block for another process, read-only unless the block
     * is client_writable. The caller closes it. Returns -1 with errno. On any thread, at any time.
     */
    int (*export_block)(const struct shuf__block *block);
    /* Whether another process has the block open or mapped; for device memory, unknown. On any
     * thread, at any time.
     */
    enum shuf__mapped (*mapped)(const struct shuf__block *block);
    /* The bytes of the block to which the system has given memory, because some process wrote to
     * them. On any thread, at any time. */
    uint64_t (*committed)(const struct shuf__block *block);

    /* The workspace that the request's computation needs if it fills a block of that kind. On any
     * thread, at any time. */
    struct shuf__workspace (*workspace)(const struct shuf__backend *backend,
                                        const struct shuf__request *request,
                                        enum shuf__memory kind);
    /* Begins to fill the block, which has room for the shape of the request. In three cases it
     * returns only at the end of the work: if the host computes, if the work takes several
     * launches, or if it fills a rank index. After a success the caller must call `wait` until
     * *done is true, before any other computation. After a failure the device does no more work. */
    shuf_status (*launch)(struct shuf__backend *backend,
                          const struct shuf__computation *computation, struct shuf__block *block,
                          struct shuf__error *error);
    /* Waits for the launched computation, at most `timeout_ns`; UINT64_MAX is no limit. On success,
     * *done says whether the computation is complete. If so, *device_ns is its time, measured by
     * the device. The time of a quick computation is measured by the host, from the launch until
     * `wait` sees the end. After a failure the device does no more work. */
    shuf_status (*wait)(struct shuf__backend *backend, uint64_t timeout_ns, bool *done,
                        uint64_t *device_ns, struct shuf__error *error);
    /* Called after a launch into a CUDA_IPC block. Gives the handle of a CUDA event that occurs at
     * the end of the launch. The handle is valid until the next call for the same block. NULL in a
     * backend without such blocks. */
    shuf_status (*event)(struct shuf__backend *backend, struct shuf__block *block,
                         uint8_t handle[SHUF__IPC_HANDLE], struct shuf__error *error);
    /* The fingerprint (shuf/fingerprint.h) of the bits of the block's first `values` values. A
     * value has `width` bytes: 2, 4 or 8. `index` is the index of the first value in the result; it
     * is 0 unless the block holds a part. */
    shuf_status (*fingerprint)(struct shuf__backend *backend, const struct shuf__block *block,
                               unsigned width, uint64_t values, uint64_t index,
                               uint64_t *fingerprint, struct shuf__error *error);
    /* Whether `pass` can do the request. On any thread, at any time. NULL: it can do none. */
    bool (*passes)(const struct shuf__request *request);
    /* Summarizes the values in one pass that stores nothing. A GPU checks for cancellation only
     * before it begins, so the caller asks for parts. */
    shuf_status (*pass)(struct shuf__backend *backend, const struct shuf__computation *computation,
                        struct shuf__pass *pass, struct shuf__error *error);
    /* The sums over the first `values` values of the block; values >= 1. */
    shuf_status (*sums)(struct shuf__backend *backend, const struct shuf__block *block,
                        shuf_dtype dtype, uint64_t values, double centre, double scale,
                        struct shuf__sums *sums, struct shuf__error *error);
    /* Copies [offset, offset + bytes) of the block to host memory. */
    shuf_status (*read)(struct shuf__backend *backend, const struct shuf__block *block,
                        uint64_t offset, uint64_t bytes, void *out, struct shuf__error *error);
    /* Copies from host memory to the block. Host memory: on any thread, at any time. */
    shuf_status (*write)(struct shuf__backend *backend, struct shuf__block *block, uint64_t offset,
                         uint64_t bytes, const void *in, struct shuf__error *error);
    /* Does a LOOK_UP on the host. Replaces each place, which is below n, by the value at this
     * position. With `inverse`, a place is a value and is replaced by its position. For an
     * algorithm with random access: on any thread, at any time. For one with compaction, the call
     * first completes computation->rank_index up to the last tile that it needs. If
     * shuf__rank_index_bytes() is 0, the index may be NULL. */
    shuf_status (*look_up)(struct shuf__backend *backend,
                           const struct shuf__computation *computation, uint64_t *place,
                           size_t count, struct shuf__error *error);
};

extern const struct shuf__backend_ops shuf__cpu_ops;

/* Whether the text after the colon of "cpu:avx2" names an instruction set of this processor. */
shuf_status shuf__cpu_check_name(const char *device, struct shuf__error *error);

/* Opens the backend `spec`: "cpu", "cpu:scalar|avx2|avx512|neon", "cuda", "cuda:1",
 * "cuda:GPU-<uuid>", or "auto". "auto" opens the first backend of the list that has a device. If
 * better backends failed before it, *error has the reason of the last failure; otherwise its text
 * is empty. Fails with SHUF_INVALID if there is no such name, and with SHUF_DEVICE if the device or
 * the library of its backend (cuda_library.h) is absent. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error);

/* Checks only the text of `spec`: whether shuf__backend_open() could succeed on some machine. */
shuf_status shuf__backend_check(const char *spec, struct shuf__error *error);

/* Whether the kind is memory of the host, not of a device. */
static inline bool shuf__memory_is_host(enum shuf__memory kind)
{
    return kind == SHUF__MEMORY_MEMFD || kind == SHUF__MEMORY_PRIVATE;
}

/* Whether no other process can map memory of this kind. Such memory never holds results. */
static inline bool shuf__memory_is_private(enum shuf__memory kind)
{
    return kind == SHUF__MEMORY_PRIVATE || kind == SHUF__MEMORY_CUDA_PRIVATE;
}

/* The evaluations of all rows: see ops->quick. */
double shuf__backend_evaluations(const struct shuf__request *request);

/* Whether a computation of the request is quick on this backend: see ops->quick. */
bool shuf__backend_is_quick(const struct shuf__backend_ops *ops,
                            const struct shuf__request *request);

/* Whether the request is for values, and their computation is small: see ops->small. */
bool shuf__backend_is_small(const struct shuf__backend_ops *ops,
                            const struct shuf__request *request);

/* Allocates a block that a client will fill. It differs from ops->alloc in one point: a MEMFD block
 * is client_writable (memfd.h). */
shuf_status shuf__backend_alloc_writable(struct shuf__backend *backend, enum shuf__memory kind,
                                         uint64_t bytes, struct shuf__block *block,
                                         struct shuf__error *error);

/* Launches a computation and waits until it is done. If the computation has no workspace, the call
 * allocates a workspace and frees it at the end. */
shuf_status shuf__backend_compute(struct shuf__backend *backend,
                                  const struct shuf__computation *computation,
                                  struct shuf__block *block, uint64_t *device_ns,
                                  struct shuf__error *error);

/* Adds the sums over `more` values to `sums`. */
void shuf__sums_add(struct shuf__sums *sums, const struct shuf__sums *more);

/* Allocates a workspace of needs->best bytes, or of needs->least bytes if the memory is too small
 * for that. With 0 bytes the block is empty. ops->free frees the block. */
shuf_status shuf__backend_alloc_workspace(struct shuf__backend *backend,
                                          const struct shuf__workspace *needs,
                                          struct shuf__block *block, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
