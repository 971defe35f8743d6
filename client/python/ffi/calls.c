/* SPDX-License-Identifier: MIT
 *
 * The calls of Python into libshuf, see shim.h: the message of a failure, and the signal handlers
 * of Python, which run while a call waits or computes; calls of a connection, and calls that
 * compute in this process.
 */
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- Failures, and signals during a call ---- */

enum {
    TEXT = 512, /* as libshuf's messages */
    ASK_MS = 100,
};

static _Thread_local struct {
    int status;
    char text[TEXT];
} last; /* the failure of this thread's last call */

static _Thread_local struct {
    bool is_running;   /* Python can raise the exception of a signal handler after this call */
    bool has_raised;   /* a signal handler has raised an exception */
    uint64_t asked_ms; /* the time when Python last ran its signal handlers */
} call;

int shufpy_status(void)
{
    return last.status;
}

const char *shufpy_message(void)
{
    return last.text;
}

/* Keeps the status and the message for shufpy_status() and shufpy_message() of this thread. Returns
 * the status. */
static int fail(int status, const char *text)
{
    last.status = status;
    snprintf(last.text, sizeof last.text, "%s", text);
    return status;
}

bool shufpy_run_signal_handlers(void); /* in _process.py */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* From here to end_interruptible(), Python's signal handlers run in this thread. Python has just
 * run them. */
static void begin_interruptible(void)
{
    call.is_running = true;
    call.has_raised = false;
    call.asked_ms = now_ms();
}

static void end_interruptible(void)
{
    call.is_running = false;
}

/* Python runs its handlers here, because the call may last for hours. libshuf asks often, but
 * Python needs its global lock to answer. So Python is asked only after a signal, and each ASK_MS.
 * The release of a lease by Python's garbage collection cannot raise an exception. So it ends, and
 * Python runs the handlers after it. */
static bool is_interrupted(void)
{
    const bool by_signal = errno == EINTR;
    if (!call.is_running)
        return by_signal;
    if (!by_signal && now_ms() - call.asked_ms < ASK_MS)
        return false;
    const bool has_raised = shufpy_run_signal_handlers();
    begin_interruptible(); /* a handler may have made another call */
    call.has_raised = has_raised;
    return has_raised;
}

void shufpy_watch_signals(void)
{
    shuf_set_interrupt(is_interrupted);
}

/* ---- The end of leases ---- */

/* libshuf allows one thread at a time on a handle, so each call takes the lock. Python may end a
 * lease in any thread, at any moment. So an ended lease waits in a list until the lock is free, and
 * the thread that releases the lock gives it back. One small lease waits for the next call, which
 * gives it back in the same round trip. */

enum { SMALL = 1 << 20 }; /* bytes of a lease that may wait for the next call */

struct shufpy_connection {
    shuf *handle;
    pthread_mutex_t lock;
    size_t leases;                 /* not given back; changed under the lock */
    _Atomic(shufpy_lease *) ended; /* removed from under the lock only */
    atomic_size_t references;      /* of Python's object, and of each lease that has not ended */
    atomic_bool is_closing;
};

/* Returns true if other leases were waiting. */
static bool push_ended(shufpy_connection *c, shufpy_lease *lease)
{
    lease->next = atomic_load(&c->ended);
    while (!atomic_compare_exchange_weak(&c->ended, &lease->next, lease))
        continue;
    return lease->next != NULL;
}

/* With the lock. Other threads only push, so `next` stays right while the lease is the first. */
static shufpy_lease *pop_ended(shufpy_connection *c)
{
    shufpy_lease *lease = atomic_load(&c->ended);
    while (lease && !atomic_compare_exchange_weak(&c->ended, &lease, lease->next))
        continue;
    c->leases -= lease != NULL;
    return lease;
}

static void release_ended(shufpy_connection *c)
{
    shufpy_lease *lease;
    while ((lease = pop_ended(c))) {
        shuf_lease_release(c->handle, &lease->lease);
        free(lease);
    }
}

