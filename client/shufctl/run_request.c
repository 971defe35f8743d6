/* SPDX-License-Identifier: MIT
 *
 * See run_request.h.
 */
#include "run_request.h"

#include "algorithm.h"
#include "clock.h"
#include "connect.h"
#include "exit.h"
#include "output.h"
#include "progress.h"
#include "summary.h"
#include "units.h"
#include "value_file.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Leases ---- */

struct lease_reading {
    shuf_lease lease; /* a copy; its data is no longer mapped. transport 0: no lease was taken */
    bool ends_match;  /* the first and last values equal those of the reply */
};

enum { CHUNK = 1 << 20 };

static shuf_status read_chunks(shuf *daemon, const shuf_lease *lease, shuf_sink sink, void *context)
{
    static char chunk[CHUNK];
    uint64_t all = lease->result.shape.bytes;
    for (uint64_t done = 0; done < all;) {
        size_t size = all - done < sizeof chunk ? (size_t)(all - done) : sizeof chunk;
        shuf_status status = shuf_lease_read(daemon, lease, done, size, chunk);
        if (status != SHUF_OK)
            return status;
        if (!sink(context, chunk, size))
            return SHUF_CANCELLED;
        done += size;
    }
    return SHUF_OK;
}

/* Compares `count` values, from number `first` on, with those of the reply. */
static shuf_status compare_values(shuf *daemon, const shuf_lease *lease, uint64_t first,
                                  unsigned count, const uint64_t *expected, bool *match)
{
    unsigned width = lease->result.shape.width;
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0; /* little-endian: fewer bytes fill its low end */
        shuf_status status = shuf_lease_read(daemon, lease, (first + i) * width, width, &value);
        if (status != SHUF_OK)
            return status;
        *match = *match && value == expected[i];
    }
    return SHUF_OK;
}

static shuf_status compare_ends(shuf *daemon, const shuf_lease *lease, bool *match)
{
    const shuf_result *r = &lease->result;
    *match = true;
    shuf_status status = compare_values(daemon, lease, 0, r->n_first, r->first, match);
    if (status == SHUF_OK)
        status = compare_values(daemon, lease, r->shape.rows * r->shape.count - r->n_last,
                                r->n_last, r->last, match);
    return status;
}

/* Leases the result, passes its values to `sink` (may be NULL) and gives the lease back. Fails as
 * shuf_each(): SHUF_CANCELLED when the sink stopped it. */
static shuf_status read_by_lease(shuf *daemon, const struct shuf__output_options *options,
                                 shuf_sink sink, void *context, struct lease_reading *reading)
{
    const shuf_lease_options lease_options = {.transports = options->transport};
    shuf_lease *lease = NULL;
    shuf_status status = shuf_lease_take(daemon, options->request, &lease_options, &lease);
    if (status != SHUF_OK)
        return status;
    status = compare_ends(daemon, lease, &reading->ends_match);
    if (status == SHUF_OK && sink)
        status = read_chunks(daemon, lease, sink, context);
    reading->lease = *lease;
    if (status != SHUF_OK)
        return status; /* shuf_close() ends the lease; a release would replace the message */
    return shuf_lease_release(daemon, &lease);
}

/* ---- By a daemon ---- */

/* The result, or its lease. */
struct outcome {
    shuf_result result; /* without a lease */
    struct lease_reading reading;
};

/* The inline transport copies, so it needs no lease: the copy arrives in parts. */
static bool takes_lease(const struct shuf__output_options *o)
{
    return o->transport > SHUF_INLINE;
}

static shuf_status receive_values(struct shuf__value_file *file, shuf *daemon,
                                  const struct shuf__output_options *o, struct outcome *outcome)
{
    if (takes_lease(o))
        return read_by_lease(daemon, o, shuf__value_file_write, file, &outcome->reading);
    return shuf_each(daemon, o->request, shuf__value_file_write, file, &outcome->result);
}

/* Adds advice to NO_MEMORY: only a lease and the cache need room for the whole result. */
static int fail_request(shuf *daemon, shuf_status status, const struct shuf__output_options *o)
{
    if (status == SHUF_NO_MEMORY && (takes_lease(o) || o->prefetch))
        return shuf__fail_with(shuf__exit_code(status),
                               "%s; without %s the result is computed in parts",
                               shuf_message(daemon), o->prefetch ? "--prefetch" : "--transport");
    return shuf__fail_call(daemon, status, &o->daemon);
}

static int fill_file(struct shuf__value_file *file, shuf *daemon,
                     const struct shuf__output_options *o, struct outcome *outcome)
{
    shuf_status status = receive_values(file, daemon, o, outcome);
    if (file->output.cause != 0)
        return shuf__output_failed(&file->output);
    return status == SHUF_OK ? shuf__value_file_commit(file) : fail_request(daemon, status, o);
}

static int write_values(shuf *daemon, const struct shuf__output_options *o, struct outcome *outcome)
{
    static struct shuf__value_file file;
    int code = shuf__value_file_open(&file, o->out, o->format, &o->shape, o->batch);
    if (code != EX_OK)
        return code;
    code = fill_file(&file, daemon, o, outcome);
    shuf__value_file_close(&file);
    return code;
}

static int to_exit_code(shuf *daemon, shuf_status status, const struct shuf__output_options *o)
{
    return status == SHUF_OK ? EX_OK : fail_request(daemon, status, o);
}

static int request_summary(shuf *daemon, const struct shuf__output_options *o,
                           struct outcome *outcome)
{
    shuf_status status = takes_lease(o) ? read_by_lease(daemon, o, NULL, NULL, &outcome->reading)
                                        : shuf_summarize(daemon, o->request, &outcome->result);
    return to_exit_code(daemon, status, o);
}

