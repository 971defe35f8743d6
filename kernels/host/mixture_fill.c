/* SPDX-License-Identifier: MIT
 *
 * Ranges of a mixture by several threads. Readers stay for later calls, because the keys of
 * thousands of epochs take longer than a short range.
 */
#include "host/cancelled.h"
#include "host/mixture.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    KEPT = 64,       /* readers */
    PART = 1 << 16,  /* places between two questions to the caller, at most */
    SLOTS = 1 << 24, /* slots of the blocks that they need, about */
};

struct shuf__mixture_readers {
    pthread_mutex_t lock; /* only tried: a child of fork() may inherit it locked */
    unsigned count;
    struct shuf__mixture_reader *reader[KEPT];
};

struct shuf__mixture_readers *shuf__mixture_readers_new(void)
{
    struct shuf__mixture_readers *readers = calloc(1, sizeof *readers);
    if (readers)
        pthread_mutex_init(&readers->lock, NULL);
    return readers;
}

void shuf__mixture_readers_free(struct shuf__mixture_readers *readers)
{
    if (!readers)
        return;
    while (readers->count > 0)
        shuf__mixture_reader_free(readers->reader[--readers->count]);
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}

static struct shuf__mixture_reader *take_reader(struct shuf__mixture_readers *readers,
                                                const struct shuf__mixture *m)
{
    struct shuf__mixture_reader *reader = NULL;
    if (pthread_mutex_trylock(&readers->lock) == 0) {
        if (readers->count > 0)
            reader = readers->reader[--readers->count];
        pthread_mutex_unlock(&readers->lock);
    }
    return reader ? reader : shuf__mixture_reader_new(m);
}

static void give_reader_back(struct shuf__mixture_readers *readers,
                             struct shuf__mixture_reader *reader)
{
    if (reader && pthread_mutex_trylock(&readers->lock) == 0) {
        if (readers->count < KEPT) {
            readers->reader[readers->count++] = reader;
            reader = NULL;
        }
        pthread_mutex_unlock(&readers->lock);
    }
    shuf__mixture_reader_free(reader);
}

/* What the threads of a call share. */
struct run {
    const struct shuf__mixture *m;
    const struct shuf__computation *computation;
    uint64_t first, count, stride, part;
    const struct shuf__places *out;
    atomic_uint_fast64_t next; /* part to take */
    atomic_bool cancelled, failed;
};

static struct shuf__places moved(const struct shuf__places *out, uint64_t places)
{
    return (struct shuf__places){
        out->index ? out->index + places : NULL, out->source ? out->source + places : NULL,
        out->epoch ? out->epoch + places : NULL, out->record ? out->record + places : NULL};
}

static void read_parts(struct run *run, struct shuf__mixture_reader *reader)
{
    while (reader && !atomic_load(&run->failed) &&
           !shuf__is_cancelled(run->computation, &run->cancelled)) {
        const uint64_t done = atomic_fetch_add(&run->next, 1) * run->part;
        if (done >= run->count)
            return;
        const uint64_t left = run->count - done;
        const struct shuf__places out = moved(run->out, done);
        if (!shuf__mixture_read(reader, run->first + done * run->stride,
                                left < run->part ? left : run->part, run->stride, &out))
            break;
    }
    if (!atomic_load(&run->cancelled))
        atomic_store(&run->failed, true);
}

static void run_thread(struct run *run, struct shuf__mixture_readers *readers)
{
    struct shuf__mixture_reader *reader = take_reader(readers, run->m);
    read_parts(run, reader);
    give_reader_back(readers, reader);
}

/* The places that a thread takes at once. With a wide stride each needs a block of its own. */
static uint64_t part_of(const struct shuf__mixture *m, uint64_t stride)
{
    const uint64_t part = SLOTS / (stride < m->block ? stride : m->block);
    return part < PART ? part : PART;
}

shuf_status shuf__mixture_fill(const struct shuf__mixture *m, struct shuf__mixture_readers *readers,
                               int threads, const struct shuf__computation *computation,
                               uint64_t first, uint64_t count, uint64_t stride,
                               const struct shuf__places *out, struct shuf__error *error)
{
    const uint64_t part = part_of(m, stride);
    struct run run = {m, computation, first, count, stride, part, out, 0, false, false};
    const uint64_t parts = count ? (count - 1) / part + 1 : 0;
    if (parts < (uint64_t)threads)
        threads = parts ? (int)parts : 1;
    if (threads == 1)
        run_thread(&run, readers);
    else {
#pragma omp parallel num_threads(threads)
        run_thread(&run, readers);
    }
    if (atomic_load(&run.failed))
        return shuf__fail(error, SHUF_NO_MEMORY, "mixture: no memory to read it");
    return atomic_load(&run.cancelled) ? shuf__fail_cancelled(error) : SHUF_OK;
}
