/* SPDX-License-Identifier: MIT
 *
 * libshuf: permutations, shuffles and random numbers from a running shufd.
 *
 * A result is a pure function of its request. For example, a permutation depends only on its
 * algorithm, n, seed, epoch, chunk and window. Equal requests give the same bits on every machine,
 * backend and release. A call that loses its daemon sends the same request to the next daemon and
 * continues at the first missing byte.
 *
 * The simplest use copies an epoch's permutation to the caller's memory:
 *
 *     shuf *daemon;
 *     uint32_t order[1000];
 *     shuf_request request = {.permutation = {.n = 1000, .seed = 7, .epoch = 3}};
 *     if (shuf_connect(&daemon, NULL) != SHUF_OK ||
 *         shuf_copy(daemon, &request, order, sizeof order, NULL) != SHUF_OK)
 *         fprintf(stderr, "%s\n", shuf_message(daemon));
 *     shuf_close(daemon);
 *
 * Threads: one thread at a time may use a handle; different threads may use different handles at
 * the same time. If another thread uses the handle, a call fails with SHUF_INVALID in most cases,
 * and shuf_close() does nothing. No thread may use a handle while another one closes it. No
 * function here starts a thread, installs a signal handler or raises SIGPIPE.
 *
 * Processes: only the process that connected a handle may use it. After fork() the child has to
 * connect again. In the child, calls with the parent's handle fail with SHUF_INVALID, except
 * shuf_message(), shuf_socket() and shuf_set_*(). In the child, shuf_close() and
 * shuf_lease_release() free only the child's memory. The parent's connection and leases stay.
 *
 * Callbacks: a sink, an observer or a visitor must not use the handle of the call that runs it. A
 * call with this handle fails with SHUF_INVALID inside the callback, and shuf_close() does nothing.
 * The outer call continues. A callback must return: a C++ exception or longjmp() out of it leaves
 * the handle unusable.
 *
 * Errors: a function returns a status (shuf_status.h); SHUF_OK is 0. shuf_message() returns one
 * line that names the field, its value and the expected value. If a required pointer is NULL, the
 * status is SHUF_INVALID.
 */
#ifndef SHUF_H
#define SHUF_H

#include "shuf_chunks.h"
#include "shuf_daemon.h"
#include "shuf_handle.h"
#include "shuf_local.h"
#include "shuf_mixture.h"
#include "shuf_request.h"
#include "shuf_status.h"
#include "shuf_weights.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Connection ---- */

/* Connects to the daemon at `socket`. NULL or "" means $SHUFD_SOCKET. If that is not set, it means
 * the first of these sockets that exists:
 * - /run/shufd/GPU-<uuid>.sock of this thread's GPU: the GPU of the current CUDA context, or else
 *   the first one in CUDA_VISIBLE_DEVICES (a UUID; an index only with
 *   CUDA_DEVICE_ORDER=PCI_BUS_ID, or if there is one GPU). The call neither loads nor initialises
 *   CUDA;
 * - /run/shufd/shufd.sock as root; for other users $XDG_RUNTIME_DIR/shufd.sock, then
 *   /run/shufd/shufd.sock;
 * - the only socket /run/shufd/GPU-<uuid>.sock, if neither the context nor the variable names a
 *   GPU.
 *
 * Sets *handle also on failure (NULL only when out of memory), so that shuf_message() can return
 * the error. The caller always frees it with shuf_close(). The calls of a handle without a daemon
 * try to connect again (shuf_set_reconnect()). Fails with SHUF_INVALID (the path is too long for a
 * socket), SHUF_NO_DAEMON, SHUF_DENIED, SHUF_VERSION, SHUF_BUSY, SHUF_NO_MEMORY, SHUF_PROTOCOL,
 * SHUF_TIMEOUT (no reply to the handshake in 10 s), SHUF_CANCELLED (shuf_set_interrupt()) or
 * SHUF_IO. Asks a new socket that denies this user again for up to 2 s, because a service manager
 * first makes the socket and then gives it to its group. Greets up to 4 times if this process gets
 * no processor in time. */
SHUF_API shuf_status shuf_connect(shuf **handle, const char *socket);

/* As shuf_connect(), but sets the timeout of shuf_set_timeout() from the start. If the daemon
 * hangs, it fails after `milliseconds`, or after 10 s if that is less. 0: no timeout. If a daemon
 * takes the connection but ends before it answers, both functions wait for the next one, as
 * shuf_set_reconnect() describes. They fail with SHUF_PROTOCOL if 16 connections in a row end
 * like this: another program probably has the socket. */
