/* SPDX-License-Identifier: MIT
 *
 * The contract between the daemon and whatever computes: a small table of
 * functions that every backend fills at the end of its own file; backend.c
 * lists the tables. One thread at a time drives a backend, though not always the
 * same; every function but `launch` returns only when its work is done.
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

/* One computation on its way. */
struct shuf__computation {
    struct shuf__request request; /* a PERMUTATION, STREAM or SHUFFLE; LOOK_UP: look-ups only */
    /* SHUFFLE: the records. Host memory where the filled block is host memory, else device memory.
     * Never the filled block itself, and never written to. */
    const struct shuf__block *input;
    /* Scratch memory (ops->workspace) of the requested kind, with `least` bytes or more. NULL for
     * none, where `least` is 0. */
    const struct shuf__block *workspace;
    /* Called now and then during long work; true ends the computation with SHUF_CANCELLED. May be
     * NULL. */
    bool (*cancelled)(void *context);
    void *cancel_context;
    /* Of the permutation, which has one row. `launch` uses it and adds to it, and is done with it
     * when it returns. NULL for none. */
    struct shuf__rank_index *rank_index;
};

/* What a block is made of, which decides how another process can map it. */
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
    SHUF__BLOCK_UNIT = 2 << 20, /* blocks are multiples of it: the driver's own unit */
};

/* Scratch memory of a computation. Its kind is private, because a process that could write to it
 * could make the computation read and write anywhere. `best` bytes give full speed, `least` are
 * required; both are 0 if the computation needs none. Its contents before and after the computation
 * have no meaning. */
struct shuf__workspace {
    enum shuf__memory kind;
    uint64_t best, least;
};

/* Memory of a result: one whole allocation, since that is what a mapping shows. */
struct shuf__block {
    enum shuf__memory kind;
    void *memory; /* where the backend computes; NULL for none */
    uint64_t bytes;
    const void *host; /* where the host may read it directly, or NULL */
    int fd;           /* MEMFD: the daemon's own (memfd.h); CUDA_FD: what others import; else -1 */
    uint8_t ipc[SHUF__IPC_HANDLE]; /* CUDA_IPC: what others open */
    uint64_t detail[2];            /* the backend's own */
    bool client_writable;          /* MEMFD: others may write to it (memfd.h) */
};

