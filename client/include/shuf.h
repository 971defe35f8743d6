/* SPDX-License-Identifier: MIT
 *
 * libshuf: permutations, shuffles and random numbers from a running shufd
 * =======================================================================
 *
 * An answer is a pure function of its request: the same algorithm, n, seed and
 * epoch give the same bits on every machine, backend and release, and so do the
 * same distribution, method, seed, stream, mean, std and number of a value. So a call that
 * loses its daemon in the middle simply asks again, and nothing is ever half true.
 *
 * The short way, an epoch's permutation in the caller's memory:
 *
 *     shuf *daemon;
 *     uint32_t order[1000];
 *     shuf_permutation what = {.n = 1000, .seed = 7, .epoch = 3};
 *     if (shuf_connect(&daemon, NULL) != SHUF_OK ||
 *         shuf_permute(daemon, &what, order, sizeof order, NULL) != SHUF_OK)
 *         fprintf(stderr, "%s\n", shuf_message(daemon));
 *     shuf_close(daemon);
 *
 * Threads: one handle serves one thread at a time; any number of handles may
 * be used side by side. No function here starts a thread, installs a signal
 * handler or raises SIGPIPE.
 *
 * Processes: a handle serves the process that connected it. After fork() the
 * child connects anew; a call with its parent's handle is SHUF_INVALID there, but
 * for shuf_close() and shuf_lease_release(), which only free what the child has of
 * it: the parent's connection and leases stay.
 *
 * Errors: a function returns a status (shuf_status.h), SHUF_OK being 0, and
 * leaves one line in the handle that names the field, its value and what was
 * expected: shuf_message().
 */
#ifndef SHUF_H
#define SHUF_H

#include "shuf_dtype.h"
#include "shuf_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Connection ------------------------------------------------------- */

/* A connection to one daemon. */
typedef struct shuf shuf;

/* Connects to the daemon at `socket`; NULL or "" means the default: $SHUFD_SOCKET,
 * else /run/shufd/shufd.sock as root, else $XDG_RUNTIME_DIR/shufd.sock where
 * one stands, else /run/shufd/shufd.sock.
 *
 * *handle is set on failure too (NULL only when memory is out), so that
 * shuf_message() can tell why, and is always given back by shuf_close(). A
 * handle that found no daemon may be used: each call tries again, for as long as
 * shuf_set_reconnect() says.
 * Fails with SHUF_INVALID (a path too long for a socket), SHUF_NO_DAEMON,
 * SHUF_DENIED, SHUF_VERSION, SHUF_BUSY, SHUF_NO_MEMORY, SHUF_PROTOCOL,
 * SHUF_TIMEOUT (no answer to the greeting in 10 s) or SHUF_IO. */
SHUF_API shuf_status shuf_connect(shuf **handle, const char *socket);

/* Disconnects and frees; leases that are still out end with it. NULL is allowed. */
SHUF_API void shuf_close(shuf *handle);

/* The line that explains the last failure on this handle; "" after a success.
 * Valid until the next call with the handle. */
SHUF_API const char *shuf_message(const shuf *handle);

/* The path in use, "" when it was refused. Valid until shuf_close(). */
SHUF_API const char *shuf_socket(const shuf *handle);

/* How long a call whose daemon has gone away keeps trying to reach the next one
 * before it fails with SHUF_NO_DAEMON; when one comes it asks that again from the
 * start, and goes on where the bytes stopped. Milliseconds; 0: do not. Default 10 000.
 * A call that loses sixteen daemons in a row without a new byte fails too. */
SHUF_API void shuf_set_reconnect(shuf *handle, unsigned milliseconds);

/* ---- Permutations ----------------------------------------------------- */

/* Which positions of the permutation are wanted. */
typedef enum shuf_view {
    SHUF_VIEW_ALL = 0,   /* 0 .. n - 1 */
    SHUF_VIEW_SLICE = 1, /* offset, offset + stride, ..., `count` of them */
    SHUF_VIEW_SHARD = 2, /* what DistributedSampler gives `rank` of `world` */
} shuf_view;

