/* SPDX-License-Identifier: MIT
 *
 * A training loop of N processes. shufd computes each epoch's permutation of the samples once.
 * Every process reads the part of its rank through a lease.
 *
 *     cc -pthread train.c $(pkg-config --cflags --libs libshuf) -o train
 *     ./train --processes 8 --epochs 3 --n 1e8 --transport memfd
 *
 * At the end of each epoch one process checks that all ranks together saw every sample once.
 */
#define _DEFAULT_SOURCE /* barriers and shared memory, also with -std=c11 */
#include <shuf.h>

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 256, CHUNK = 1 << 18 /* values in one read */ };

static struct {
    uint64_t processes, epochs, n, seed;
    shuf_lease_options lease;
} options = {.processes = 4, .epochs = 3, .n = 1000000, .seed = 7};

/* Memory that the processes share. A process sets the bits of the samples that it sees. */
static struct shared {
    pthread_barrier_t barrier;
    _Atomic uint64_t repeats; /* samples seen more than once */
    uint64_t view_ns[PROCESSES_MAX], block[PROCESSES_MAX];
    bool computed[PROCESSES_MAX]; /* whether this process's request was computed */
    _Atomic uint64_t seen[];
} * shared;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void fail(const char *action, const shuf *daemon)
{
    fprintf(stderr, "%s: %s\n", action, shuf_message(daemon));
    _exit(EXIT_FAILURE);
}

/* ---- One process ---- */

/* The work on a sample. This example only marks the sample as seen. */
static void train_on(uint64_t sample)
{
    uint64_t bit = UINT64_C(1) << sample % 64;
    if (sample >= options.n || atomic_fetch_or(&shared->seen[sample / 64], bit) & bit)
        atomic_fetch_add(&shared->repeats, 1);
}

/* Returns the values from number `first` on: their place in host memory, or a copy of device
 * memory.
 */
static const void *read_values(shuf *daemon, const shuf_lease *lease, uint64_t first,
                               uint64_t count)
{
    static char copy[CHUNK * sizeof(uint64_t)];
    const uint64_t width = lease->result.shape.width;
    if (!*lease->device_id)
        return (const char *)lease->data + first * width;
    if (shuf_lease_read(daemon, lease, first * width, count * width, copy) != SHUF_OK)
        fail("read", daemon);
    return copy;
}

/* Trains on positions rank, rank + processes, rank + 2 processes, ... */
static void train_on_rank(shuf *daemon, const shuf_lease *lease, uint64_t rank)
{
    uint64_t position = rank;
    for (uint64_t first = 0; first < options.n; first += CHUNK) {
        uint64_t end = first + CHUNK < options.n ? first + CHUNK : options.n;
        const void *values = read_values(daemon, lease, first, end - first);
        for (; position < end; position += options.processes)
            train_on(lease->result.shape.width == 4 ? ((const uint32_t *)values)[position - first]
                                                    : ((const uint64_t *)values)[position - first]);
    }
}

static shuf_request epoch_request(uint64_t epoch)
{
    return (shuf_request){.permutation = {.n = options.n, .seed = options.seed, .epoch = epoch}};
}

/* Takes the lease of this epoch. The same request gives back the lease of the last epoch. */
static void open_epoch(shuf *daemon, uint64_t epoch, uint64_t rank, shuf_lease **lease)
{
    shuf_request request = epoch_request(epoch), next = epoch_request(epoch + 1);
    uint64_t begin = now_ns();
    if (shuf_lease_take(daemon, &request, &options.lease, lease) != SHUF_OK)
        fail("lease", daemon);
    shared->view_ns[rank] = now_ns() - begin;
    shared->block[rank] = (*lease)->block;
    shared->computed[rank] = !(*lease)->shared;
    if (epoch + 1 < options.epochs && shuf_prefetch(daemon, &next, &options.lease) != SHUF_OK)
        fail("prefetch", daemon);
}

/* ---- The end of an epoch ---- */

static uint64_t count_seen(void)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < (options.n + 63) / 64; i++)
        count += (uint64_t)__builtin_popcountll(atomic_exchange(&shared->seen[i], 0));
    return count;
}

/* Counts the different blocks of all processes. An inline result has no block. */
static uint64_t count_blocks(void)
{
    uint64_t blocks = 0;
    for (uint64_t i = 0; i < options.processes; i++) {
        bool known = shared->block[i] == 0;
        for (uint64_t j = 0; j < i && !known; j++)
            known = shared->block[j] == shared->block[i];
        blocks += !known;
    }
    return blocks;
}

static void print_epoch(uint64_t epoch, uint64_t count, uint64_t repeats)
{
    uint64_t fastest = UINT64_MAX, slowest = 0, computed = 0;
    for (uint64_t i = 0; i < options.processes; i++) {
        uint64_t ns = shared->view_ns[i];
        fastest = ns < fastest ? ns : fastest;
        slowest = ns > slowest ? ns : slowest;
        computed += shared->computed[i];
    }
    printf("epoch %" PRIu64 ": %" PRIu64 " of %" PRIu64 " requests computed it, %" PRIu64
           " blocks, views after %" PRIu64 " to %" PRIu64 " us, %" PRIu64 " of %" PRIu64
           " samples seen, %" PRIu64 " again\n",
           epoch, computed, options.processes, count_blocks(), fastest / 1000, slowest / 1000,
           count, options.n, repeats);
    fflush(stdout);
}

