/* SPDX-License-Identifier: MIT
 *
 * See nccl.h.
 */
#include "nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* The header declares two functions without parameters in the old style. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

enum { RANKS = 8, QUEUED = 2 * RANKS };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
    int rank, call;
    ncclResult_t error;
} fault;

/* Bytes on their way from one rank to another. The sender frees the message. */
struct message {
    TAILQ_ENTRY(message) link;
    const void *data;
    size_t bytes;
    bool taken;
    cudaEvent_t ready, done; /* the sender has written the data; the receiver has read it */
};
TAILQ_HEAD(messages, message);

struct group {
    LIST_ENTRY(group) link;
    unsigned id;
    int world, joined, members;
    bool broken;
    struct messages way[RANKS][RANKS]; /* from, to */
};
static LIST_HEAD(groups, group) groups = LIST_HEAD_INITIALIZER(groups);

struct ncclComm {
    struct group *group;
    int rank, device, calls, hanging;
    volatile uint32_t *may_go; /* pinned memory, for which hanging streams wait; NULL: none do */
    bool aborted;
    ncclResult_t error;
};

struct operation {
    ncclComm_t comm;
    bool sends;
    int peer;
    void *data;
    size_t bytes;
    cudaStream_t stream;
    struct message *message;
};
static _Thread_local struct operation queue[QUEUED];
static _Thread_local int queued, depth;

EXPORT void fake_nccl_break(int rank, int call, ncclResult_t error)
{
    fault.rank = rank;
    fault.call = call;
    fault.error = error;
}

/* ---- Communicators ------------------------------------------------------------- */

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static unsigned last;
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&mutex);
    last++;
    memcpy(id, &last, sizeof last);
    pthread_mutex_unlock(&mutex);
    return ncclSuccess;
}

static struct group *find_group(unsigned id, int world)
{
    struct group *g;
    LIST_FOREACH (g, &groups, link) {
        if (g->id == id)
            return g;
    }
    g = calloc(1, sizeof *g);
    g->id = id;
    g->world = world;
    for (int i = 0; i < RANKS * RANKS; i++)
        TAILQ_INIT(&g->way[i / RANKS][i % RANKS]);
    LIST_INSERT_HEAD(&groups, g, link);
    return g;
}

EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int world, ncclUniqueId id, int rank)
{
    unsigned number;
    if (world > RANKS || rank >= world)
        return ncclInvalidArgument;
    *comm = calloc(1, sizeof **comm);
    (*comm)->rank = rank;
    cudaGetDevice(&(*comm)->device);
    memcpy(&number, &id, sizeof number);
    pthread_mutex_lock(&mutex);
    (*comm)->group = find_group(number, world);
    (*comm)->group->members++;
    (*comm)->group->joined++;
    pthread_cond_broadcast(&changed);
    while ((*comm)->group->joined < world)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    pthread_mutex_lock(&mutex);
    comm->aborted = true;
    if (comm->may_go)
        *comm->may_go = 1; /* it stays allocated: to free it would wait for the device */
    pthread_cond_broadcast(&changed);
    while (comm->hanging > 0)
        pthread_cond_wait(&changed, &mutex);
    if (--comm->group->members == 0) {
        LIST_REMOVE(comm->group, link);
        free(comm->group);
    }
    pthread_mutex_unlock(&mutex);
    free(comm);
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    return ncclCommAbort(comm);
}

EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->group->world;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->device;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    pthread_mutex_lock(&mutex);
    *error = comm->error;
    pthread_mutex_unlock(&mutex);
    return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess       ? "no error"
           : result == ncclSystemError ? "the fake fails"
           : result == ncclRemoteError ? "another rank of the fake has failed"
                                       : "the fake was called wrongly";
}

/* ---- Operations ---------------------------------------------------------------- */

static void CUDART_CB hang(void *context)
{
    ncclComm_t comm = context;
    pthread_mutex_lock(&mutex);
    while (!comm->aborted)
        pthread_cond_wait(&changed, &mutex);
    comm->hanging--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* A wait of the device itself, as in a kernel of NCCL: a function of the host would block other
 * calls of the driver. Returns false without a real driver. Called with the mutex. */
static bool hang_on_device(ncclComm_t comm, cudaStream_t stream)
{
    enum { UNTIL_AT_LEAST = 0 };
    int (*allocate)(void **, size_t, unsigned);
    int (*wait)(cudaStream_t, uint64_t, uint32_t, unsigned);
    void *memory, *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver)
        return false;
    *(void **)&allocate = dlsym(driver, "cuMemHostAlloc");
    *(void **)&wait = dlsym(driver, "cuStreamWaitValue32_v2");
    if (!comm->may_go) {
        if (!allocate || !wait || allocate(&memory, sizeof *comm->may_go, 0))
            return false;
        comm->may_go = memory;
        *comm->may_go = 0;
    }
    return wait(stream, (uintptr_t)comm->may_go, 1, UNTIL_AT_LEAST) == 0;
}

