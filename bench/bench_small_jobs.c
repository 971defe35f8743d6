/* SPDX-License-Identifier: MIT
 *
 * Small jobs beside large ones. Five users take leases of large results in device memory, one after
 * the other and without end: permutations and normal numbers of 4 bytes, and shuffles of 8-byte
 * records. A sixth user takes leases of permutations of 10^5 values, in device memory and in host
 * memory. No result is in the cache. Each round has one window for each row, so other load affects
 * all rows alike. The rate of the large jobs is measured in each window. It needs root, to become
 * six users.
 *
 * --jobs NAME: all five users have jobs of this kind. --n: values of a large result.
 */
#include "daemon.h"
#include "number.h"
#include "process.h"
#include "report.h"

#include <errno.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { USERS = 5, SMALL_USERS = 2, FIRST_UID = 61000, SMALL_N = 100000, WARM_UP = 100 };
enum { SAMPLES = 200000, MOST_ROUNDS = 16 };

/* ---- What the processes share ---- */

struct small_user {
    const char *name;
    shuf_transport transport;
    atomic_bool runs;
    atomic_size_t count;
    double alone_ns[SAMPLES], beside_ns[SAMPLES];
    double *ns; /* one of these */
};

static struct shared {
    struct daemon daemon;
    shuf_transport transport; /* of large results */
    uint64_t n;
    atomic_int ready;
    atomic_bool large_run;
    _Atomic uint64_t bytes[USERS]; /* of the finished large results of each user */
    struct small_user small[SMALL_USERS];
} * shared;

static void sleep_ns(double ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / 1e9), (long)ns % 1000000000}, NULL);
}

static void await(const atomic_bool *flag)
{
    while (!atomic_load(flag))
        sleep_ns(1e6);
}

/* The process has a CUDA context, as a training process has. */
static shuf *become_user(unsigned user)
{
    shuf *handle = NULL;
    const uid_t uid = FIRST_UID + user;
    if (setgid(uid) || setuid(uid))
        die("cannot become user %u: %s", uid, strerror(errno));
    const char *why =
        strcmp(shared->daemon.backend, "cuda") == 0 ? context_hold(shared->daemon.device_id) : NULL;
    if (why)
        die("CUDA: %s", why);
    if (shuf_connect(&handle, shared->daemon.socket) != SHUF_OK)
        die("connect: %s", handle ? shuf_message(handle) : "no memory");
    return handle;
}

/* Gives back the lease before it. */
static void take(shuf *handle, const shuf_request *request, shuf_transport transport,
                 shuf_lease **lease)
{
    const shuf_lease_options options = {.transports = transport};
    if (shuf_lease_take(handle, request, &options, lease) != SHUF_OK)
        die("lease: %s", shuf_message(handle));
}

/* ---- Large jobs ---- */

enum job { PRIMEFOLD, PHILOX24, NORMAL, SHUFFLE, JOBS };

static const char *const job_names[JOBS] = {"primefold", "philox24", "normal", "shuffle"};
static const enum job mixed[USERS] = {PRIMEFOLD, PRIMEFOLD, NORMAL, NORMAL, SHUFFLE};

static shuf_request large_request(enum job job, uint64_t n, uint64_t epoch, shuf_lease *input)
{
    if (job == NORMAL)
        return (shuf_request){.kind = SHUF_NUMBERS,
                              .numbers = {.distribution = SHUF_GAUSS,
                                          .seed = epoch,
                                          .count = n,
                                          .std = 1,
                                          .dtype = SHUF_F32}};
    if (job == SHUFFLE)
        return (shuf_request){
            .kind = SHUF_RECORDS,
            .records = {.n = n / 2, .record = 8, .seed = 7, .epoch = epoch, .input = input}};
    return (shuf_request){
        .permutation = {.n = n, .seed = 7, .epoch = epoch, .algorithm = job_names[job]}};
}

/* While one result is taken, the next one is already requested, so the user always has a job. */
static _Noreturn void run_large(unsigned user, enum job job)
{
    shuf *handle = become_user(user);
    const shuf_lease_options options = {.transports = shared->transport};
    const shuf_request buffer = {.kind = SHUF_BUFFER, .bytes = shared->n * 4};
    shuf_lease *lease = NULL, *input = NULL;
    if (job == SHUFFLE)
        take(handle, &buffer, shared->transport, &input);
    shared->ready++;
    await(&shared->large_run);
    for (uint64_t epoch = (uint64_t)user << 32;; epoch++) {
        const shuf_request request = large_request(job, shared->n, epoch, input);
        const shuf_request next = large_request(job, shared->n, epoch + 1, input);
        if (job != SHUFFLE && shuf_prefetch(handle, &next, &options) != SHUF_OK)
            die("prefetch: %s", shuf_message(handle));
        take(handle, &request, shared->transport, &lease);
        shared->bytes[user] += lease->result.shape.bytes;
    }
}

/* ---- Small jobs ---- */

