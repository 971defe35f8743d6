/* SPDX-License-Identifier: MIT
 *
 * The contract between the daemon and a backend: a small table of functions. Every backend fills
 * the table at the end of its own file; backend.c lists the tables. One thread at a time drives a
 * backend, but not always the same thread. Functions marked "on any thread" are the exception.
 * `launch` and `event` return before the device is done, and `wait` after its timeout. The others
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

struct shuf__rank_index;
struct shuf__rank_index_limits;

/* One computation and its inputs. */
struct shuf__computation {
    /* A PERMUTATION, STREAM, SHUFFLE or EXCHANGE; LOOK_UP: look-ups only. */
    struct shuf__request request;
    /* SHUFFLE: the records. They are in host memory if the filled block is, else in device memory.
     * Never the filled block itself. The computation does not write to it. */
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
    SHUF__IPC_HANDLE = 64,      /* bytes of a cudaIpcMemHandle_t, and of a cudaIpcEventHandle_t */
    SHUF__BLOCK_UNIT = 2 << 20, /* block sizes are multiples of it, as of the CUDA driver's */
};

/* Scratch memory of a computation. Its kind is private: a process that could write to it could make
 * the computation read and write anywhere. `best` bytes give full speed; `least` bytes are
 * required. Both are 0 if the computation needs none. Its contents have no meaning before or after
 * the computation. */
struct shuf__workspace {
    enum shuf__memory kind;
    uint64_t best, least;
};

/* Memory of a result: one whole allocation, because a mapping shows all of its allocation. */
struct shuf__block {
    enum shuf__memory kind;
    void *memory; /* the backend's address of it; NULL if the block has no memory */
    uint64_t bytes;
    const void *host; /* the host's address of it; NULL if the host cannot read it */
    int fd;           /* MEMFD: the daemon's (memfd.h); CUDA_FD: for others to import; else -1 */
    uint8_t ipc[SHUF__IPC_HANDLE]; /* CUDA_IPC: for other processes to open */
    uint64_t detail[2];            /* private to the backend */
    bool client_writable;          /* MEMFD: other processes may write to it (memfd.h) */
};

/* Sums over values x, with z = (x - centre) * scale, in double precision. The backend chooses the
 * order of the additions. Integers are converted to double as they are. */
struct shuf__sums {
    double power[4];       /* the sums of z, z^2, z^3 and z^4 */
    double least, largest; /* x */
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
    /* A computation of at most this many evaluations takes microseconds, less than waking another
     * thread. Evaluations a row: `count` for streams and primefold, n for primefold up to
     * SHUF_PRIMEFOLD_EXACT, and 2^B for the others. A shuffle is quick only if it also moves at
     * most 8 * quick bytes. */
    uint64_t quick;
    /* The rule for computations that are faster with a rank index; NULL: `launch` uses none. */
    const struct shuf__rank_index_limits *rank_index_limits;

    /* Whether `device` of the next function can name one: SHUF_INVALID, or SHUF_DEVICE. Touches no
     * device. NULL: only `open` knows. */
    shuf_status (*check_name)(const char *device, struct shuf__error *error);
    /* `device`: the text after the colon of `--backend cuda:1`, or NULL for the default device.
     * `threads`: CPU threads, 0 for all. */
    shuf_status (*open)(const char *device, unsigned threads, struct shuf__backend **backend,
                        struct shuf__error *error);
    void (*close)(struct shuf__backend *backend);

    /* Bytes of that kind: available to `alloc`, and in total. On any thread, at any time. */
    shuf_status (*memory)(struct shuf__backend *backend, enum shuf__memory kind,
                          uint64_t *available, uint64_t *total, struct shuf__error *error);
    /* bytes: a multiple of SHUF__BLOCK_UNIT, or of a page for a smaller MEMFD block, or 0 for a
     * block without memory. The memory is all zeros, so no earlier contents are visible in it.
     * Other processes can map it. The text of SHUF_NO_MEMORY has the requested and the available
     * bytes. Host memory: on any thread, at any time. */
    shuf_status (*alloc)(struct shuf__backend *backend, enum shuf__memory kind, uint64_t bytes,
                         struct shuf__block *block, struct shuf__error *error);
    /* If a launch still uses the block, `free` waits for it. Host memory: on any thread, at any
     * time. */
    void (*free)(struct shuf__backend *backend, struct shuf__block *block);

    /* A new descriptor of a MEMFD or CUDA_FD block for another process, read-only unless the block
     * is client_writable. The caller closes it. Returns -1 with errno. On any thread, at any time.
     */
    int (*export_block)(const struct shuf__block *block);
    /* Whether another process has the block open or mapped; for device memory, unknown. On any
     * thread, at any time.
     */
    enum shuf__mapped (*mapped)(const struct shuf__block *block);
    /* Bytes of the block that have memory of the system, whichever process wrote to them first. On
     * any thread, at any time. */
    uint64_t (*committed)(const struct shuf__block *block);