/* What is asked for. Zeros are the defaults, but for n. */
typedef struct shuf_permutation {
    const char *algorithm; /* "primefold", "philox24", "lcg"; NULL: the default, the first */
    uint64_t n;            /* permute [0, n): 1 to 2^62 */
    uint64_t seed;         /* any; independent of epoch */
    uint64_t epoch;        /* any */
    uint64_t epochs;       /* rows, for epoch, epoch + 1, ... (mod 2^64); 0 means 1 */
    shuf_view view;
    /* SLICE, else 0: offset < n; count and stride are at least 1 and have no default; the last
     * position, offset + (count - 1) * stride, is below n. */
    uint64_t offset, count, stride;
    uint64_t rank, world; /* SHARD, else 0: rank < world */
    bool drop_last;       /* SHARD: cut the remainder instead of padding by wrapping */
    shuf_dtype dtype;
    bool fingerprint; /* also compute it, and tell head and tail; shuf_summarize() always does */
} shuf_permutation;

/* The result's form, which follows from the request alone. */
typedef struct shuf_shape {
    uint64_t rows;    /* epochs; 1 of numbers */
    uint64_t count;   /* values in a row */
    shuf_dtype dtype; /* SHUF_AUTO only of records and of a buffer */
    unsigned width;   /* bytes of a value: 2, 4 or 8; of a record; 1 of a buffer */
    uint64_t bytes;   /* rows * count * width */
} shuf_shape;

/* Of which distribution numbers are; of a permutation 0. Without a tag, which shuf/distribution.h
 * has. */
typedef enum {
    SHUF_GAUSS = 1,   /* normal, of a mean and a standard deviation: f64, f32, f16 or bf16 */
    SHUF_UNIFORM = 2, /* f64 or f32: multiples of 2^-53 or 2^-24 in [0, 1); u32 or u64: all */
} shuf_distribution;

/* How numbers of GAUSS are made: streams of two methods are independent. */
typedef enum {
    SHUF_TABLE = 0,      /* sums of table entries: the fastest */
    SHUF_BOX_MULLER = 1, /* of Box and Muller: the normal law itself, but for rounding */
} shuf_method;

/* Of N numbers x, in double precision: mean = sum(x) / N, variance = m2, skewness = m3 / m2^(3/2),
 * kurtosis = m4 / m2^2 (3 of a normal distribution), where mk = sum((x - mean)^k) / N. The last two
 * are NaN where m2 is 0. Taken where the values are, from sums of the powers of (x - c) / d for
 * the distribution's own mean c and deviation d, in an order that is the backend's: the last
 * digits differ between backends. */
typedef struct shuf_moments {
    double mean, variance, skewness, kurtosis;
    double least, largest; /* x */
} shuf_moments;

enum { SHUF_EDGE = 4 };

/* What the daemon tells of a result. */
typedef struct shuf_result {
    shuf_shape shape;
    char algorithm[32];             /* of a permutation or a shuffle; else "" */
    shuf_distribution distribution; /* of numbers; else 0 */
    shuf_method method;             /* of GAUSS; else 0 */
    char backend[16];               /* "cpu", "cuda" */
    char device[128];               /* its name for people */
    uint64_t device_ns;             /* computing the values, on the device; nanoseconds */
    uint64_t fingerprint;           /* shuf/fingerprint.h; 0 unless asked for */
    unsigned heads, tails;          /* how many of head and tail are set */
    /* First and last values of the whole result; those of F64 to BF16 by their bits. */
    uint64_t head[SHUF_EDGE], tail[SHUF_EDGE];
    shuf_moments moments; /* of numbers; 0 unless asked for */
} shuf_result;

/* The shape of what `what` asks for; asks no daemon, and sets no message in a
 * handle: on failure the line is written to `message` (may be NULL), cut to
 * `size` bytes. SHUF_INVALID, or SHUF_NO_MEMORY for more than 2^63 bytes. */
SHUF_API shuf_status shuf_permutation_shape(const shuf_permutation *what, shuf_shape *shape,
                                            char *message, size_t size);

/* Writes the values, row-major in the host's byte order, to `out` of `bytes`
 * bytes, which must be at least the shape's; *result may be NULL. On failure
 * `out` holds nothing of use. Fails with SHUF_INVALID, SHUF_NO_MEMORY,
 * SHUF_BUSY, SHUF_DEVICE, or as shuf_connect(). */
SHUF_API shuf_status shuf_permute(shuf *handle, const shuf_permutation *what, void *out,
                                  size_t bytes, shuf_result *result);

/* Takes the next `size` bytes of a result, in order, each byte once even when
 * the daemon was lost in between. Returning false stops the call. */
