/* SPDX-License-Identifier: MIT
 *
 * Who computes results for the host sooner: the latency of permutations of 10^3 to 10^7 values,
 * u32, into host memory (memfd) and as copies (inline), from daemons with host_results = auto, host
 * and device, and from one with the backend cpu; then into device memory (cuda-fd), from the first
 * daemon alone. For 1000 values also after 20 ms without a request. One client waits for each
 * result. No result is in the cache. The daemons take turns, so other load affects them alike.
 */
#include "daemon.h"
#include "process.h"
#include "report.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DAEMONS = 4, MOST = 2000, BATCHES = 10 };

struct subject {
    const char *name, *backend, *config;
    struct daemon daemon;
    shuf *handle;
    shuf_lease *lease;
    double ns[MOST];
};

static struct subject subjects[DAEMONS] = {
    {.name = "auto", .backend = "cuda", .config = "host_results = auto\n"},
    {.name = "host", .backend = "cuda", .config = "host_results = host\n"},
    {.name = "device", .backend = "cuda", .config = "host_results = device\n"},
    {.name = "cpu", .backend = "cpu", .config = ""},
};

static const struct row {
    uint64_t n;
    int samples; /* a multiple of BATCHES */
    int idle_ms; /* before each request */
} rows[] = {{1000, 2000, 0},   {10000, 2000, 0},  {100000, 1000, 0},
            {1000000, 300, 0}, {10000000, 60, 0}, {1000, 100, 20}};

static uint64_t epoch; /* of the last request, another one for each */

static void time_requests(struct subject *s, const struct row *row, shuf_transport transport,
                          double *ns, int count)
{
    const shuf_lease_options options = {.transports = transport};
    for (int i = 0; i < count; i++) {
        const shuf_request request = {.permutation = {.n = row->n, .seed = 7, .epoch = ++epoch}};
        nanosleep(&(struct timespec){.tv_nsec = row->idle_ms * 1000000L}, NULL);
        const double start = now_ns();
        if (shuf_lease_take(s->handle, &request, &options, &s->lease) != SHUF_OK)
            die("%s: %s", s->name, shuf_message(s->handle));
        if (ns)
            ns[i] = now_ns() - start;
    }
}

/* Of the first `daemons` of them. Their batches alternate. */
static void measure(struct report *report, const struct row *row, shuf_transport transport,
                    int daemons)
{
    const int batch = row->samples / BATCHES;
    char label[96];
    for (int d = 0; d < daemons; d++)
        time_requests(&subjects[d], row, transport, NULL, batch); /* memory and threads get ready */
    for (int i = 0; i < BATCHES; i++)
        for (int d = 0; d < daemons; d++)
            time_requests(&subjects[d], row, transport, subjects[d].ns + i * batch, batch);
    for (int d = 0; d < daemons; d++) {
        struct subject *s = &subjects[d];
        snprintf(label, sizeof label, "%s, %s%s", shuf_transport_name(transport), s->name,
                 row->idle_ms ? ", after 20 ms" : "");
        report_latency(report, label, row->n, s->ns, (size_t)row->samples);
        if (shuf_lease_release(s->handle, &s->lease) != SHUF_OK)
            die("%s: %s", s->name, shuf_message(s->handle));
    }
}

static void start(struct subject *s, struct report *report)
{
    char log[64];
    snprintf(log, sizeof log, "%s.log", s->name);
    daemon_start_with(&s->daemon, s->name, s->backend, s->config, process_file(log));
    daemon_fact(&s->daemon, report, s->name);
    s->handle = daemon_connect(&s->daemon);
}

/* How many of the results the host has computed. */
static void stop(struct subject *s, struct report *report)
{
    shuf_daemon status;
    char text[96];
    daemon_status(&s->daemon, &status);
    snprintf(text, sizeof text, "%llu of %llu", (unsigned long long)status.computed_on_host,
             (unsigned long long)status.computed);
    snprintf(status.device, sizeof status.device, "computed by the host, %s", s->name);
    report_fact(report, status.device, text);
    shuf_close(s->handle);
    daemon_stop(&s->daemon);
}

static void measure_all(struct report *report, shuf_transport transport, int daemons)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        measure(report, &rows[i], transport, daemons);
}

/* --backend SPEC replaces cuda, so that the program runs without a GPU too. */
int main(int argc, char **argv)
{
    const char *backend = NULL;
    const struct report_option options[] = {{"--backend", "SPEC", &backend}, {0}};
    struct report *report = report_begin_with("placement", options, argc, argv);
    for (int d = 0; d < DAEMONS; d++) {
        if (backend)
            subjects[d].backend = backend;
        start(&subjects[d], report);
    }
    measure_all(report, SHUF_MEMFD, DAEMONS);
    measure_all(report, SHUF_INLINE, DAEMONS);
    for (int d = 1; d < DAEMONS; d++)
        stop(&subjects[d], report);
    if (strcmp(subjects[0].daemon.backend, "cuda") == 0)
        measure_all(report, SHUF_CUDA_FD, 1);
    stop(&subjects[0], report);
    return report_end(report);
}
