/* SPDX-License-Identifier: MIT
 *
 * The C part of the Python package: connections that threads share, results in this process, the
 * functions of NumPy's interface for bit generators, and DLPack.
 */
#ifndef SHUFPY_SHIM_H
#define SHUFPY_SHIM_H

#include <shuf.h>
#include <shuf/uniform.h>

/* ---- Connections ---- */

/* A handle of libshuf that several threads may use. A function that returns an int returns SHUF_OK,
 * another status or SHUFPY_CLOSED; one that returns a pointer returns NULL on failure. The status
 * and the message of the failure stay until the next failure in the same thread. */
typedef struct shufpy_connection shufpy_connection;

#define SHUFPY_CLOSED -1 /* a call after shufpy_close() */

int shufpy_status(void);
const char *shufpy_message(void);

/* From now on a call that waits runs the signal handlers of Python. If one raises an exception, the
 * call ends and fails. */
void shufpy_watch_signals(void);

/* NULL: out of memory. It has to connect once, before all other calls except the last one. */
shufpy_connection *shufpy_new(void);
int shufpy_connect(shufpy_connection *connection, const char *socket, unsigned reconnect_ms);
const char *shufpy_socket(const shufpy_connection *connection);

/* Calls fail from now on. The handle closes when its last lease has ended. */
void shufpy_close(shufpy_connection *connection);

/* Ends the call of another thread, and the daemon's work for it. Then shufpy_close(). */
void shufpy_cancel(shufpy_connection *connection);

/* shufpy_close(), and frees the connection with its last lease. It may be one that never connected.
 */
void shufpy_disconnect(shufpy_connection *connection);

int shufpy_set_idle_mappings(shufpy_connection *connection, uint64_t bytes);
int shufpy_summarize(shufpy_connection *connection, const shuf_request *request,
                     shuf_result *result);
int shufpy_prefetch(shufpy_connection *connection, const shuf_request *request,
                    const shuf_lease_options *options);
int shufpy_index(shufpy_connection *connection, const shuf_permutation *permutation, int direction,
                 const uint64_t *at, size_t count, uint64_t *out);
int shufpy_daemon_status(shufpy_connection *connection, shuf_daemon *daemon);
int shufpy_drop(shufpy_connection *connection, int owner, shuf_dropped *dropped);
int shufpy_leases(shufpy_connection *connection, shuf_lease_visitor visit, void *context);

/* A lease that any thread may end. The connection lives at least as long. */
typedef struct shufpy_lease {
    shuf_lease *lease;
    shufpy_connection *connection;
    struct shufpy_lease *next; /* of those that have ended */
    const void *data;
    uint64_t bytes;
    int dtype;
} shufpy_lease;

/* `data` is unused: cffi passes it. */
void shufpy_end(shufpy_lease *lease, const void *data);

shufpy_lease *shufpy_take(shufpy_connection *connection, const shuf_request *request,
                          const shuf_lease_options *options);

/* A whole permutation by the default algorithm, in host memory. */
shufpy_lease *shufpy_take_whole(shufpy_connection *connection, uint64_t n, uint64_t seed,
                                uint64_t epoch);

/* Fills the first bytes of a buffer that the daemon could not lend. */
int shufpy_write(shufpy_connection *connection, const shufpy_lease *buffer, size_t bytes,
                 const void *in);

/* ---- Results in this process ---- */

/* The functions of shuf_local.h, with the failures of the functions above. Addresses and streams
 * are integers, because cffi passes them in less time than pointers. */
int shufpy_host_fill(const shuf_request *request, unsigned threads, uintptr_t out, size_t bytes);
int shufpy_host_shuffle(const shuf_records *records, unsigned threads, uintptr_t in, uintptr_t out,
                        size_t bytes);
int shufpy_host_fingerprint(uintptr_t values, unsigned width, uint64_t count, unsigned threads,
                            uint64_t *fingerprint);
int shufpy_cuda_workspace(const shuf_request *request, size_t *bytes);
int shufpy_cuda_fill(const shuf_request *request, uintptr_t out, size_t bytes, uintptr_t workspace,
                     size_t workspace_bytes, uintptr_t stream);
int shufpy_cuda_shuffle(const shuf_records *records, uintptr_t in, uintptr_t out, size_t bytes,
                        uintptr_t workspace, size_t workspace_bytes, uintptr_t stream);
int shufpy_cuda_fingerprint(uintptr_t values, unsigned width, uint64_t count, uintptr_t fingerprint,
                            uintptr_t stream);

/* The same without a request, for short calls: Python needs a microsecond to make one. Slices and
 * look-ups are of permutations by primefold. */
int shufpy_host_slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t chunk, uint64_t window,
                      uint64_t offset, uint64_t count, uint64_t stride, int dtype, unsigned threads,
                      uintptr_t out, size_t bytes);
int shufpy_cuda_slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t offset, uint64_t count,
                      uint64_t stride, int dtype, uintptr_t stream, uintptr_t out, size_t bytes);
int shufpy_host_index(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t chunk, uint64_t window,
                      bool inverse, unsigned threads, uintptr_t at, size_t count, uintptr_t out);
int shufpy_cuda_index(uint64_t n, uint64_t seed, uint64_t epoch, bool inverse, int dtype,
                      uintptr_t stream, uintptr_t at, size_t count, uintptr_t out);