static void close_handle(shufpy_connection *c)
{
    shuf_close(c->handle);
    c->handle = NULL;
}

/* Without the lock: gives back the leases that ended while a thread had it. */
static void drain(shufpy_connection *c)
{
    while ((atomic_load(&c->ended) || atomic_load(&c->is_closing)) &&
           pthread_mutex_trylock(&c->lock) == 0) {
        release_ended(c);
        if (atomic_load(&c->is_closing) && c->leases == 0 && c->handle)
            close_handle(c);
        pthread_mutex_unlock(&c->lock);
        if (!atomic_load(&c->ended))
            return;
    }
}

/* A child that was forked in the middle of another thread's call finds the lock taken, and the
 * handle in an unknown state. The connection then stays until the child ends. */
static void drop_reference(shufpy_connection *c)
{
    shufpy_lease *lease;
    if (atomic_fetch_sub(&c->references, 1) != 1 || pthread_mutex_trylock(&c->lock) != 0)
        return;
    if (c->handle)
        close_handle(c);
    while ((lease = pop_ended(c)))
        free(lease);
    pthread_mutex_unlock(&c->lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void shufpy_end(shufpy_lease *lease, const void *data)
{
    (void)data;
    shufpy_connection *c = lease->connection;
    const bool is_large = lease->bytes > SMALL;
    if (push_ended(c, lease) || is_large || atomic_load(&c->is_closing))
        drain(c);
    drop_reference(c);
}

/* ---- Connections ---- */

/* A lock that reports when its own thread takes it again. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

shufpy_connection *shufpy_new(void)
{
    shufpy_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    init_lock(&c->lock);
    atomic_store(&c->references, 1);
    return c;
}

int shufpy_connect(shufpy_connection *c, const char *socket, unsigned reconnect_ms)
{
    begin_interruptible();
    const shuf_status status = shuf_connect(&c->handle, socket);
    end_interruptible();
    if (status != SHUF_OK)
        return fail((int)status, shuf_message(c->handle));
    shuf_set_reconnect(c->handle, reconnect_ms);
    return SHUF_OK;
}

const char *shufpy_socket(const shufpy_connection *c)
{
    return shuf_socket(c->handle);
}

void shufpy_close(shufpy_connection *c)
{
    atomic_store(&c->is_closing, true);
    drain(c);
}

void shufpy_cancel(shufpy_connection *c)
{
    shuf_cancel(c->handle);
    shufpy_close(c);
}

void shufpy_disconnect(shufpy_connection *c)
{
    shufpy_close(c);
    drop_reference(c);
}

/* ---- Calls ---- */

/* Takes the lock. Fails after shufpy_close(), and in a signal handler that runs during a call with
 * the connection. */
static bool lock(shufpy_connection *c)
{
    if (pthread_mutex_lock(&c->lock) == EDEADLK) {
        fail(SHUF_BUSY, "client: this signal handler interrupts a call of the client; "
                        "expected another client, from shufd.connect()");
        return false;
    }
    if (!atomic_load(&c->is_closing)) {
        begin_interruptible();
        return true;
    }
    pthread_mutex_unlock(&c->lock);
    fail(SHUFPY_CLOSED, "client: it is closed; expected one that is open");
    return false;
}

static int unlock(shufpy_connection *c, int status)
{
    if (status != SHUF_OK)
        fail(status, shuf_message(c->handle));
    end_interruptible();
    pthread_mutex_unlock(&c->lock);
    if (atomic_load(&c->ended) || atomic_load(&c->is_closing))
        drain(c);
    return status;
}

static bool begin(shufpy_connection *c)
{
    if (!lock(c))
        return false;
    release_ended(c);
    if (!call.has_raised)
        return true;
    unlock(c, SHUF_CANCELLED);
    return false;
}

#define CALL(c, function, ...) \
    (begin(c) ? unlock(c, (int)function((c)->handle, __VA_ARGS__)) : SHUFPY_CLOSED)

int shufpy_set_idle_mappings(shufpy_connection *c, uint64_t bytes)
{
    return CALL(c, shuf_set_idle_mappings, bytes);
}

int shufpy_summarize(shufpy_connection *c, const shuf_request *request, shuf_result *result)
{
    return CALL(c, shuf_summarize, request, result);
}

int shufpy_prefetch(shufpy_connection *c, const shuf_request *request,
                    const shuf_lease_options *options)
{
    return CALL(c, shuf_prefetch, request, options);
}

int shufpy_index(shufpy_connection *c, const shuf_permutation *permutation, int direction,
                 const uint64_t *at, size_t count, uint64_t *out)
{
    return CALL(c, shuf_index, permutation, direction, at, count, out);
}

int shufpy_daemon_status(shufpy_connection *c, shuf_daemon *daemon)
{
    return CALL(c, shuf_daemon_status, daemon);
}

int shufpy_drop(shufpy_connection *c, int owner, shuf_dropped *dropped)
{
    return CALL(c, shuf_drop, owner, 0, dropped);
}

int shufpy_leases(shufpy_connection *c, shuf_lease_visitor visit, void *context)
{
    return CALL(c, shuf_leases, visit, context);
}

/* ---- Leases ---- */

/* Takes the lock. Returns an ended lease, which the next one replaces, or a new object. */
static shufpy_lease *begin_lease(shufpy_connection *c)
{
    if (!lock(c))
        return NULL;
    shufpy_lease *lease = pop_ended(c);
    if (!lease)
        lease = calloc(1, sizeof *lease);
    if (lease)
        return lease;
    pthread_mutex_unlock(&c->lock);
    fail(SHUF_NO_MEMORY, "lease: out of memory");
    return NULL;
}

static shufpy_lease *finish_lease(shufpy_connection *c, shufpy_lease *lease, shuf_status status)
{
    if (status == SHUF_OK) {
        const shuf_lease *l = lease->lease;
        *lease = (shufpy_lease){
            lease->lease, c, NULL, l->data, l->result.shape.bytes, (int)l->result.shape.dtype};
        c->leases++;
        atomic_fetch_add(&c->references, 1);
    }
    if (unlock(c, (int)status) == SHUF_OK)
        return lease;
    free(lease);
    return NULL;
}

shufpy_lease *shufpy_take(shufpy_connection *c, const shuf_request *request,
                          const shuf_lease_options *options)
{
    shufpy_lease *lease = begin_lease(c);
    return lease
               ? finish_lease(c, lease, shuf_lease_take(c->handle, request, options, &lease->lease))
               : NULL;
}

shufpy_lease *shufpy_take_whole(shufpy_connection *c, uint64_t n, uint64_t seed, uint64_t epoch)
{
    const shuf_request request = {.permutation = {.n = n, .seed = seed, .epoch = epoch}};
    return shufpy_take(c, &request, NULL);
}

int shufpy_write(shufpy_connection *c, const shufpy_lease *buffer, size_t bytes, const void *in)
{
    return CALL(c, shuf_lease_write, buffer->lease, 0, bytes, in);
}

/* ---- Results in this process: host memory ---- */

/* Calls that compute on the CPU run the signal handlers of Python. Those of a GPU return before the
 * work is done. */

static int end(shuf_status status)
{
    return status == SHUF_OK ? SHUF_OK : fail((int)status, shuf_message(NULL));
}

static int end_host(shuf_status status)
{
    end_interruptible();
    return end(status);
}

#define HOST_CALL(function, ...) (begin_interruptible(), end_host(function(__VA_ARGS__)))

int shufpy_host_fill(const shuf_request *request, unsigned threads, uintptr_t out, size_t bytes)
{
    return HOST_CALL(shuf_host_fill, request, threads, (void *)out, bytes);
}

int shufpy_host_shuffle(const shuf_records *records, unsigned threads, uintptr_t in, uintptr_t out,
                        size_t bytes)
{
    return HOST_CALL(shuf_host_shuffle, records, threads, (const void *)in, (void *)out, bytes);
}

int shufpy_host_fingerprint(uintptr_t values, unsigned width, uint64_t count, unsigned threads,
                            uint64_t *fingerprint)
{
    return HOST_CALL(shuf_host_fingerprint, (const void *)values, width, count, threads,
                     fingerprint);
}

/* ---- Device memory ---- */

int shufpy_cuda_workspace(const shuf_request *request, size_t *bytes)
{
    return end(shuf_cuda_workspace(request, bytes));
}

int shufpy_cuda_fill(const shuf_request *request, uintptr_t out, size_t bytes, uintptr_t workspace,
                     size_t workspace_bytes, uintptr_t stream)
{
    return end(shuf_cuda_fill(request, (void *)out, bytes, (void *)workspace, workspace_bytes,
                              (void *)stream));
}

int shufpy_cuda_shuffle(const shuf_records *records, uintptr_t in, uintptr_t out, size_t bytes,
                        uintptr_t workspace, size_t workspace_bytes, uintptr_t stream)
{
    return end(shuf_cuda_shuffle(records, (const void *)in, (void *)out, bytes, (void *)workspace,
                                 workspace_bytes, (void *)stream));
}

int shufpy_cuda_fingerprint(uintptr_t values, unsigned width, uint64_t count, uintptr_t fingerprint,
                            uintptr_t stream)
{
    return end(shuf_cuda_fingerprint((const void *)values, width, count, (uint64_t *)fingerprint,
                                     (void *)stream));
}

/* ---- Without a request ---- */

static shuf_request slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t offset,
                          uint64_t count, uint64_t stride, int dtype)
{
    const shuf_permutation whole = {
        .n = n, .seed = seed, .epoch = epoch, .dtype = (shuf_dtype)dtype};
    shuf_request request = {.permutation = whole};
    if (offset == 0 && count == n && stride == 1)
        return request;
    request.permutation.view = SHUF_VIEW_SLICE;
    request.permutation.offset = offset;
    request.permutation.count = count;
    request.permutation.stride = stride;
    return request;
}

int shufpy_host_slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t chunk, uint64_t window,
                      uint64_t offset, uint64_t count, uint64_t stride, int dtype, unsigned threads,
                      uintptr_t out, size_t bytes)
{
    shuf_request request = slice(n, seed, epoch, offset, count, stride, dtype);
    request.permutation.chunk = chunk;
    request.permutation.window = window;
    return shufpy_host_fill(&request, threads, out, bytes);
}