    /* The workspace of a computation of the request that fills a block of that kind. On any thread,
     * at any time. */
    struct shuf__workspace (*workspace)(const struct shuf__backend *backend,
                                        const struct shuf__request *request,
                                        enum shuf__memory kind);
    /* Begins to fill the block, which has at least the bytes of the request's shape. May return
     * only at the end: if the host computes, if the work takes several launches, or if it counts
     * tiles. After a successful launch the caller must call `wait` until *done, before any other
     * computation. After a failure the device does no more work. */
    shuf_status (*launch)(struct shuf__backend *backend,
                          const struct shuf__computation *computation, struct shuf__block *block,
                          struct shuf__error *error);
    /* Waits for the launched computation, at most `timeout_ns`; UINT64_MAX is no limit. On success
     * *done says whether it is complete, and then *device_ns is its time. The device measures this
     * time. For a quick computation the host measures it, from the launch until `wait` sees the
     * end. After a failure the device does no more work. */
    shuf_status (*wait)(struct shuf__backend *backend, uint64_t timeout_ns, bool *done,
                        uint64_t *device_ns, struct shuf__error *error);
    /* After a launch into a CUDA_IPC block: the handle of a cudaIpcEvent that follows the launch.
     * It is valid until the next event of the block. NULL in a backend without such blocks. */
    shuf_status (*event)(struct shuf__backend *backend, struct shuf__block *block,
                         uint8_t handle[SHUF__IPC_HANDLE], struct shuf__error *error);
    /* The fingerprint (shuf/fingerprint.h) of the first `values` values of the block, by their
     * bits. Width: 2, 4 or 8 bytes. `index`: of the first value; 0 unless the block holds a part.
     */
    shuf_status (*fingerprint)(struct shuf__backend *backend, const struct shuf__block *block,
                               unsigned width, uint64_t values, uint64_t index,
                               uint64_t *fingerprint, struct shuf__error *error);
    /* The sums over the first `values` values of the block; values >= 1. */
    shuf_status (*sums)(struct shuf__backend *backend, const struct shuf__block *block,
                        shuf_dtype dtype, uint64_t values, double centre, double scale,
                        struct shuf__sums *sums, struct shuf__error *error);
    /* Copies [offset, offset + bytes) of the block to host memory. */
    shuf_status (*read)(struct shuf__backend *backend, const struct shuf__block *block,
                        uint64_t offset, uint64_t bytes, void *out, struct shuf__error *error);
    /* Copies host memory to the block. For a block of host memory on any thread, at any time. */
    shuf_status (*write)(struct shuf__backend *backend, struct shuf__block *block, uint64_t offset,
                         uint64_t bytes, const void *in, struct shuf__error *error);
    /* Does a LOOK_UP on the host. Each place is below n. It is replaced by the value at that
     * position or, with `inverse`, by the position of that value. With random access on any thread,
     * at any time. With compaction the call first completes computation->rank_index as far as
     * needed. The index may be NULL if shuf__rank_index_bytes() is 0. */
    shuf_status (*look_up)(struct shuf__backend *backend,
                           const struct shuf__computation *computation, uint64_t *place,
                           size_t count, struct shuf__error *error);
};

extern const struct shuf__backend_ops shuf__cpu_ops;
extern const struct shuf__backend_ops shuf__cuda_ops; /* only with SHUF_HAVE_CUDA */

/* Opens the backend `spec`: "auto" (the first of the table that has a device), "cpu",
 * "cpu:scalar|avx2|avx512", "cuda", "cuda:1", "cuda:GPU-<uuid>". With "auto", *error says why the
 * last better backend could not be opened, even on success; its text is empty if the best one was
 * opened. SHUF_INVALID: there is no such name. SHUF_DEVICE: the device is absent, or its backend is
 * not in this build. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error);

/* Whether the call above could succeed on some machine, as far as the text of `spec` says. */
shuf_status shuf__backend_check(const char *spec, struct shuf__error *error);

/* The compiled-in backends, best first; NULL past the end. */
const struct shuf__backend_ops *shuf__backend_at(unsigned index);

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

/* Whether a computation of the request is quick on this backend: see ops->quick. */
bool shuf__backend_is_quick(const struct shuf__backend_ops *ops,
                            const struct shuf__request *request);

/* Allocates a block for a client to fill. As ops->alloc, but a MEMFD block is client_writable
 * (memfd.h). */
shuf_status shuf__backend_alloc_writable(struct shuf__backend *backend, enum shuf__memory kind,
                                         uint64_t bytes, struct shuf__block *block,
                                         struct shuf__error *error);

/* Launches a computation and waits until it is done. If it has no workspace, the call allocates one
 * and frees it. */
shuf_status shuf__backend_compute(struct shuf__backend *backend,
                                  const struct shuf__computation *computation,
                                  struct shuf__block *block, uint64_t *device_ns,
                                  struct shuf__error *error);

/* Adds the sums over `more` values to `sums`. */
void shuf__sums_add(struct shuf__sums *sums, const struct shuf__sums *more);

/* Allocates a workspace of needs->best bytes. If there is no memory for it, allocates needs->least
 * bytes; with 0 the block is empty. ops->free frees it. */
shuf_status shuf__backend_alloc_workspace(struct shuf__backend *backend,
                                          const struct shuf__workspace *needs,
                                          struct shuf__block *block, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