SHUF_API shuf_status shuf_connect_within(shuf **handle, const char *socket, unsigned milliseconds);

/* Disconnects and frees the handle and its leases: their values are unmapped. NULL is allowed. */
SHUF_API void shuf_close(shuf *handle);

/* Ends the call that another thread makes with the handle, and all later ones: they fail with
 * SHUF_CANCELLED. The connection closes, so the daemon ends the work and the leases; their values
 * stay mapped until shuf_close(). Any thread may call it, but no signal handler, and not while
 * another thread closes the handle. NULL is allowed. */
SHUF_API void shuf_cancel(shuf *handle);

/* One line that explains the last failure of this handle; "" after a success. Valid until the next
 * call with the handle. For NULL it returns the message of this thread's last call without a
 * handle, such as shuf_shape_of() or a call whose handle is NULL. */
SHUF_API const char *shuf_message(const shuf *handle);

/* The path of the socket; "" when it was too long, or for NULL. Valid until shuf_close(). */
SHUF_API const char *shuf_socket(const shuf *handle);

/* Sets the reconnect time in milliseconds: 10 000 by default; 0: no retry. A call that loses its
 * daemon tries for this time to reach the next one, and then fails with SHUF_NO_DAEMON. After such
 * a failure, later calls try to connect once and fail at once, until a daemon answers or this
 * function is called again. A call that loses 16 daemons one after another without a new byte fails
 * too. A result in parts also waits for this time if other results fill the daemon's memory; then
 * the call fails with SHUF_BUSY. */
SHUF_API shuf_status shuf_set_reconnect(shuf *handle, unsigned milliseconds);

/* Sets the longest wait for a daemon that takes and sends nothing, in milliseconds. The default is
 * 0: no limit, because a computation may take long. Only the handshake always has a limit. The
 * timeout holds for each wait of a call: to connect, to send, for the reply, for the next bytes of
 * the values, for the next daemon. After the timeout the call fails with SHUF_TIMEOUT and closes
 * the connection. This ends all leases of the handle, as if the daemon were lost: their values stay
 * mapped and readable until shuf_lease_release() or shuf_close(). The next call connects again. */
SHUF_API shuf_status shuf_set_timeout(shuf *handle, unsigned milliseconds);

/* Sets the most device memory, in bytes, that stays mapped in this process after its leases have
 * ended. With the default, 0, at most 160 MiB stay, of blocks up to 4 MiB. With another number,
 * blocks of any size stay, up to this number of bytes, but at least up to 160 MiB. A loop over
 * large results then maps each block once: the daemon uses two blocks in turn, if both fit its
 * `device_cache`. The time to map a block grows with its size, and with the number of processes
 * that map at the same time.
 *
 * The daemon cannot free memory that stays mapped. If it needs the memory, the handle unmaps all of
 * it at the end of its next call. A program that makes no further call for a while should set 0. A
 * number below the one before unmaps all idle device memory at once, and tells the daemon. If this
 * message fails, the memory is unmapped all the same, and the error is as of any call. */
SHUF_API shuf_status shuf_set_idle_mappings(shuf *handle, uint64_t bytes);

/* ---- Results ---- */

/* These functions take a request of any kind (shuf_request.h):
 *
 *     double noise[1000];
 *     shuf_request request = {SHUF_NUMBERS, .numbers = {.distribution = SHUF_GAUSS, .seed = 7,
 *                                                       .count = 1000, .std = 1}};
 *     shuf_copy(daemon, &request, noise, sizeof noise, NULL);
 *
 * The inline C functions of shuf/primefold.h, shuf/gauss.h, shuf/box_muller.h, shuf/uniform.h,
 * shuf/exponential.h, shuf/bernoulli.h and shuf/integers.h compute the same values without a
 * daemon; thread-safe. */

/* Computes the shape of the result. Uses no daemon and no handle; thread-safe. On failure it writes
 * the message to `message` (may be NULL), truncated to `size` bytes; shuf_message(NULL) returns it
 * too. Fails with SHUF_INVALID, or with SHUF_NO_MEMORY for 2^63 bytes or more. */
SHUF_API shuf_status shuf_shape_of(const shuf_request *request, shuf_shape *shape, char *message,
                                   size_t size);