int shufpy_cuda_slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t offset, uint64_t count,
                      uint64_t stride, int dtype, uintptr_t stream, uintptr_t out, size_t bytes)
{
    const shuf_request request = slice(n, seed, epoch, offset, count, stride, dtype);
    return shufpy_cuda_fill(&request, out, bytes, 0, 0, stream);
}

int shufpy_host_index(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t chunk, uint64_t window,
                      bool inverse, unsigned threads, uintptr_t at, size_t count, uintptr_t out)
{
    const shuf_permutation permutation = {
        .n = n, .seed = seed, .epoch = epoch, .chunk = chunk, .window = window};
    return HOST_CALL(shuf_host_index, &permutation, inverse ? SHUF_INVERSE : SHUF_FORWARD, threads,
                     (const uint64_t *)at, count, (uint64_t *)out);
}

int shufpy_cuda_index(uint64_t n, uint64_t seed, uint64_t epoch, bool inverse, int dtype,
                      uintptr_t stream, uintptr_t at, size_t count, uintptr_t out)
{
    const shuf_permutation permutation = {.n = n, .seed = seed, .epoch = epoch};
    return end(shuf_cuda_index(&permutation, inverse ? SHUF_INVERSE : SHUF_FORWARD,
                               (shuf_dtype)dtype, (const void *)at, count, (void *)out,
                               (void *)stream));
}