typedef bool (*shuf_sink)(void *context, const void *bytes, size_t size);

/* As shuf_permute(), for results that need not be in memory at once. The
 * handle's own buffer is at most 256 KiB. SHUF_CANCELLED when the sink stopped
 * it. The sink must not use the handle. `sink` NULL: no values are sent, they are
 * only made, and stay with the daemon for a while, ready for who asks next. */
SHUF_API shuf_status shuf_permute_stream(shuf *handle, const shuf_permutation *what, shuf_sink sink,
                                         void *context, shuf_result *result);

/* Has the permutation computed where the daemon is and returns only its
 * summary, with the fingerprint. */
SHUF_API shuf_status shuf_summarize(shuf *handle, const shuf_permutation *what,
                                    shuf_result *result);

/* ---- Numbers ------------------------------------------------------------ */

/* Values number offset to offset + count - 1 of a stream. Value i of a stream is a function of
 * distribution, method, seed, stream, mean, std, dtype and i alone: any part of it may be had by
 * itself. Streams of one seed, and seeds, are independent. There are 2^62 values in each. */
typedef struct shuf_numbers {
    shuf_distribution distribution; /* has no default */
    uint64_t seed, stream;          /* any */
    uint64_t offset, count;         /* count has no default: at least 1; offset + count <= 2^62 */
    double mean;                    /* of GAUSS: |mean| <= 2^100; else 0 */
    double std; /* of GAUSS, and has no default: 2^-100 <= std <= 2^100, with SHUF_F16 also
                 * |mean| + 16 std <= 65504; else 0. Values are rounded to the dtype: far below the
                 * distance of its values at the mean, a deviation leaves them all equal. */
    shuf_dtype dtype;
    bool fingerprint; /* also compute it, and tell head and tail; shuf_draw_summary() always does */
    bool moments;     /* also compute them, and tell head and tail */
    shuf_method method; /* of GAUSS; else 0 */
} shuf_numbers;

/* What these do with numbers is what shuf_permutation_shape(), shuf_permute(),
 * shuf_permute_stream(), shuf_summarize(), shuf_lease_take() and shuf_prefetch() do with
 * permutations, and they fail as those do:
 *
 *     double noise[1000];
 *     shuf_numbers what = {.distribution = SHUF_GAUSS, .seed = 7, .count = 1000, .std = 1};
 *     shuf_draw(daemon, &what, noise, sizeof noise, NULL);
 *
 * Without a daemon, shuf/gauss.h, shuf/box_muller.h and shuf/uniform.h do the same as inline C, in
 * any thread:
 *
 *     shuf_gauss g = shuf_gauss_make(seed, stream, mean, std);
 *     double x = shuf_gauss_f64(&g, i);
 */
SHUF_API shuf_status shuf_numbers_shape(const shuf_numbers *what, shuf_shape *shape, char *message,
                                        size_t size);
SHUF_API shuf_status shuf_draw(shuf *handle, const shuf_numbers *what, void *out, size_t bytes,
                               shuf_result *result);
SHUF_API shuf_status shuf_draw_stream(shuf *handle, const shuf_numbers *what, shuf_sink sink,
                                      void *context, shuf_result *result);
SHUF_API shuf_status shuf_draw_summary(shuf *handle, const shuf_numbers *what, shuf_result *result);
/* shuf_draw_lease() and shuf_draw_prefetch() stand below, with the leases. */

/* ---- Records ------------------------------------------------------------ */

/* What is to be done to an array of n records of `record` bytes each: y[i] = x[p(i)], p being the
 * permutation that shuf_permute() gives for the same algorithm, n, seed and epoch. With `inverse`,
 * y[p(i)] = x[i], which undoes the other exactly. What a record holds is never looked at. */
#define SHUF_RECORD_MAX UINT64_C(65536)
typedef struct shuf_records {
    const char *algorithm; /* as of a shuf_permutation */
    uint64_t n;            /* 1 to 2^62; has no default, as the next */
    uint64_t record;       /* bytes: 1 to SHUF_RECORD_MAX */
    uint64_t seed, epoch;  /* any */
    bool inverse;
} shuf_records;