/* One process calls this while the others wait. */
static void check_epoch(uint64_t epoch)
{
    uint64_t count = count_seen(), repeats = atomic_exchange(&shared->repeats, 0);
    print_epoch(epoch, count, repeats);
    if (count != options.n || repeats > 0)
        _exit(EXIT_FAILURE);
}

static void train(uint64_t rank)
{
    shuf *daemon;
    shuf_lease *lease = NULL;
    if (shuf_connect(&daemon, NULL) != SHUF_OK)
        fail("connect", daemon);
    for (uint64_t epoch = 0; epoch < options.epochs; epoch++) {
        open_epoch(daemon, epoch, rank, &lease);
        train_on_rank(daemon, lease, rank);
        if (pthread_barrier_wait(&shared->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            check_epoch(epoch);
        pthread_barrier_wait(&shared->barrier);
    }
    if (shuf_lease_release(daemon, &lease) != SHUF_OK)
        fail("release", daemon);
    shuf_close(daemon);
}

/* ---- All processes ---- */

static void usage(void)
{
    fputs("Usage: train [--processes N] [--epochs E] [--n N] [--seed S] [--transport HOW]\n"
          "HOW: inline, memfd, cuda-fd or cuda-ipc; the default is any that gives host memory\n",
          stderr);
    exit(2);
}

static uint64_t read_number(const char *text, uint64_t most)
{
    char *end;
    double value = strtod(text, &end); /* accepts 1e9 */
    if (end == text || *end || !(value >= 1 && value <= (double)most))
        usage();
    return (uint64_t)value;
}

static unsigned read_transport(const char *text)
{
    static const shuf_transport known[] = {SHUF_INLINE, SHUF_MEMFD, SHUF_CUDA_FD, SHUF_CUDA_IPC};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, shuf_transport_name(known[i])) == 0)
            return known[i];
    usage();
    return 0;
}

static void read_options(int argc, char **argv)
{
    static const struct option table[] = {
        {"processes", required_argument, NULL, 'p'}, {"epochs", required_argument, NULL, 'e'},
        {"n", required_argument, NULL, 'n'},         {"seed", required_argument, NULL, 's'},
        {"transport", required_argument, NULL, 't'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
        switch (option) {
        case 'p':
            options.processes = read_number(optarg, PROCESSES_MAX);
            break;
        case 'e':
            options.epochs = read_number(optarg, 1000000);
            break;
        case 'n':
            options.n = read_number(optarg, UINT64_C(1) << 36);
            break;
        case 's':
            options.seed = strtoull(optarg, NULL, 0);
            break;
        case 't':
            options.lease.transports = read_transport(optarg);
            break;
        default:
            usage();
        }
    if (optind < argc)
        usage();
}

static bool make_shared(void)
{
    pthread_barrierattr_t across;
    size_t size = sizeof *shared + (options.n + 63) / 64 * sizeof shared->seen[0];
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared != MAP_FAILED && pthread_barrierattr_init(&across) == 0 &&
           pthread_barrierattr_setpshared(&across, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_barrier_init(&shared->barrier, &across, (unsigned)options.processes) == 0;
}

/* Returns the number of results that the daemon has computed for all users since its start. */
static uint64_t count_computed(void)
{
    shuf *daemon;
    shuf_daemon status;
    if (shuf_connect(&daemon, NULL) != SHUF_OK || shuf_daemon_status(daemon, &status) != SHUF_OK)
        fail("status", daemon);
    shuf_close(daemon);
    return status.computed;
}

static pid_t children[PROCESSES_MAX]; /* 0: not started, or ended */

static void kill_children(void)
{
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (children[i] > 0)
            kill(children[i], SIGKILL);
}

static bool start_children(void)
{
    for (uint64_t rank = 0; rank < options.processes; rank++) {
        children[rank] = fork();
        if (children[rank] < 0)
            return false;
        if (children[rank] == 0) {
            train(rank);
            _exit(EXIT_SUCCESS);
        }
    }
    return true;
}

/* If one child fails, kills the others, because they would wait for it forever. */
static bool await_children(void)
{
    bool succeeded = true;
    int status;
    pid_t ended;
    while ((ended = wait(&status)) > 0) {
        for (int i = 0; i < PROCESSES_MAX; i++)
            if (children[i] == ended)
                children[i] = 0;
        succeeded = succeeded && status == 0;
        if (!succeeded)
            kill_children();
    }
    return succeeded;
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    if (!make_shared()) {
        perror("train: memory to share");
        return EXIT_FAILURE;
    }
    uint64_t before = count_computed();
    bool started = start_children();
    if (!started) {
        perror("train: fork");
        kill_children();
    }
    if (!await_children() || !started)
        return EXIT_FAILURE;
    printf("%" PRIu64 " epochs of %" PRIu64 " processes: shufd computed %" PRIu64 " results\n",
           options.epochs, options.processes, count_computed() - before);
    return EXIT_SUCCESS;
}