static shuf_request numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                            uint64_t count, double mean, double std, uint64_t bound, int dtype,
                            int method)
{
    return (shuf_request){SHUF_NUMBERS, .numbers = {.distribution = (shuf_distribution)distribution,
                                                    .seed = seed,
                                                    .stream = stream,
                                                    .offset = offset,
                                                    .count = count,
                                                    .mean = mean,
                                                    .std = std,
                                                    .bound = bound,
                                                    .dtype = (shuf_dtype)dtype,
                                                    .method = (shuf_method)method}};
}

int shufpy_host_numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                        uint64_t count, double mean, double std, uint64_t bound, int dtype,
                        int method, unsigned threads, uintptr_t out, size_t bytes)
{
    const shuf_request request =
        numbers(distribution, seed, stream, offset, count, mean, std, bound, dtype, method);
    return shufpy_host_fill(&request, threads, out, bytes);
}

int shufpy_cuda_numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                        uint64_t count, double mean, double std, uint64_t bound, int dtype,
                        int method, uintptr_t cuda_stream, uintptr_t out, size_t bytes)
{
    const shuf_request request =
        numbers(distribution, seed, stream, offset, count, mean, std, bound, dtype, method);
    return shufpy_cuda_fill(&request, out, bytes, 0, 0, cuda_stream);
}

