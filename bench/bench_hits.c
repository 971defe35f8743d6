/* SPDX-License-Identifier: MIT
 *
 * Whether a user can learn by timing that another user has a result. The second user requests
 * results. For half of them, chosen at random, the first user has just received the same result;
 * for the others, another one. Welch's t-test compares the times of both halves, also without the
 * slowest of both (Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?", 2017, which
 * calls |t| > 4.5 a leak). As a control, the test also compares results that the second user has
 * with results that it lacks: there the difference is wanted, and t must be large.
 *
 * Only root can be two users.
 */
#include "daemon.h"
#include "process.h"

#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FIRST_UID = 61201,
    SECOND_UID,
    N = 1000,
    INDEX_N = 65535,
    SAMPLES = 100000, /* of each kind */
    WARM_UP = 2000,
    BETWEEN = 3,
};

static shuf *first, *second;
static uint64_t state = 1; /* of the random numbers below: splitmix64 */

static uint64_t next_random(void)
{
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* ---- Requests ---- */

static void check(shuf *handle, shuf_status status)
{
    if (status != SHUF_OK)
        die("%s", shuf_message(handle));
}

static void copy(shuf *handle, uint64_t seed)
{
    uint32_t values[N];
    const shuf_request request = {.permutation = {.n = N, .seed = seed, .dtype = SHUF_U32}};
    check(handle, shuf_copy(handle, &request, values, sizeof values, NULL));
}

static void lease(shuf *handle, uint64_t seed)
{
    shuf_lease *taken = NULL;
    const shuf_request request = {.permutation = {.n = N, .seed = seed, .dtype = SHUF_U32}};
    check(handle, shuf_lease_take(handle, &request, NULL, &taken));
    check(handle, shuf_lease_release(handle, &taken));
}

/* The daemon keeps a rank index of the permutation. */
static void look_up(shuf *handle, uint64_t seed)
{
    const uint64_t at = INDEX_N - 1;
    uint64_t found;
    const shuf_request request = {
        .permutation = {.algorithm = "philox24", .n = INDEX_N, .seed = seed}};
    check(handle, shuf_index(handle, &request.permutation, SHUF_FORWARD, &at, 1, &found));
}

static const struct request {
    const char *name;
    void (*call)(shuf *handle, uint64_t seed);
    unsigned less; /* so many times fewer samples, because it takes longer */
} requests[] = {
    {"copy, n = 1000", copy, 1},
    {"lease, n = 1000", lease, 1},
    {"look-up, philox24, n = 65535", look_up, 10},
};

/* ---- Welch's t-test ---- */

struct sample {
    double *ns;
    size_t count;
};

static double mean_of(const struct sample *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->ns[i];
    return sum / (double)s->count;
}

/* The variance of the mean. */
static double error_of(const struct sample *s, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += (s->ns[i] - mean) * (s->ns[i] - mean);
    return sum / (double)(s->count - 1) / (double)s->count;
}

static double t_of(const struct sample *a, const struct sample *b)
{
    const double mean_a = mean_of(a), mean_b = mean_of(b);
    return (mean_a - mean_b) / sqrt(error_of(a, mean_a) + error_of(b, mean_b));
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(struct sample *s)
{
    qsort(s->ns, s->count, sizeof *s->ns, compare);
}

/* The sorted samples that are at most `limit`. */
static struct sample up_to(const struct sample *s, double limit)
{
    struct sample part = {.ns = s->ns};
    while (part.count < s->count && s->ns[part.count] <= limit)
        part.count++;
    return part;
}

/* The limit below which this part of both samples is. */
static double quantile_of_both(const struct sample *a, const struct sample *b, double part)
{
    struct sample both = {.ns = malloc((a->count + b->count) * sizeof *both.ns)};
    if (!both.ns)
        die("out of memory");
    memcpy(both.ns, a->ns, a->count * sizeof *a->ns);
    memcpy(both.ns + a->count, b->ns, b->count * sizeof *b->ns);
    both.count = a->count + b->count;
    sort(&both);
    const double limit = both.ns[(size_t)(part * (double)(both.count - 1))];
    free(both.ns);
    return limit;
}

/* If hits and misses differ much, the fastest half has no misses, and no t. */
static void add_rows(struct report *report, const char *name, struct sample *hits,
                     struct sample *misses)
{
    static const double parts[] = {1, 0.99, 0.9, 0.5};
    char label[160];
    sort(hits);
    sort(misses);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const double limit = quantile_of_both(hits, misses, parts[i]);
        const struct sample a = up_to(hits, limit), b = up_to(misses, limit);
        if (a.count < 2 || b.count < 2)
            continue;
        snprintf(label, sizeof label, "%s: t of the fastest %g %%", name, 100 * parts[i]);
        report_value(report, label, hits->count, t_of(&a, &b), "");
        snprintf(label, sizeof label, "%s: hit - miss, mean of these", name);
        report_value(report, label, hits->count, mean_of(&a) - mean_of(&b), "ns");
    }
    snprintf(label, sizeof label, "%s, hit", name);
    report_latency(report, label, hits->count, hits->ns, hits->count);
    snprintf(label, sizeof label, "%s, miss", name);
    report_latency(report, label, misses->count, misses->ns, misses->count);
}

/* ---- The measurement ---- */

static double time_of(const struct request *request, uint64_t seed)
{
    const double begin = now_ns();
    request->call(second, seed);
    return now_ns() - begin;
}

/* `owner` receives the same result before the measured request, or another one. Then it receives
 * `between` others, in both cases. Without these, the processor may still predict the branches of
 * the last computation. */
static void measure(struct report *report, const struct request *request, shuf *owner,
                    unsigned between, size_t count, const char *title)
{
    char name[96];
    struct sample samples[2] = {{.ns = calloc(count, sizeof(double))},
                                {.ns = calloc(count, sizeof(double))}};
    if (!samples[0].ns || !samples[1].ns)
        die("out of memory");
    for (size_t i = 0; samples[0].count < count || samples[1].count < count; i++) {
        const uint64_t seed = next_random(), other = next_random();
        const bool miss = next_random() & 1;
        struct sample *s = &samples[miss];
        request->call(owner, miss ? other : seed);
        for (unsigned k = 0; k < between; k++)
            request->call(owner, next_random());
        const double ns = time_of(request, seed);
        if (i >= WARM_UP && s->count < count)
            s->ns[s->count++] = ns;
    }
    snprintf(name, sizeof name, "%s, %s", request->name, title);
    add_rows(report, name, &samples[0], &samples[1]);
    free(samples[0].ns);
    free(samples[1].ns);
}

static shuf *connect_as(const struct daemon *daemon, uid_t uid)
{
    if (seteuid(uid))
        die("seteuid: expected to run as root");
    shuf *handle = daemon_connect(daemon);
    if (seteuid(0))
        die("seteuid");
    return handle;
}

static void let_in(const struct daemon *daemon)
{
    char path[256];
    snprintf(path, sizeof path, "%s", daemon->socket);
    if (chmod(path, 0666) || chmod(dirname(path), 0755))
        die("%s: chmod", daemon->socket);
}

int main(int argc, char **argv)
{
    const char *number = NULL;
    const struct report_option options[] = {{"--samples", "NUMBER", &number}, {0}};
    struct daemon daemon;
    struct report *report = report_begin_with("hits of another user", options, argc, argv);
    const size_t count = number ? strtoull(number, NULL, 0) : SAMPLES;
    if (geteuid() != 0) {
        fprintf(stderr, "bench_hits: skipped, only root can be two users\n");
        return report_end(report);
    }
    daemon_start(&daemon, "cpu");
    let_in(&daemon);
    daemon_fact(&daemon, report, "daemon");
    first = connect_as(&daemon, FIRST_UID);
    second = connect_as(&daemon, SECOND_UID);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        const struct request *request = &requests[i];
        const size_t samples = count / request->less;
        measure(report, request, first, BETWEEN, samples, "of another user");
        measure(report, request, first, 0, samples, "of another user, just before");
        measure(report, request, second, 0, samples / 10, "own (control)");
    }
    shuf_close(first);
    shuf_close(second);
    daemon_stop(&daemon);
    return report_end(report);
}