/* Writes the values, row-major in the host's byte order, to `out`, which has `bytes` bytes, at
 * least those of the shape. `result` may be NULL. On failure the contents of `out` are undefined.
 * Permutations and numbers that are larger than the daemon's memory are fetched in parts. Not for a
 * BUFFER. Fails with SHUF_INVALID, SHUF_NO_MEMORY, SHUF_BUSY, SHUF_DEVICE, or as shuf_connect(). */
SHUF_API shuf_status shuf_copy(shuf *handle, const shuf_request *request, void *out, size_t bytes,
                               shuf_result *result);

/* Receives the next `size` bytes of a result, in order, each byte once. They are whole values,
 * aligned for their type; from shuf_shuffle_each() they are whole records. `bytes` is valid during
 * the call. Return false to stop the transfer: the call fails with SHUF_CANCELLED. If at most 64
 * MiB are left, the call receives and ignores them, for a second at most. Otherwise it closes the
 * connection, and the next call connects again. This ends all leases, buffers and prefetches of
 * the handle, as a timeout does (shuf_set_timeout()). */
typedef bool (*shuf_sink)(void *context, const void *bytes, size_t size);

/* As shuf_copy(), but passes the values to `sink` in chunks of whole values, at most 256 KiB. Fails
 * also with SHUF_CANCELLED when the sink returned false.
 * `sink` NULL: the daemon only computes the values and keeps them in its cache for the next
 * request. */
SHUF_API shuf_status shuf_each(shuf *handle, const shuf_request *request, shuf_sink sink,
                               void *context, shuf_result *result);

/* Computes the result in the daemon and returns only *result, for a permutation or numbers with the
 * fingerprint. Fails as shuf_copy(). */
SHUF_API shuf_status shuf_summarize(shuf *handle, const shuf_request *request, shuf_result *result);

/* ---- Records ---- */

/* Shuffles n * record bytes from `in` to `out`. Both have `bytes` bytes, at least n * record, and
 * must not overlap. `result` may be NULL; it has a shape of n values of `record` bytes, and no
 * first and last values or fingerprint.
 *
 *     float x[1000][3], y[1000][3];
 *     shuf_records request = {.n = 1000, .record = sizeof *x, .seed = 7, .epoch = 3};
 *     shuf_shuffle(daemon, &request, x, y, sizeof x, NULL);
 *
 * During the call, the daemon needs twice as many bytes of host memory, for the input and the
 * result. If it has no room for both, it computes only the permutation, and the call moves the
 * records itself. To shuffle the same records repeatedly, fill a buffer once and take a
 * lease of its shuffle (SHUF_RECORDS), which is faster. After the loss of a daemon the call sends
 * `in` to the next one. Fails as shuf_copy(). */
SHUF_API shuf_status shuf_shuffle(shuf *handle, const shuf_records *records, const void *in,
                                  void *out, size_t bytes, shuf_result *result);

/* Passes the shuffled records to `sink` in order, in chunks of whole records: of 1 MiB at most, or
 * of one larger record. `in` has `bytes` bytes, at least n * record; it may be a mapped file that
 * is larger than all memory. The daemon computes only the permutation, and the call moves the
 * records. Not with `inverse`. Fails as shuf_each(). */
SHUF_API shuf_status shuf_shuffle_each(shuf *handle, const shuf_records *records, const void *in,
                                       size_t bytes, shuf_sink sink, void *context,
                                       shuf_result *result);

/* ---- Single places ---- */

/* Looks up `count` positions or values of the whole permutation. With primefold
 * the cost of a look-up hardly depends on n above 256; below, it takes n - 1 exchanges. With
 * philox24 and lcg, the first look-up makes the daemon count the values before a position; it keeps
 * the counts. `at` and `out` have `count` numbers. Each at[i] must be below n. The numbers may have
 * any order and may repeat. `out` may be the same array as `at`, but must not overlap it otherwise.
 * On failure the contents of `out` are undefined. A `count` of 0 sends no request; a `count` above
 * SHUF_LOOKUPS is split into several requests with the same algorithm. Only algorithm, n, seed,
 * key, epoch, chunk and window of the permutation may be set. Fails with SHUF_INVALID for a view, a
 * dtype, epochs > 1 or a fingerprint, and for an at[i] out of range (then it sends no request).
 * With philox24 or lcg it also fails with SHUF_INVALID for an n above 2^36 that is not a power of
 * two. Fails also as shuf_connect(), and with SHUF_BUSY or SHUF_NO_MEMORY. The inline C functions
 * of shuf/primefold.h compute the same values without a daemon; thread-safe. */