/* ---- Mixtures ---- */

int shufpy_mixture_make(uint64_t seed, uint64_t block, size_t sources, const uint64_t *records,
                        const uint64_t *epochs, const uint64_t *chunks, const uint64_t *windows,
                        size_t stages, const uint64_t *firsts, const uint64_t *weights,
                        shuf_mixture **mixture)
{
    shuf_source *source = calloc(sources, sizeof *source);
    shuf_stage *stage = calloc(stages, sizeof *stage);
    shuf_status status = SHUF_NO_MEMORY;
    for (size_t i = 0; source && i < sources; i++)
        source[i] = (shuf_source){records[i], epochs[i], chunks[i], windows[i]};
    for (size_t s = 0; stage && s < stages; s++)
        stage[s] = (shuf_stage){firsts[s], weights + s * sources};
    const shuf_mixture_request request = {seed, block, source, sources, stage, stages};
    if (source && stage)
        status = shuf_mixture_make(&request, mixture);
    free(source);
    free(stage);
    return source && stage ? end(status) : fail(SHUF_NO_MEMORY, "mixture: no memory");
}

int shufpy_mixture_fill(shuf_mixture *mixture, uint64_t first, size_t count, uint64_t stride,
                        unsigned threads, uintptr_t index, uintptr_t source, uintptr_t epoch,
                        uintptr_t record)
{
    const shuf_mixed out = {(uint64_t *)index, (uint32_t *)source, (uint64_t *)epoch,
                            (uint64_t *)record};
    return HOST_CALL(shuf_mixture_fill, mixture, first, count, stride, threads, &out);
}

int shufpy_mixture_positions(const shuf_mixture *mixture, size_t count, uintptr_t source,
                             uintptr_t epoch, uintptr_t record, uintptr_t positions)
{
    const shuf_mixed in = {NULL, (uint32_t *)source, (uint64_t *)epoch, (uint64_t *)record};
    return HOST_CALL(shuf_mixture_positions, mixture, count, &in, (uint64_t *)positions);
}

int shufpy_mixture_counts(const shuf_mixture *mixture, uint64_t position, uintptr_t counts)
{
    return end(shuf_mixture_counts(mixture, position, (uint64_t *)counts));
}

int shufpy_mixture_exhausted(const shuf_mixture *mixture, uintptr_t positions)
{
    return end(shuf_mixture_exhausted(mixture, (uint64_t *)positions));
}

/* ---- Unequal chunks ---- */

