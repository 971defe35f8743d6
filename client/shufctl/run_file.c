/* SPDX-License-Identifier: MIT
 *
 * See run_file.h.
 */
#include "run_file.h"

#include "algorithm.h"
#include "clock.h"
#include "exit.h"
#include "output_path.h"
#include "progress.h"
#include "run_request.h"
#include "value_file.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    PART = 512 << 10, /* bytes: they fit the cache of one processor */
    THREADS_MOST = 8, /* writes to a file wait for each other, so more threads are not faster */
    PAGE = 4096,
};

struct run {
    const struct shuf__output_options *o;
    struct shuf__value_file file;
    uint64_t values;      /* of the result */
    pthread_mutex_t lock; /* guards the fields below */
    char *free;           /* PART bytes for each thread that has not begun */
    uint64_t next;        /* the first value of the next part */
    uint64_t compute_ns;  /* of all threads together */
    uint64_t fingerprint;
    shuf_status status; /* of the first failure; then no thread begins another part */
    char message[512];
    int cause; /* errno of the first write that failed, or 0 */
};

/* ---- the parts ---- */

struct part {
    uint64_t first, count; /* values */
    char *bytes;
    uint64_t fingerprint, compute_ns;
};

static shuf_status compute_part(const struct run *run, struct part *part)
{
    const uint64_t begin = shuf__clock_ns();
    const shuf_status status = shuf_host_part(run->o->request, part->first, part->count, 1,
                                              part->bytes, &part->fingerprint);
    part->compute_ns = shuf__clock_ns() - begin;
    return status;
}

static bool next_part(struct run *run, struct part *part)
{
    const uint64_t most = PART / run->o->shape.width;
    pthread_mutex_lock(&run->lock);
    const uint64_t left = run->status || run->cause ? 0 : run->values - run->next;
    part->first = run->next;
    part->count = left < most ? left : most;
    run->next += part->count;
    pthread_mutex_unlock(&run->lock);
    return part->count > 0;
}

static void finish_part(struct run *run, const struct part *part, shuf_status status, int cause)
{
    pthread_mutex_lock(&run->lock);
    if (status && !run->status)
        snprintf(run->message, sizeof run->message, "%s", shuf_message(NULL));
    run->status = run->status ? run->status : status;
    run->cause = run->cause ? run->cause : cause;
    run->fingerprint += part->fingerprint;
    run->compute_ns += part->compute_ns;
    pthread_mutex_unlock(&run->lock);
}

static void run_part(struct run *run, struct part *part)
{
    const uint64_t width = run->o->shape.width;
    int cause = 0;
    const shuf_status status = compute_part(run, part);
    if (status == SHUF_OK)
        cause = shuf__value_file_write_at(&run->file, part->first * width, part->bytes,
                                          (size_t)(part->count * width));
    finish_part(run, part, status, cause);
}

/* ---- the threads ---- */

static void *run_parts(void *context)
{
    struct run *run = context;
    struct part part = {0};
    pthread_mutex_lock(&run->lock);
    part.bytes = run->free;
    run->free += PART;
    pthread_mutex_unlock(&run->lock);
    while (next_part(run, &part))
        run_part(run, &part);
    return NULL;
}

static int count_threads(const struct run *run)
{
    cpu_set_t set;
    const uint64_t parts = (run->o->shape.bytes + PART - 1) / PART;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : THREADS_MOST;
    if (count > THREADS_MOST)
        count = THREADS_MOST;
    return parts >= (uint64_t)count ? count : parts > 1 ? (int)parts : 1;
}

/* The other threads block all signals. So the main thread receives them, and can block them. Fewer
 * threads than `count` are enough. Returns the threads that have computed. */