/* The settings that are too small for a result that the daemon would keep: in device memory, and in
 * host memory. */
enum limiting { CACHE, MEMORY, BOTH };
static const struct {
    const char *keys, *flags;
} limiting[2][3] = {
    {{"device_cache", "--device-cache"},
     {"device_memory", "--device-memory"},
     {"device_cache and device_memory", "--device-cache and --device-memory"}},
    {{"host_cache", "--host-cache"},
     {"host_memory", "--host-memory"},
     {"host_cache and host_memory", "--host-cache and --host-memory"}},
};

/* Rejects a prefetch of a result that the daemon would not keep. */
static int check_kept(shuf *daemon, const struct shuf__output_options *o)
{
    shuf_daemon now;
    char bytes[SHUF__UNITS_TEXT], most[SHUF__UNITS_TEXT];
    shuf_status status = shuf_daemon_status(daemon, &now);
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &o->daemon);
    const bool host = o->transport == SHUF_MEMFD || strcmp(now.backend, "cpu") == 0;
    const uint64_t limit = host ? now.host_idle_limit : now.device_idle_limit;
    const uint64_t memory = host ? now.host_limit : now.memory_limit;
    const enum limiting by = limit == memory ? MEMORY : o->shape.bytes > memory ? BOTH : CACHE;
    if (o->shape.bytes <= limit)
        return EX_OK;
    char advice[sizeof now.configuration + SHUF__START_COMMAND + 128], reload[SHUF__START_COMMAND];
    shuf__reload_command(shuf_socket(daemon), &now, reload);
    if (*now.configuration)
        snprintf(advice, sizeof advice,
                 "raise %s in %s, then %s; if shufd was started with %s, start it again with a "
                 "larger value",
                 limiting[host][by].keys, now.configuration, reload, limiting[host][by].flags);
    else
        snprintf(advice, sizeof advice, "it has read no configuration: start it with a larger %s",
                 limiting[host][by].flags);
    return shuf__fail_with(
        EX_OSERR, "--prefetch: the result has %s, but the daemon keeps at most %s: %s",
        shuf__units_memory(bytes, o->shape.bytes), shuf__units_memory(most, limit), advice);
}

/* The daemon computes the result and keeps it in memory that fits the transport. */
static int prefetch_result(shuf *daemon, const struct shuf__output_options *o,
                           struct outcome *outcome)
{
    const int code = check_kept(daemon, o);
    if (code != EX_OK)
        return code;
    shuf_status status = takes_lease(o)
                             ? read_by_lease(daemon, o, NULL, NULL, &outcome->reading)
                             : shuf_each(daemon, o->request, NULL, NULL, &outcome->result);
    return to_exit_code(daemon, status, o);
}

static int run_connected(shuf *daemon, const struct shuf__output_options *o)
{
    static struct outcome outcome;
    const shuf_lease copied = {.transport = SHUF_INLINE};
    const shuf_lease *lease = &outcome.reading.lease;
    uint64_t begin = shuf__clock_ns();
    shuf__progress_phase("computing", 0);
    int code = (o->prefetch ? prefetch_result
                : o->out    ? write_values
                            : request_summary)(daemon, o, &outcome);
    uint64_t seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (code != EX_OK)
        return code;
    if (!lease->transport)
        code = shuf__print_summary(
            daemon,
            &(struct shuf__summary){o, &outcome.result, o->transport ? &copied : NULL, seen_ns});
    else if (outcome.reading.ends_match)
        code =
            shuf__print_summary(daemon, &(struct shuf__summary){o, &lease->result, lease, seen_ns});
    else
        code = shuf__fail_with(EX_PROTOCOL,
                               "--transport %s: the first or last values read are not "
                               "those of the reply",
                               shuf_transport_name(lease->transport));
    return code;
}

static int run_by_daemon(const struct shuf__output_options *options)
{
    shuf *daemon;
    int code = shuf__connect_or_fail(&daemon, &options->daemon);
    if (code == EX_OK)
        code = run_connected(daemon, options);
    shuf_close(daemon);
    return code;
}

/* ---- A file in this process ---- */

/* A thread computes a part of the values in the cache of its processor, and writes it to its place
 * in the file. So there is one copy of the values, into the memory of the file system, and no page
 * fault. */

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

static int compute_file(struct run *run, shuf_result *result)
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

static int write_parts(struct run *run, shuf_result *result)
{
    const struct shuf__output_options *o = run->o;
    int code = shuf__value_file_open(&run->file, o->out, o->format, &o->shape, o->batch);
    if (code != EX_OK)
        return code;
    code = compute_file(run, result);
    shuf__value_file_close(&run->file);
    return code;
}

/* True for a regular file with binary values that this process can compute, in any order: not for a
 * named key, moments or a transport, which need a daemon, and not for philox24 and lcg. */
static bool needs_no_daemon(const struct shuf__output_options *o)
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

static int run_in_process(const struct shuf__output_options *o)
{
    static struct run run;
    shuf_result result;
    const uint64_t begin = shuf__clock_ns();
    shuf__progress_set_quiet(o->daemon.quiet);
    run = (struct run){
        .o = o, .values = o->shape.rows * o->shape.count, .lock = PTHREAD_MUTEX_INITIALIZER};
    const int code = write_parts(&run, &result);
    const uint64_t seen_ns = shuf__clock_ns() - begin;
    shuf__progress_end();
    if (code != EX_OK)
        return code;
    return shuf__print_summary(NULL, &(struct shuf__summary){o, &result, NULL, seen_ns});
}

/* ---- The request ---- */

int shuf__run_request(const struct shuf__output_options *options)
{
    return (needs_no_daemon(options) ? run_in_process : run_by_daemon)(options);
}