/* Shuffles the caller's memory: n * record bytes of `in` to `out`; both have `bytes` bytes, at
 * least as many, and do not overlap. *result may be NULL; it has no head, tail or fingerprint, and
 * a shape of n values of `record` bytes.
 *
 *     float x[1000][3], y[1000][3];
 *     shuf_records what = {.n = 1000, .record = sizeof *x, .seed = 7, .epoch = 3};
 *     shuf_shuffle(daemon, &what, x, y, sizeof x, NULL);
 *
 * The daemon holds twice the bytes meanwhile, in host memory that is new and costs what it takes
 * the system to clear it: who shuffles again and again takes a buffer once (shuf_buffer_take())
 * and has that shuffled. When the daemon is lost the next one is given `in` anew. Fails as
 * shuf_permute() does, and with SHUF_NO_MEMORY where the daemon has no room for both. */
SHUF_API shuf_status shuf_shuffle(shuf *handle, const shuf_records *what, const void *in, void *out,
                                  size_t bytes, shuf_result *result);
/* shuf_shuffle_lease() stands below, with the leases. */

/* ---- Single places ------------------------------------------------------ */

/* What is looked up. */
typedef enum shuf_direction {
    SHUF_FORWARD = 0, /* at[i] is a position, out[i] the value that stands there */
    SHUF_INVERSE = 1, /* at[i] is a value, out[i] the position where it stands */
} shuf_direction;

/* Looks up `count` places of one whole permutation, what->epoch's. What FORWARD gives at position i
 * is value i of shuf_permute() with the same `what`. With primefold each costs about the same,
 * whatever n is, and nothing else is computed. With philox24 and lcg the daemon has to count the
 * values before a place, the first time; it remembers the counts as it keeps results.
 *
 * Every at[i] must be below n; in any order, and as often as one likes. `out` may be `at`, but not
 * overlap it otherwise; on failure it holds nothing of use. `count` 0 asks no daemon; above
 * SHUF_LOOKUPS it is several requests, one after the other, all for one algorithm.
 *
 * Of `what` only algorithm, n, seed and epoch may be set: SHUF_INVALID with a view, a dtype,
 * epochs > 1 or a fingerprint, for an at[i] out of range, found before anything is asked, and for
 * an n above 2^36 that is no power of two with philox24 or lcg. Fails also as shuf_connect(), and
 * with SHUF_BUSY or SHUF_NO_MEMORY. Like every call: one handle serves one thread at a time.
 *
 * Without a daemon, shuf/primefold.h does the same as inline C, in any thread (backwards after
 * shuf_primefold_make_inverse(), by shuf_primefold_inverse()):
 *
 *     shuf_primefold f = shuf_primefold_make(n, seed, epoch);
 *     uint64_t value = shuf_primefold_forward(&f, position);
 */
enum { SHUF_LOOKUPS = 8000 };
SHUF_API shuf_status shuf_index(shuf *handle, const shuf_permutation *what,
                                shuf_direction direction, const uint64_t *at, size_t count,
                                uint64_t *out);

/* ---- Leases ------------------------------------------------------------ */

/* How a result is seen by this process. Each is a bit: a set is SHUF_MEMFD | SHUF_INLINE. */
typedef enum shuf_transport {
    SHUF_INLINE = 1,   /* a copy of its own, in memory of this process */
    SHUF_MEMFD = 2,    /* the daemon's host memory, mapped read-only: the kernel sees to that */
    SHUF_CUDA_FD = 4,  /* the daemon's device memory, mapped read-only by this library */
    SHUF_CUDA_IPC = 8, /* the daemon's device memory, writable: only of a daemon of this user */
} shuf_transport;

/* "inline", "memfd", "cuda-fd", "cuda-ipc"; "none" for anything else. Static storage. */
SHUF_API const char *shuf_transport_name(shuf_transport transport);

/* A result that stays where it was computed, and this process's view of it. Equal requests of one
 * user share one result, so it must not be written to: only what shuf_buffer_take() gives may be,
 * which every transport maps writable. All fields are only to be read.
 *
 * `data` has result.shape.bytes bytes, row-major; NULL where these are 0. With device_id "" it is
 * host memory. Else it is memory of that GPU: a CUdeviceptr, to be used in the context that was
 * current when the lease was taken, or, where none of that GPU was, in the GPU's primary one.
 *
 * The result stays as it is until shuf_lease_release(), also when the daemon dies. A fork()ed
 * child may read host memory by `data` for as long as its parent holds the lease; device memory is
 * not there for it. Releasing in the child ends the child's view alone. */
