/* SPDX-License-Identifier: MIT
 *
 * libshuf: permutations from a running shufd
 * ==========================================
 *
 * An answer is a pure function of its request: the same algorithm, n, seed and
 * epoch give the same bits on every machine, backend and release. So a call that
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
 * Errors: a function returns a status (shuf_status.h), SHUF_OK being 0, and
 * leaves one line in the handle that names the field, its value and what was
 * expected: shuf_message().
 */
#ifndef SHUF_H
#define SHUF_H

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

/* Connects to the daemon at `socket`; NULL means the default: $SHUFD_SOCKET,
 * else /run/shufd/shufd.sock as root, else $XDG_RUNTIME_DIR/shufd.sock where
 * one stands, else /run/shufd/shufd.sock.
 *
 * *handle is set on failure too (NULL only when memory is out), so that
 * shuf_message() can tell why, and is always given back by shuf_close(). A
 * handle that found no daemon may be used: its next call tries again.
 * Fails with SHUF_INVALID (a path too long for a socket), SHUF_NO_DAEMON,
 * SHUF_DENIED, SHUF_VERSION, SHUF_BUSY, SHUF_NO_MEMORY, SHUF_PROTOCOL,
 * SHUF_TIMEOUT (no answer to the greeting in 10 s) or SHUF_IO. */
SHUF_API shuf_status shuf_connect(shuf **handle, const char *socket);

/* Disconnects and frees. NULL is allowed. */
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

/* Types of a value. SHUF_AUTO is the smaller of u32 and u64 that holds n - 1. */
typedef enum shuf_dtype {
    SHUF_AUTO = 0,
    SHUF_U32 = 1,
    SHUF_U64 = 2,
    SHUF_I64 = 3, /* what torch indexes with */
} shuf_dtype;

/* Which positions of the permutation are wanted. */
typedef enum shuf_view {
    SHUF_VIEW_ALL = 0,   /* 0 .. n - 1 */
    SHUF_VIEW_SLICE = 1, /* offset, offset + stride, ..., `count` of them */
    SHUF_VIEW_SHARD = 2, /* what DistributedSampler gives `rank` of `world` */
} shuf_view;

/* What is asked for. Zeros are the defaults, but for n. */
typedef struct shuf_permutation {
    const char *algorithm; /* "philox24", "lcg"; NULL: the daemon's default */
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
    bool fingerprint; /* also compute that of values that are sent; shuf_summarize() always does */
} shuf_permutation;

/* The result's form, which follows from the request alone. */
typedef struct shuf_shape {
    uint64_t rows;    /* epochs */
    uint64_t count;   /* values in a row */
    shuf_dtype dtype; /* never SHUF_AUTO */
    unsigned width;   /* bytes of a value: 4 or 8 */
    uint64_t bytes;   /* rows * count * width */
} shuf_shape;

enum { SHUF_EDGE = 4 };

/* What the daemon tells of a result. */
typedef struct shuf_result {
    shuf_shape shape;
    char algorithm[32];
    char backend[16];      /* "cpu", "cuda" */
    char device[128];      /* its name for people */
    uint64_t device_ns;    /* computing the values, on the device; nanoseconds */
    uint64_t fingerprint;  /* shuf/fingerprint.h; 0 unless asked for */
    unsigned heads, tails; /* how many of head and tail are set */
    uint64_t head[SHUF_EDGE], tail[SHUF_EDGE]; /* first and last values of the whole result */
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
 * it. The sink must not use the handle. */
SHUF_API shuf_status shuf_permute_stream(shuf *handle, const shuf_permutation *what, shuf_sink sink,
                                         void *context, shuf_result *result);

/* Has the permutation computed where the daemon is and returns only its
 * summary, with the fingerprint. */
SHUF_API shuf_status shuf_summarize(shuf *handle, const shuf_permutation *what,
                                    shuf_result *result);

/* ---- The daemon ------------------------------------------------------- */

typedef struct shuf_daemon {
    char version[32];   /* "shufd 0.1.0" */
    char backend[16];   /* "cpu", "cuda" */
    char device[128];   /* for people */
    char device_id[64]; /* a GPU's UUID, or the CPU's instruction set */
    uint64_t pid;
    uint64_t uptime_ms;
    uint64_t clients;                   /* connections, this one included */
    uint64_t queued, queue_limit;       /* jobs waiting or running */
    uint64_t served;                    /* permutations answered since the start */
    uint64_t memory_used, memory_limit; /* bytes of results */
} shuf_daemon;

SHUF_API shuf_status shuf_daemon_status(shuf *handle, shuf_daemon *daemon);

/* The library's version, "0.1.0". Static storage. */
SHUF_API const char *shuf_version(void);

#ifdef __cplusplus
}
#endif

#endif