/* The stream waits until the communicator is aborted. Called with the mutex. */
static void start_hanging(const struct operation *o)
{
    o->comm->error = fault.error;
    if (hang_on_device(o->comm, o->stream))
        return;
    o->comm->hanging++;
    pthread_mutex_unlock(&mutex);
    cudaLaunchHostFunc(o->stream, hang, o->comm);
    pthread_mutex_lock(&mutex);
}

static void post(struct operation *o)
{
    struct message *m = calloc(1, sizeof *m);
    m->data = o->data;
    m->bytes = o->bytes;
    cudaEventCreateWithFlags(&m->ready, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&m->done, cudaEventDisableTiming);
    cudaEventRecord(m->ready, o->stream);
    o->message = m;
    TAILQ_INSERT_TAIL(&o->comm->group->way[o->comm->rank][o->peer], m, link);
    pthread_cond_broadcast(&changed);
}

static ncclResult_t copy(struct operation *o, struct message *m)
{
    ncclResult_t result = m->bytes == o->bytes ? ncclSuccess : ncclInvalidUsage;
    cudaStreamWaitEvent(o->stream, m->ready, 0);
    if (result == ncclSuccess &&
        cudaMemcpyAsync(o->data, m->data, m->bytes, cudaMemcpyDeviceToDevice, o->stream))
        result = ncclUnhandledCudaError;
    cudaEventRecord(m->done, o->stream);
    m->taken = true;
    pthread_cond_broadcast(&changed);
    return result;
}

static ncclResult_t receive(struct operation *o)
{
    struct message *m;
    struct group *g = o->comm->group;
    struct messages *way = &g->way[o->peer][o->comm->rank];
    while (!(m = TAILQ_FIRST(way)) && !g->broken)
        pthread_cond_wait(&changed, &mutex);
    if (g->broken) { /* a message may be of a later call, because its sender goes on */
        start_hanging(o);
        return ncclSuccess;
    }
    TAILQ_REMOVE(way, m, link);
    return copy(o, m);
}

static void free_message(struct message *m)
{
    cudaEventDestroy(m->ready);
    cudaEventDestroy(m->done);
    free(m);
}

static void finish_send(struct operation *o)
{
    struct message *m = o->message;
    while (!m->taken && !o->comm->group->broken)
        pthread_cond_wait(&changed, &mutex);
    if (m->taken)
        cudaStreamWaitEvent(o->stream, m->done, 0);
    else
        TAILQ_REMOVE(&o->comm->group->way[o->comm->rank][o->peer], m, link);
    if (!m->taken)
        start_hanging(o);
    free_message(m);
}

static bool breaks(ncclComm_t comm)
{
    if (++comm->calls != fault.call || comm->rank != fault.rank)
        return false;
    comm->group->broken = true;
    pthread_cond_broadcast(&changed);
    return true;
}

/* Called with the mutex. */
static ncclResult_t run_queue(void)
{
    ncclResult_t result = ncclSuccess;
    if (queued > 0 && breaks(queue[0].comm))
        return ncclSystemError;
    for (int i = 0; i < queued; i++)
        if (queue[i].sends)
            post(&queue[i]);
    for (int i = 0; i < queued; i++)
        if (!queue[i].sends && result == ncclSuccess)
            result = receive(&queue[i]);
    for (int i = 0; i < queued; i++)
        if (queue[i].sends)
            finish_send(&queue[i]);
    return result;
}

EXPORT ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
    if (--depth > 0)
        return ncclSuccess;
    pthread_mutex_lock(&mutex);
    ncclResult_t result = run_queue();
    pthread_mutex_unlock(&mutex);
    queued = 0;
    return result;
}

static ncclResult_t add(bool sends, void *data, size_t bytes, int peer, ncclComm_t comm,
                        cudaStream_t stream)
{
    if (queued == QUEUED || peer < 0 || peer >= comm->group->world)
        return ncclInvalidUsage;
    ncclGroupStart();
    queue[queued++] = (struct operation){comm, sends, peer, data, bytes, stream, NULL};
    return ncclGroupEnd();
}

/* Every type here has one byte. */
EXPORT ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream)
{
    return type == ncclUint8 ? add(true, (void *)(uintptr_t)data, count, peer, comm, stream)
                             : ncclInvalidArgument;
}

EXPORT ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream)
{
    return type == ncclUint8 ? add(false, data, count, peer, comm, stream) : ncclInvalidArgument;
}

EXPORT ncclResult_t ncclAllGather(const void *sent, void *received, size_t count,
                                  ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = ncclSuccess;
    char *out = received;
    if (sent != out + (size_t)comm->rank * count)
        return ncclInvalidUsage; /* only the form in place */
    ncclGroupStart();
    for (int i = 0; i < comm->group->world && result == ncclSuccess; i++) {
        if (i == comm->rank)
            continue;
        result = ncclSend(sent, count, type, i, comm, stream);
        if (result == ncclSuccess)
            result = ncclRecv(out + (size_t)i * count, count, type, i, comm, stream);
    }
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}