typedef struct shuf_lease {
    const void *data;
    shuf_result result; /* head and tail are set only beside a fingerprint or moments */
    shuf_transport transport;
    char device_id[64]; /* "GPU-<uuid>", or "" for host memory */
    bool shared;        /* nothing was computed for this call alone */
    void *event;        /* a CUevent to wait for before reading, or NULL: the values are there */
    uint64_t id; /* as shuf_leases() tells it; 0 with INLINE, of which the daemon keeps none */
    uint64_t block, block_bytes; /* the memory that holds the values; 0 with INLINE. Leases of one
                                  * block share one copy, in whatever process they are. */
    void *buffer;                /* of shuf_buffer_take(): `data`, to be written to; else NULL */
} shuf_lease;

typedef struct shuf_lease_options {
    /* The transports that will do, as in SHUF_CUDA_FD | SHUF_MEMFD; the daemon picks the one with
     * the least copying. 0: SHUF_MEMFD | SHUF_INLINE, so `data` is host memory. */
    unsigned transports;
    /* With CUDA_IPC: return before the values are computed; `event` tells when they are. */
    bool event;
} shuf_lease_options;

/* Takes a lease; options NULL: zeros. *lease must be NULL, or a lease of this handle, which is
 * given back in the same round trip: the way to go from one result to the next. Whatever happens,
 * that one is gone, and on failure *lease is NULL.
 * Mapping device memory loads libcuda.so.1 the first time. Fails as shuf_permute() does, and with
 * SHUF_INVALID (no such transport, or none that the daemon has), SHUF_DENIED (a transport that is
 * refused to this process: CUDA_IPC across users or PID namespaces) or SHUF_DEVICE (no libcuda, or
 * the GPU is not visible to this process; the text of CUDA's own error). */
SHUF_API shuf_status shuf_lease_take(shuf *handle, const shuf_permutation *what,
                                     const shuf_lease_options *options, shuf_lease **lease);

/* Ends the view and gives the lease back. NULL is allowed. The lease is gone whatever is returned;
 * fails only where the daemon denies that there was such a lease. A daemon that has gone away since
 * is no failure. */
SHUF_API shuf_status shuf_lease_release(shuf *handle, shuf_lease *lease);

/* Copies [offset, offset + bytes) of the values to `out`, wherever they are, after waiting for
 * `event`. Fails with SHUF_INVALID (outside the values) or SHUF_DEVICE. */
SHUF_API shuf_status shuf_lease_read(shuf *handle, const shuf_lease *lease, uint64_t offset,
                                     size_t bytes, void *out);

/* Has a result made ready for a lease that will be taken with the same `what` and options, and
 * returns at once. It stays until this handle has taken that lease, asked for SHUF_PREFETCHES
 * others, or is closed. Fails as shuf_lease_take() does. */
enum { SHUF_PREFETCHES = 4 };
SHUF_API shuf_status shuf_prefetch(shuf *handle, const shuf_permutation *what,
                                   const shuf_lease_options *options);

/* The same two of numbers. A lease of the one may be given for *lease of the other. */
SHUF_API shuf_status shuf_draw_lease(shuf *handle, const shuf_numbers *what,
                                     const shuf_lease_options *options, shuf_lease **lease);
SHUF_API shuf_status shuf_draw_prefetch(shuf *handle, const shuf_numbers *what,
                                        const shuf_lease_options *options);

/* Takes memory for this process to fill: `bytes` bytes, at least 1, all zeros and nobody else's,
 * for as long as the lease is held. options and *lease are as in shuf_lease_take(); options->event
 * is not looked at. Where it is mapped it is written to by lease->buffer (with device memory, a
 * CUdeviceptr), or by shuf_lease_write(); by SHUF_INLINE alone lease->buffer and lease->data are
 * NULL, and shuf_lease_write() is the only way. With options NULL it is host memory.
 *
 * A fork()ed child shares the memory for as long as it has it mapped. A daemon that is lost leaves
 * the memory as it is, but can do nothing more with it: what is asked of it then is
 * SHUF_NO_DAEMON. Fails as shuf_lease_take() does. */
SHUF_API shuf_status shuf_buffer_take(shuf *handle, uint64_t bytes,
                                      const shuf_lease_options *options, shuf_lease **lease);

/* Copies `bytes` bytes to [offset, offset + bytes) of a buffer, wherever it is. Fails with
 * SHUF_INVALID (no buffer, or outside it), SHUF_DEVICE, or as shuf_permute(), but that a lost
 * daemon is SHUF_NO_DAEMON. */