/* Of values x, with z = (x - centre) * scale, in double precision: the order in which they are
 * added is the backend's. Whole numbers are taken as such. */
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
    enum shuf__memory own; /* the kind that it computes into when nobody asks for another */
    /* A computation of at most so many evaluations is over in microseconds: sooner than another
     * thread would be awake. They are rows times count with streams and primefold (times n where n
     * <= SHUF_PRIMEFOLD_EXACT), rows times the domain above n with the others; a shuffle moves 8
     * bytes for each at most. */
    uint64_t quick;
    /* From where on a rank index pays; NULL: `launch` makes no use of one. */
    const struct shuf__rank_index_limits *rank_index_limits;

    /* `device`: what stands behind the colon of `--backend cuda:1`, NULL for the
     * default. `threads`: CPU threads, 0 for all. */
    shuf_status (*open)(const char *device, unsigned threads, struct shuf__backend **backend,
                        struct shuf__error *error);
    void (*close)(struct shuf__backend *backend);

    /* Bytes of that kind that alloc could still give, and all there are. On any thread, at any
     * time. */
    shuf_status (*memory)(struct shuf__backend *backend, enum shuf__memory kind,
                          uint64_t *available, uint64_t *total, struct shuf__error *error);
    /* bytes: a multiple of SHUF__BLOCK_UNIT, or 0 for a block without memory. All zeros, so that
     * nothing of others is ever seen in it, and ready to be mapped by others. SHUF_NO_MEMORY names
     * the requested and the available bytes. */
    shuf_status (*alloc)(struct shuf__backend *backend, enum shuf__memory kind, uint64_t bytes,
                         struct shuf__block *block, struct shuf__error *error);
    /* Also while a launch still uses it, for which it waits. */
    void (*free)(struct shuf__backend *backend, struct shuf__block *block);

    /* A new descriptor of a block of MEMFD or CUDA_FD for another process, read-only unless the
     * block is client_writable; the caller's to close. -1 with errno. On any thread, at any time.
     */
    int (*export_block)(const struct shuf__block *block);
    /* Whether another process has the block; unknown of device memory. On any thread, at any time.
     */
    enum shuf__mapped (*mapped)(const struct shuf__block *block);
    /* Bytes of the block that the system has given memory for, whoever wrote to them. On any
     * thread, at any time. */
    uint64_t (*committed)(const struct shuf__block *block);

    /* What a computation of the request would like to work in when it fills a block of that kind.
     * On any thread, at any time. */
    struct shuf__workspace (*workspace)(const struct shuf__backend *backend,
                                        const struct shuf__request *request,
                                        enum shuf__memory kind);
    /* Begins to fill the block, which has at least the bytes of the request's shape. May return
     * only at the end where the host computes, where the work is too large for one go, or where
     * tiles are counted. Each launch that succeeds must be followed by waits until one says that it
     * is done; nothing else computes in between. On failure nothing is under way. */
    shuf_status (*launch)(struct shuf__backend *backend,
                          const struct shuf__computation *computation, struct shuf__block *block,
                          struct shuf__error *error);
    /* Waits for it, `timeout_ns` at most (UINT64_MAX: as long as it takes). On success *done says
     * whether it is complete, and then *device_ns what the device needed for it: measured by the
     * device itself; of a quick computation by the host's clock, from the launch until it was seen
     * to be done. After a failure nothing is under way. */
    shuf_status (*wait)(struct shuf__backend *backend, uint64_t timeout_ns, bool *done,
                        uint64_t *device_ns, struct shuf__error *error);
    /* After a launch into a block of CUDA_IPC: a cudaIpcEventHandle_t of an event that lies behind
     * it, valid until the block's next one. NULL in a backend without such blocks. */
    shuf_status (*event)(struct shuf__backend *backend, struct shuf__block *block,
                         uint8_t handle[SHUF__IPC_HANDLE], struct shuf__error *error);
    /* shuf/fingerprint.h over the first `values` values of the block, by their bits; width 2, 4 or
     * 8. `index` is the index of the first of them, 0 unless the block holds a part. */
    shuf_status (*fingerprint)(struct shuf__backend *backend, const struct shuf__block *block,
                               unsigned width, uint64_t values, uint64_t index,
                               uint64_t *fingerprint, struct shuf__error *error);
    /* Over the first `values` values of the block, at least 1. */
    shuf_status (*sums)(struct shuf__backend *backend, const struct shuf__block *block,
                        shuf_dtype dtype, uint64_t values, double centre, double scale,
                        struct shuf__sums *sums, struct shuf__error *error);
    /* Copies [offset, offset + bytes) of the block to host memory. */
    shuf_status (*read)(struct shuf__backend *backend, const struct shuf__block *block,
                        uint64_t offset, uint64_t bytes, void *out, struct shuf__error *error);
    /* The other way. Of a block of host memory on any thread, at any time. */
    shuf_status (*write)(struct shuf__backend *backend, struct shuf__block *block, uint64_t offset,
                         uint64_t bytes, const void *in, struct shuf__error *error);
    /* Answers a LOOK_UP: replaces each place, all below n, by the value at that position or, with
     * `inverse`, by the position of that value. Computed on the host. With random access on any
     * thread, at any time. With compaction it counts first what computation->rank_index lacks,
     * which may be NULL where shuf__rank_index_bytes() is 0. */
    shuf_status (*look_up)(struct shuf__backend *backend,
                           const struct shuf__computation *computation, uint64_t *place,
                           size_t count, struct shuf__error *error);
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

/* Whether it is memory of the host, not of a device. */
static inline bool shuf__memory_is_host(enum shuf__memory kind)
{
    return kind == SHUF__MEMORY_MEMFD || kind == SHUF__MEMORY_PRIVATE;
}

/* Whether no other process can map it, so that there are no results in it. */
static inline bool shuf__memory_is_private(enum shuf__memory kind)
{
    return kind == SHUF__MEMORY_PRIVATE || kind == SHUF__MEMORY_CUDA_PRIVATE;
}

/* Whether a computation of the request is quick on such a backend: ops->quick. */
bool shuf__backend_is_quick(const struct shuf__backend_ops *ops,
                            const struct shuf__request *request);

/* A block that others fill: ops->alloc, but that one of MEMFD is client_writable (memfd.h). */
shuf_status shuf__backend_alloc_writable(struct shuf__backend *backend, enum shuf__memory kind,
                                         uint64_t bytes, struct shuf__block *block,
                                         struct shuf__error *error);

/* launch, and waits until it is done. A computation without a workspace has one of its own for so
 * long. */
shuf_status shuf__backend_compute(struct shuf__backend *backend,
                                  const struct shuf__computation *computation,
                                  struct shuf__block *block, uint64_t *device_ns,
                                  struct shuf__error *error);

/* A block for a computation to work in, with what is best for it or, where there is less, with what
 * it cannot do without; an empty one where that is nothing. ops->free gives it back. */
shuf_status shuf__backend_alloc_workspace(struct shuf__backend *backend,
                                          const struct shuf__workspace *needs,
                                          struct shuf__block *block, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
