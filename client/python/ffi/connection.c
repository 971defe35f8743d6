/* SPDX-License-Identifier: MIT
 *
 * Connections of Python, see shim.h. libshuf allows one thread at a time on a handle, so each call
 * takes the lock. Python may end a lease in any thread, at any moment. So an ended lease waits in a
 * list until the lock is free, and the thread that releases the lock gives it back. One small lease
 * waits for the next call, which gives it back in the same round trip.
 */
#include "call.h"
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SMALL = 1 << 20 }; /* bytes of a lease that may wait for the next call */

struct shufpy_connection {
    shuf *handle;
    pthread_mutex_t lock;
    size_t leases;                 /* not given back; changed under the lock */
    _Atomic(shufpy_lease *) ended; /* removed from under the lock only */
    atomic_size_t references;      /* of Python's object, and of each lease that has not ended */
    atomic_bool is_closing;
};

/* ---- The end of leases ------------------------------------------------------- */

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

/* ---- Connections ------------------------------------------------------------- */

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
    shufpy__begin_interruptible();
    const shuf_status status = shuf_connect(&c->handle, socket);
    shufpy__end_interruptible();
    if (status != SHUF_OK)
        return shufpy__fail((int)status, shuf_message(c->handle));
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

/* ---- Calls ------------------------------------------------------------------- */

/* Takes the lock. Fails after shufpy_close(), and in a signal handler that runs during a call with
 * the connection. */
static bool lock(shufpy_connection *c)
{
    if (pthread_mutex_lock(&c->lock) == EDEADLK) {
        shufpy__fail(SHUF_BUSY, "client: this signal handler interrupts a call of the client; "
                                "expected another client, from shufd.connect()");
        return false;
    }
    if (!atomic_load(&c->is_closing)) {
        shufpy__begin_interruptible();
        return true;
    }
    pthread_mutex_unlock(&c->lock);
    shufpy__fail(SHUFPY_CLOSED, "client: it is closed; expected one that is open");
    return false;
}

static int unlock(shufpy_connection *c, int status)
{
    if (status != SHUF_OK)
        shufpy__fail(status, shuf_message(c->handle));
    shufpy__end_interruptible();
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
    if (!shufpy__has_raised())
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

/* ---- Leases ------------------------------------------------------------------ */

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
    shufpy__fail(SHUF_NO_MEMORY, "lease: out of memory");
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