enum { SHUF_LOOKUPS = 8000 };
SHUF_API shuf_status shuf_index(shuf *handle, const shuf_permutation *permutation,
                                shuf_direction direction, const uint64_t *at, size_t count,
                                uint64_t *out);

/* ---- Leases ---- */

/* How the values of a result reach this process. Each transport is a bit, so a set is SHUF_MEMFD |
 * SHUF_INLINE. */
typedef enum shuf_transport {
    SHUF_INLINE = 1,   /* a copy in this process's own memory */
    SHUF_MEMFD = 2,    /* the daemon's host memory, mapped read-only */
    SHUF_CUDA_FD = 4,  /* the daemon's device memory, mapped read-only */
    SHUF_CUDA_IPC = 8, /* the daemon's device memory, writable; only of a daemon of the same user */
} shuf_transport;

/* "inline", "memfd", "cuda-fd", "cuda-ipc"; "none" for anything else. Static storage. */
SHUF_API const char *shuf_transport_name(shuf_transport transport);

/* A lease of a result in the daemon's memory, and the mapping of this memory in this process. Equal
 * requests of one user share a result, so no process may write to it. A process may write only to
 * its buffers (SHUF_BUFFER); every transport maps these writable. The fields are read-only.
 *
 * `data` has result.shape.bytes bytes, row-major; NULL if this is 0, and for a buffer by INLINE. If
 * device_id is "", `data` is in host memory. Otherwise it is a CUdeviceptr in the memory of this
 * GPU. The pointer is valid in the context that was current when the lease was taken, if that is a
 * context of this GPU; otherwise in the primary context of this GPU.
 *
 * The values do not change until shuf_lease_release(), even if the daemon dies. A child after
 * fork() may read host memory by `data` while its parent holds the lease, but not device memory. */
typedef struct shuf_lease {
    const void *data;
    shuf_result result; /* of a mapped result, first and last only with fingerprint or moments */
    shuf_transport transport;
    char device_id[64]; /* "GPU-<uuid>", or "" for host memory */
    bool shared;        /* cached, or computed for another request too */
    void *event;        /* a CUevent: wait for it before reading; NULL: the values are ready */
    uint64_t id;        /* as in shuf_leases(); 0 for a result by INLINE: a copy, not leased */
    uint64_t block, block_bytes; /* the memory that holds the values; 0 for a result by INLINE.
                                  * Leases with equal block share one copy, in all processes. */
    void *buffer;                /* a buffer: `data`, writable; else NULL */
} shuf_lease;

typedef struct shuf_lease_options {
    /* The accepted transports, as in SHUF_CUDA_FD | SHUF_MEMFD. The daemon selects the one that
     * needs the least copying. 0: SHUF_MEMFD | SHUF_INLINE, so `data` is host memory. */
    unsigned transports;
    /* CUDA_IPC: return before the values are computed; wait for `event` of the lease. */
    bool event;
} shuf_lease_options;

/* Takes a lease of a result of any kind; the caller gives it back with shuf_lease_release().
 * options NULL: all fields 0.
 *
 * *lease must be NULL or a lease of this handle: the call gives this old lease back in the same
 * round trip, even if it fails. After a failure *lease is NULL. It stays unchanged only if an
 * argument is NULL, if *lease is a lease of another handle, or if it is the input of
 * this request.
 *
 * The first mapping of device memory loads libcuda.so.1. Fails as shuf_copy(), and with
 * SHUF_INVALID (an unknown transport, or none that the daemon has), SHUF_DENIED (the transport is
 * forbidden for this process: CUDA_IPC across users or PID namespaces) or SHUF_DEVICE (no libcuda,
 * the GPU is not visible to this process, or an error of CUDA). */
SHUF_API shuf_status shuf_lease_take(shuf *handle, const shuf_request *request,
                                     const shuf_lease_options *options, shuf_lease **lease);

/* Gives the lease back, frees it and sets *lease to NULL. The call fails if the daemon does not
 * know the lease, or if the timeout is over. Even then it frees the lease. The program must not
 * read the values any more: the library may unmap them, and the daemon may overwrite them. The
 * library keeps the mappings of blocks of at most 4 MiB for later leases: at most 16 MiB of host
 * memory and 160 MiB of device memory, or as much device memory as shuf_set_idle_mappings() sets.
 * The daemon cannot use this memory for other results. If the
 * daemon is short of memory, the next call unmaps all of it. `lease` and *lease may be NULL. If the
 * daemon is lost, the call still succeeds. A copy of the pointer is invalid afterwards: calls
 * refuse it with SHUF_INVALID, until a newer lease has the same address. */