SHUF_API shuf_status shuf_lease_write(shuf *handle, const shuf_lease *lease, uint64_t offset,
                                      size_t bytes, const void *in);

/* Takes a lease of what->n records, shuffled, of the first what->n * what->record bytes of `input`:
 * a buffer, which may be written to again when this returns (with options->event: when the event
 * has come), or any other lease of this handle but one by SHUF_INLINE. The input is not changed.
 * options and *lease are as in shuf_lease_take(), but that the transports must have one for the
 * side that the input is on, the host's or the device's (SHUF_INLINE is for either), and that
 * *lease is not the input. It is shared with nobody: asked for again it is computed again. Fails as
 * shuf_lease_take() does, with SHUF_INVALID also where the records are not within the input; a lost
 * daemon is SHUF_NO_DAEMON, as the input is lost with it. */
SHUF_API shuf_status shuf_shuffle_lease(shuf *handle, const shuf_records *what,
                                        const shuf_lease *input, const shuf_lease_options *options,
                                        shuf_lease **lease);

/* One lease, as the daemon tells of it. */
typedef struct shuf_lease_entry {
    uint64_t id, pid;
    uint32_t uid;
    shuf_transport transport; /* 0: one that this library does not know */
    bool prefetch;            /* nobody's view yet */
    bool ready;               /* its values are there */
    uint64_t age_ms;
    uint64_t block, block_bytes; /* the memory's id and size */
    uint64_t seed;
    uint64_t rows, count;
    char algorithm[32]; /* of a permutation or a shuffle, as n and epoch are; else "" */
    uint64_t n, epoch;
    shuf_distribution distribution; /* of numbers, as what follows is; else 0 */
    shuf_method method;
    uint64_t stream, offset;
    shuf_dtype dtype;
    double mean, std;
    uint64_t record; /* of a shuffle, as `inverse` is; else 0 */
    bool inverse;
    bool buffer; /* of shuf_buffer_take(): `count` bytes */
} shuf_lease_entry;

/* Calls `visit` for each lease by id: those of this user, or everybody's for root and for the
 * daemon's user. Returning false stops it (SHUF_CANCELLED). `visit` must not use the handle. */
typedef bool (*shuf_lease_visitor)(void *context, const shuf_lease_entry *entry);
SHUF_API shuf_status shuf_leases(shuf *handle, shuf_lease_visitor visit, void *context);

/* ---- The daemon ------------------------------------------------------- */

/* What one user has of a daemon. */
typedef struct shuf_user {
    uint32_t uid;
    uint64_t clients, leases;
    uint64_t blocks, bytes;
} shuf_user;

enum { SHUF_USERS = 32 };

typedef struct shuf_daemon {
    char version[32];   /* "shufd 0.1.0" */
    char backend[16];   /* "cpu", "cuda" */
    char device[128];   /* for people */
    char device_id[64]; /* a GPU's UUID, or the CPU's instruction set */
    uint64_t pid;
    uint64_t uptime_ms;
    uint64_t clients;             /* connections, this one included */
    uint64_t queued, queue_limit; /* jobs waiting or running */
    uint64_t served;              /* permutations, streams and shuffles answered since the start */
    uint64_t memory_used, memory_limit; /* bytes of blocks, where the backend computes */
    uint64_t host_used, host_limit;     /* of host memory; on the CPU backend the same */
    uint64_t blocks;                    /* allocations */
    uint64_t buffers;                   /* of these: those that clients fill */
    uint64_t idle;         /* bytes of blocks with results that nobody refers to any more */
    uint64_t pending_free; /* of the blocks: unused, but still mapped by a process */
    uint64_t leases;
    uint64_t hits;     /* requests answered from a result that was there */
    uint64_t joined;   /* requests that waited for a result that was being computed */
    uint64_t computed; /* results computed */
    uint64_t evicted;  /* results given up for the sake of others */
    unsigned users;    /* how many of `user` are set; those with most bytes first; of more, some */
    shuf_user user[SHUF_USERS];
} shuf_daemon;

SHUF_API shuf_status shuf_daemon_status(shuf *handle, shuf_daemon *daemon);

/* The library's version, "0.1.0". Static storage. */
SHUF_API const char *shuf_version(void);

#ifdef __cplusplus
}
#endif

#endif