static int run_threads(struct run *run, int count)
{
    pthread_t threads[THREADS_MOST];
    sigset_t all, old;
    int started = 1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (started < count && pthread_create(&threads[started], NULL, run_parts, run) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    run_parts(run);
    for (int i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    return started;
}

/* ---- the file ---- */

/* Computes `count` values as bits. */
static void compute_samples(struct run *run, uint64_t first, unsigned count, uint64_t *bits)
{
    const unsigned width = (unsigned)run->o->shape.width;
    uint64_t values[SHUF_SAMPLES]; /* bytes, aligned for all types */
    const struct part none = {0};
    finish_part(run, &none, shuf_host_part(run->o->request, first, count, 1, values, NULL), 0);
    for (unsigned i = 0; i < count; i++) {
        bits[i] = 0; /* little-endian: fewer bytes fill its low end */
        memcpy(&bits[i], (const char *)values + i * width, width);
    }
}

static unsigned count_samples(uint64_t values)
{
    return values < SHUF_SAMPLES ? (unsigned)values : SHUF_SAMPLES;
}

static void make_result(struct run *run, int threads, shuf_result *result)
{
    *result = (shuf_result){.shape = run->o->shape,
                            .backend = "cpu",
                            .device = "this process",
                            .device_ns = run->compute_ns / (unsigned)threads,
                            .fingerprint = run->fingerprint};
    if (run->o->request->kind == SHUF_PERMUTATION)
        snprintf(result->algorithm, sizeof result->algorithm, "primefold");
    result->n_first = count_samples(run->values);
    result->n_last = count_samples(run->values - result->n_first); /* no value is in both */
    compute_samples(run, 0, result->n_first, result->first);
    compute_samples(run, run->values - result->n_last, result->n_last, result->last);
}

static int end_file(struct run *run)
{
    run->file.output.cause = run->cause;
    if (run->status)
        return shuf__fail_with(shuf__exit_code(run->status), "%s", run->message);
    return run->cause ? shuf__output_failed(&run->file.output)
                      : shuf__value_file_commit(&run->file);
}

static int fill_file(struct run *run, shuf_result *result)
{
    const int count = count_threads(run);
    void *memory = NULL;
    if (posix_memalign(&memory, PAGE, (size_t)count * PART) != 0)
        return shuf__fail_with(EX_OSERR, "--out %s: out of memory for %d parts", run->o->out,
                               count);
    run->free = memory;
    shuf__progress_phase("writing", run->o->shape.bytes);
    make_result(run, run_threads(run, count), result);
    free(memory);
    return end_file(run);
}

static int write_file(struct run *run, shuf_result *result)
{
    const struct shuf__output_options *o = run->o;
    int code = shuf__value_file_open(&run->file, o->out, o->format, &o->shape, o->batch);
    if (code != EX_OK)
        return code;
    code = fill_file(run, result);
    shuf__value_file_close(&run->file);
    return code;
}

bool shuf__file_needs_no_daemon(const struct shuf__output_options *o)
{
    enum shuf_algorithm algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    struct shuf__error error;
    const shuf_request *r = o->request;
    const bool stream = r->kind == SHUF_NUMBERS;
    if (!stream && shuf__algorithm_parse(r->permutation.algorithm, &algorithm, &error))
        return false;
    return o->out && !o->transport && !shuf__format_is_text(o->format) &&
           !(stream ? r->numbers.key : r->permutation.key) && !shuf__wants_moments(r) &&
           shuf_algorithm_has_random_access(algorithm) && !shuf__output_path_is_direct(o->out);
}

int shuf__run_file(const struct shuf__output_options *o)
{
    static struct run run;
    shuf_result result;
    const uint64_t begin = shuf__clock_ns();
    shuf__progress_set_quiet(o->daemon.quiet);
    run = (struct run){
        .o = o, .values = o->shape.rows * o->shape.count, .lock = PTHREAD_MUTEX_INITIALIZER};
    const int code = write_file(&run, &result);
    const uint64_t seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (code != EX_OK)
        return code;
    return shuf__print_summary(NULL, &(struct shuf__summary){o, &result, NULL, seen_ns});
}