SHUF_API shuf_status shuf_lease_release(shuf *handle, shuf_lease **lease);

/* Waits for `event`, then copies the bytes [offset, offset + bytes) of the values, in host or
 * device memory, to `out`. Fails with SHUF_DEVICE, or with SHUF_INVALID if the bytes are outside
 * the values, or if this process cannot read them (a buffer with the transport SHUF_INLINE). */
SHUF_API shuf_status shuf_lease_read(shuf *handle, const shuf_lease *lease, uint64_t offset,
                                     size_t bytes, void *out);

/* Starts the computation of a PERMUTATION, NUMBERS or RANKS for a later shuf_lease_take() with the
 * same request and options, and returns without waiting. The daemon keeps the result until this
 * handle takes the lease, prefetches SHUF_PREFETCHES others (the oldest prefetch ends), calls
 * shuf_drop(), or closes. A prefetch may have no effect, because the daemon looks for memory only
 * when the computation begins. If it then finds none, shuf_lease_take() computes the result, or
 * fails. Fails as shuf_lease_take(). */
enum { SHUF_PREFETCHES = 4 };
SHUF_API shuf_status shuf_prefetch(shuf *handle, const shuf_request *request,
                                   const shuf_lease_options *options);

/* A lease of a BUFFER has `bytes` bytes, zeroed and private to this process until the release. The
 * program fills a mapped buffer through lease->buffer (a CUdeviceptr in device memory) or by
 * shuf_lease_write(). If lease->transport is SHUF_INLINE, lease->buffer and lease->data are NULL,
 * and only shuf_lease_write() can fill the buffer. The daemon selects SHUF_INLINE if no other
 * transport is accepted, or if its kernel cannot lend host memory. If options is NULL, the buffer
 * is in host memory; options->event is ignored. A child after fork() shares the mapped memory. If
 * its daemon is lost, a mapped buffer remains readable and writable, but requests that use the
 * buffer fail with SHUF_NO_DAEMON.
 *
 * A lease of RECORDS has a shuffled copy of the first n * record bytes of its input. The input does
 * not change. The program may write to a buffer again when the call has returned; with
 * options->event, after the event. The transports must include one for the memory of the input,
 * host or device; SHUF_INLINE fits both. The result is not shared: an equal request computes it
 * again. The call fails with SHUF_INVALID if the records exceed the input. If the daemon of the
 * input is lost, it always fails with SHUF_NO_DAEMON. */

/* Copies `bytes` bytes to [offset, offset + bytes) of a buffer, in host or device memory. Fails
 * with SHUF_INVALID (not a buffer, or bytes outside it), SHUF_DEVICE, or as shuf_copy(). If the
 * daemon of the buffer is lost, the call still writes to a mapped buffer, but fails with
 * SHUF_NO_DAEMON for a buffer with the transport SHUF_INLINE. */
SHUF_API shuf_status shuf_lease_write(shuf *handle, const shuf_lease *lease, uint64_t offset,
                                      size_t bytes, const void *in);

/* One lease in the daemon's list. */
typedef struct shuf_lease_entry {
    uint64_t id, pid;
    uint32_t uid;
    shuf_transport transport; /* 0: unknown to this library */
    bool prefetch;            /* not taken yet */
    bool ready;               /* the values are computed */
    uint64_t age_ms;
    uint64_t block, block_bytes; /* id and size of the memory */
    uint64_t rows, count;
    /* Without `fingerprint`, `moments`, the input of records, and the sizes of ranks. A shard is a
     * slice. The strings are valid until the visitor returns; NULL: not named. SHUF_OTHER_KIND:
     * this library does not know the kind. */
    shuf_request request;
} shuf_lease_entry;

/* Calls `visit` for each lease of this user, or of all users for root and the daemon's user, the
 * oldest first. `entry` is valid until `visit` returns. `visit` returns false to stop the listing;
 * shuf_leases() then fails with SHUF_CANCELLED. Fails also as shuf_connect(). */
typedef bool (*shuf_lease_visitor)(void *context, const shuf_lease_entry *entry);
SHUF_API shuf_status shuf_leases(shuf *handle, shuf_lease_visitor visit, void *context);

/* ---- The library ---- */

/* The library's version, "0.1.0". Static storage. */
SHUF_API const char *shuf_version(void);

#ifdef __cplusplus
}
#endif

#endif