static _Noreturn void run_small(struct small_user *u)
{
    shuf *handle = become_user(USERS);
    shuf_lease *lease = NULL;
    shuf_request request = {.permutation = {.n = SMALL_N, .seed = u->transport}};
    for (int i = 0; i < WARM_UP; i++, request.permutation.epoch++)
        take(handle, &request, u->transport, &lease);
    shared->ready++;
    for (;; request.permutation.epoch++) {
        await(&u->runs);
        const double start = now_ns();
        take(handle, &request, u->transport, &lease);
        if (u->count < SAMPLES)
            u->ns[u->count++] = now_ns() - start;
    }
}

/* ---- Windows ---- */

static pid_t pids[USERS + SMALL_USERS];

/* Runs a window, with small jobs unless `u` is NULL. Returns the bytes a second of large jobs. */
static double run_window(struct small_user *u, double run_ns)
{
    uint64_t bytes = 0;
    int status;
    for (int i = 0; i < USERS; i++)
        bytes -= shared->bytes[i];
    const double start = now_ns();
    if (u)
        u->runs = true;
    sleep_ns(run_ns);
    if (u)
        u->runs = false;
    for (int i = 0; i < USERS; i++)
        bytes += shared->bytes[i];
    const double seconds = (now_ns() - start) / 1e9;
    for (int i = 0; i < USERS + SMALL_USERS; i++)
        if (pids[i] && process_ended(pids[i], &status))
            die("process %d has ended", i);
    return (double)bytes / seconds;
}

static void report_small(struct report *report, const struct small_user *u, const char *where)
{
    char label[96];
    sleep_ns(2e8); /* the last job ends */
    snprintf(label, sizeof label, "small jobs, %s, %s", u->name, where);
    report_latency(report, label, SMALL_N, u->ns, u->count);
}

static void small_alone(struct report *report, struct small_user *u, double run_ns)
{
    run_window(u, run_ns);
    report_small(report, u, "alone");
    u->count = 0;
    u->ns = u->beside_ns;
}

static void all_rounds(struct report *report, int rounds, int smalls, double run_ns)
{
    double rates[SMALL_USERS + 1][MOST_ROUNDS];
    char label[96] = "large jobs, alone";
    for (int i = 0; i < smalls; i++)
        small_alone(report, &shared->small[i], run_ns);
    shared->large_run = true;
    run_window(NULL, run_ns); /* the blocks are allocated */
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i <= smalls; i++)
            rates[i][r] = run_window(i > 0 ? &shared->small[i - 1] : NULL, run_ns);
    for (int i = 0; i < smalls; i++)
        report_small(report, &shared->small[i], "beside large jobs");
    for (int i = 0; i <= smalls; i++) {
        if (i > 0)
            snprintf(label, sizeof label, "large jobs, beside small ones, %s",
                     shared->small[i - 1].name);
        report_rate(report, label, shared->n, "bytes", rates[i], (size_t)rounds);
    }
}

/* ---- Start ---- */

static void start_daemon(const char *backend)
{
    char path[128];
    snprintf(path, sizeof path, "%s", process_file("shufd"));
    if (chmod(dirname(path), 0755) != 0)
        die("%s: %s", path, strerror(errno));
    daemon_start_with(&shared->daemon, "shufd", backend,
                      "socket_mode = 0666\ndevice_memory = 75%\n", process_file("shufd.log"));
}

static void start_processes(const char *jobs, int smalls)
{
    for (unsigned i = 0; i < USERS; i++) {
        enum job job = mixed[i];
        for (enum job j = 0; jobs && j < JOBS; j++)
            if (strcmp(jobs, job_names[j]) == 0)
                job = j;
        if ((pids[i] = process_fork()) == 0)
            run_large(i, job);
    }
    for (int i = 0; i < smalls; i++)
        if ((pids[USERS + i] = process_fork()) == 0)
            run_small(&shared->small[i]);
    while (shared->ready < USERS + smalls)
        run_window(NULL, 1e7);
}

int main(int argc, char **argv)
{
    const char *backend = "cuda", *seconds = "4", *n = "1e9", *jobs = NULL;
    const struct report_option options[] = {{"--backend", "SPEC", &backend},
                                            {"--seconds", "S", &seconds}, /* of a window */
                                            {"--jobs", "NAME", &jobs},
                                            {"--n", "N", &n},
                                            {0}};
    struct report *report = report_begin_with("small jobs beside large ones", options, argc, argv);
    struct shuf__error error;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (geteuid() != 0)
        die("needs root, to become six users");
    if (shared == MAP_FAILED)
        die("no memory");
    if (shuf__number_parse("--n", n, &shared->n, &error) != SHUF_OK)
        die("%s", error.text);
    start_daemon(backend);
    daemon_fact(&shared->daemon, report, "shufd");
    const bool cuda = strcmp(shared->daemon.backend, "cuda") == 0;
    shared->transport = cuda ? SHUF_CUDA_FD : SHUF_MEMFD;
    shared->small[0].transport = SHUF_MEMFD;
    shared->small[1].transport = SHUF_CUDA_FD;
    for (int i = 0; i < SMALL_USERS; i++) {
        shared->small[i].name = shuf_transport_name(shared->small[i].transport);
        shared->small[i].ns = shared->small[i].alone_ns;
    }
    start_processes(jobs, cuda ? 2 : 1);
    all_rounds(report, 5, cuda ? 2 : 1, atof(seconds) * 1e9);
    return report_end(report);
}