int shufpy_chunks_make(uint64_t seed, uint64_t epoch, uintptr_t sizes, size_t count,
                       uint64_t window, shuf_chunks **chunks)
{
    const shuf_chunks_request request = {seed, epoch, (const uint64_t *)sizes, count, window};
    return HOST_CALL(shuf_chunks_make, &request, chunks);
}

int shufpy_chunks_fill(const shuf_chunks *chunks, uint64_t first, size_t count, uint64_t stride,
                       unsigned threads, int dtype, uintptr_t out)
{
    return HOST_CALL(shuf_chunks_fill, chunks, first, count, stride, threads, (shuf_dtype)dtype,
                     (void *)out);
}

int shufpy_chunks_index(const shuf_chunks *chunks, bool inverse, unsigned threads, uintptr_t at,
                        size_t count, uintptr_t out)
{
    return HOST_CALL(shuf_chunks_index, chunks, inverse ? SHUF_INVERSE : SHUF_FORWARD, threads,
                     (const uint64_t *)at, count, (uint64_t *)out);
}

int shufpy_chunks_needed(const shuf_chunks *chunks, uint64_t first, size_t count, uint64_t stride,
                         uintptr_t numbers, size_t *found)
{
    return HOST_CALL(shuf_chunks_needed, chunks, first, count, stride, (uint64_t *)numbers, found);
}

/* ---- Weighted draws ---- */

int shufpy_weights_make(uintptr_t values, int dtype, uint64_t count, shuf_weights **weights)
{
    return HOST_CALL(shuf_weights_make, (const void *)values, (shuf_dtype)dtype, count, weights);
}

int shufpy_weights_draw(const shuf_weights *weights, uint64_t seed, uint64_t epoch, uint64_t first,
                        size_t count, uint64_t stride, unsigned threads, uintptr_t out)
{
    return HOST_CALL(shuf_weights_draw, weights, seed, epoch, first, count, stride, threads,
                     (uint64_t *)out);
}

int shufpy_weights_sample(uintptr_t values, int dtype, uint64_t count, uint64_t seed,
                          uint64_t epoch, size_t sample, uintptr_t out)
{
    return HOST_CALL(shuf_weights_sample, (const void *)values, (shuf_dtype)dtype, count, seed,
                     epoch, sample, (uint64_t *)out);
}

int shufpy_cuda_weights_workspace(uint64_t count, size_t *bytes)
{
    return end(shuf_cuda_weights_workspace(count, bytes));
}

int shufpy_cuda_weights_make(uintptr_t values, int dtype, uint64_t count, uintptr_t table,
                             size_t table_bytes, uintptr_t workspace, size_t workspace_bytes,
                             uintptr_t stream)
{
    return end(shuf_cuda_weights_make((const void *)values, (shuf_dtype)dtype, count,
                                      (uint64_t *)table, table_bytes, (void *)workspace,
                                      workspace_bytes, (void *)stream));
}

int shufpy_cuda_weights_draw(uintptr_t table, uint64_t weights, uint64_t seed, uint64_t epoch,
                             uint64_t first, size_t count, uint64_t stride, uintptr_t out,
                             uintptr_t stream)
{
    return end(shuf_cuda_weights_draw((const uint64_t *)table, weights, seed, epoch, first, count,
                                      stride, (uint64_t *)out, (void *)stream));
}

int shufpy_cuda_weights_sample_workspace(uint64_t count, size_t *bytes)
{
    return end(shuf_cuda_weights_sample_workspace(count, bytes));
}

int shufpy_cuda_weights_sample(uintptr_t values, int dtype, uint64_t count, uint64_t seed,
                               uint64_t epoch, size_t sample, uintptr_t out, uintptr_t workspace,
                               size_t workspace_bytes, uintptr_t stream)
{
    return end(shuf_cuda_weights_sample((const void *)values, (shuf_dtype)dtype, count, seed, epoch,
                                        sample, (uint64_t *)out, (void *)workspace, workspace_bytes,
                                        (void *)stream));
}