int shufpy_host_numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                        uint64_t count, double mean, double std, uint64_t bound, int dtype,
                        int method, unsigned threads, uintptr_t out, size_t bytes);
int shufpy_cuda_numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                        uint64_t count, double mean, double std, uint64_t bound, int dtype,
                        int method, uintptr_t cuda_stream, uintptr_t out, size_t bytes);

/* Mixtures (shuf_mixture.h). Each array has an element for each source; `weights` has a row for
 * each stage. */
int shufpy_mixture_make(uint64_t seed, uint64_t block, size_t sources, const uint64_t *records,
                        const uint64_t *epochs, const uint64_t *chunks, const uint64_t *windows,
                        size_t stages, const uint64_t *firsts, const uint64_t *weights,
                        shuf_mixture **mixture);
int shufpy_mixture_fill(shuf_mixture *mixture, uint64_t first, size_t count, uint64_t stride,
                        unsigned threads, uintptr_t index, uintptr_t source, uintptr_t epoch,
                        uintptr_t record);
int shufpy_mixture_positions(const shuf_mixture *mixture, size_t count, uintptr_t source,
                             uintptr_t epoch, uintptr_t record, uintptr_t positions);
int shufpy_mixture_counts(const shuf_mixture *mixture, uint64_t position, uintptr_t counts);
int shufpy_mixture_exhausted(const shuf_mixture *mixture, uintptr_t positions);

/* Windowed orders over unequal chunks (shuf_chunks.h). */
int shufpy_chunks_make(uint64_t seed, uint64_t epoch, uintptr_t sizes, size_t count,
                       uint64_t window, shuf_chunks **chunks);
int shufpy_chunks_fill(const shuf_chunks *chunks, uint64_t first, size_t count, uint64_t stride,
                       unsigned threads, int dtype, uintptr_t out);
int shufpy_chunks_index(const shuf_chunks *chunks, bool inverse, unsigned threads, uintptr_t at,
                        size_t count, uintptr_t out);
int shufpy_chunks_needed(const shuf_chunks *chunks, uint64_t first, size_t count, uint64_t stride,
                         uintptr_t numbers, size_t *found);

/* ---- Results for XLA ---- */

/* The version of the foreign function interface that XLA has, for the registration of the handlers.
 * False: they do not know its structures. */
bool shufpy_xla_set_version(int major, int minor);

/* Handlers for the platforms cpu and CUDA (xla.c): they take XLA's call frame, and return its
 * error. */
void *shufpy_xla_fill_host(void *frame);
void *shufpy_xla_fill_cuda(void *frame);

/* Weighted draws (shuf_weights.h). */
int shufpy_weights_make(uintptr_t values, int dtype, uint64_t count, shuf_weights **weights);
int shufpy_weights_draw(const shuf_weights *weights, uint64_t seed, uint64_t epoch, uint64_t first,
                        size_t count, uint64_t stride, unsigned threads, uintptr_t out);
int shufpy_weights_sample(uintptr_t values, int dtype, uint64_t count, uint64_t seed,
                          uint64_t epoch, size_t sample, uintptr_t out);
int shufpy_cuda_weights_workspace(uint64_t count, size_t *bytes);
int shufpy_cuda_weights_make(uintptr_t values, int dtype, uint64_t count, uintptr_t table,
                             size_t table_bytes, uintptr_t workspace, size_t workspace_bytes,
                             uintptr_t stream);
int shufpy_cuda_weights_draw(uintptr_t table, uint64_t weights, uint64_t seed, uint64_t epoch,
                             uint64_t first, size_t count, uint64_t stride, uintptr_t out,
                             uintptr_t stream);
int shufpy_cuda_weights_sample_workspace(uint64_t count, size_t *bytes);
int shufpy_cuda_weights_sample(uintptr_t values, int dtype, uint64_t count, uint64_t seed,
                               uint64_t epoch, size_t sample, uintptr_t out, uintptr_t workspace,
                               size_t workspace_bytes, uintptr_t stream);

/* ---- Draws with replacement ---- */

/* Maps 64 random bits to [0, n): out[i] is the upper half of the 128-bit product bits[i] * n. */
void shufpy_scale(const uint64_t *bits, size_t count, uint64_t n, uint64_t *out);

/* ---- NumPy's bit generator ---- */

/* The use of the words that a generator takes. Only samplers use the last two. */
enum { SHUFPY_UNIFORM, SHUFPY_REPLACEMENT, SHUFPY_RECORD };

/* The place in a stream of uniform 64-bit values. The upper half of a value waits in `half` after
 * next_uint32 has returned the lower one. */
typedef struct shufpy_draw {
    shuf_stream stream;
    uint64_t seed, number, offset; /* of the next value */
    uint64_t pair;                 /* of the values in `word`; UINT64_MAX: none */
    uint64_t word[2];
    uint32_t half;
    bool has_half;
} shufpy_draw;

void shufpy_draw_make(shufpy_draw *draw, int source, uint64_t seed, uint64_t stream,
                      uint64_t offset);

/* Fills the bitgen_t of NumPy (numpy/random/bitgen.h) at `bitgen`. `draw` must outlive it. */
void shufpy_bitgen_fill(void *bitgen, shufpy_draw *draw);

/* ---- DLPack ---- */

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
