/* SPDX-License-Identifier: MIT
 *
 * Latency of small requests by one client of libshuf, from the call until the values can be read.
 * Each request has another epoch, so the cache never has its result. Each request also releases the
 * lease of the request before it.
 */
#include "clock.h"
#include "context.h"
#include "daemon.h"
#include "expected.h"
#include "process.h"
#include "python_peer.h"
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, SAMPLES = 20000, BATCH = 500, WARM_UP = 1000, CHECKED = 500 };

static const uint64_t seed = 7;

/* Compares the values of every CHECKED-th lease, outside of the measured time. */
static void check(shuf *handle, const shuf_lease *lease, const char *algorithm, uint64_t epoch)
{
    uint32_t values[N];
    if (lease->shared)
        die("epoch %llu: the lease is shared, expected a new result", (unsigned long long)epoch);
    if (epoch % CHECKED != 0)
        return;
    if (shuf_lease_read(handle, lease, 0, sizeof values, values) != SHUF_OK)
        die("lease: %s", shuf_message(handle));
    if (!is_expected(algorithm, values, N, seed, epoch))
        die("epoch %llu: wrong values", (unsigned long long)epoch);
}

struct row {
    const char *algorithm;
    uint64_t epoch;
    double ns[SAMPLES];
};

/* Runs `count` requests. Unless `ns` is NULL, it receives their times. */
static void time_requests(shuf *handle, struct row *row, const shuf_lease_options *options,
                          shuf_lease **lease, double *ns, int count)
{
    shuf_request request = {.permutation = {.n = N, .seed = seed, .algorithm = row->algorithm}};
    for (int i = 0; i < count; i++) {
        request.permutation.epoch = ++row->epoch;
        double start = now_ns();
        if (shuf_lease_take(handle, &request, options, lease) != SHUF_OK)
            die("%s: %s", shuf_transport_name(options->transports), shuf_message(handle));
        if (ns)
            ns[i] = now_ns() - start;
        check(handle, *lease, row->algorithm, request.permutation.epoch);
    }
}

/* Batches of the algorithms alternate, so other load on the machine affects both alike. */
static void transport_rows(struct report *report, const struct daemon *daemon,
                           shuf_transport transport)
{
    static struct row rows[] = {{.algorithm = "primefold"}, {.algorithm = "philox24"}};
    enum { ROWS = sizeof rows / sizeof *rows };
    shuf *handle = daemon_connect(daemon);
    shuf_lease *lease = NULL;
    shuf_lease_options options = {.transports = transport};
    char name[96];
    for (int r = 0; r < ROWS; r++) {
        rows[r].epoch = 0;
        time_requests(handle, &rows[r], &options, &lease, NULL, WARM_UP);
    }
    for (int i = 0; i < SAMPLES; i += BATCH)
        for (int r = 0; r < ROWS; r++)
            time_requests(handle, &rows[r], &options, &lease, rows[r].ns + i, BATCH);
    if (shuf_lease_release(handle, &lease) != SHUF_OK)
        die("%s: %s", shuf_transport_name(transport), shuf_message(handle));
    shuf_close(handle);
    for (int r = 0; r < ROWS; r++) {
        snprintf(name, sizeof name, "shufd on %s, %s, %s", daemon->backend, rows[r].algorithm,
                 shuf_transport_name(transport));
        report_latency(report, name, N, rows[r].ns, SAMPLES);
    }
}

static void peer_row(struct report *report, const char *device)
{
    const char *arguments[] = {"--device", device, NULL}, *version;
    double *ns;
    char name[96];
    json_t *peer = python_peer_run(report, "randperm_latency.py", arguments);
    if (!peer)
        return;
    size_t count = python_peer_numbers(peer, "ns", &ns);
    if (json_unpack(peer, "{s:s}", "torch", &version) == 0)
        report_fact(report, "torch", version);
    snprintf(name, sizeof name, "torch.randperm in process, %s", device);
    report_latency(report, name, N, ns, count);
    free(ns);
    json_decref(peer);
}

/* Each transport has a new daemon. All transports use the same epochs, and their results must not
 * be in the cache. */
void requests_latency(struct report *report, const char *backend)
{
    static const struct {
        shuf_transport transport;
        bool cuda;
    } rows[] = {
        {SHUF_CUDA_FD, true}, {SHUF_CUDA_IPC, true}, {SHUF_MEMFD, false}, {SHUF_INLINE, false}};
    struct daemon daemon;
    bool cuda = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        daemon_start(&daemon, backend);
        cuda = strcmp(daemon.backend, "cuda") == 0;
        const char *why = cuda ? context_hold(daemon.device_id) : NULL;
        if (why)
            die("CUDA: %s", why);
        if (i == 0)
            daemon_fact(&daemon, report, "shufd, latency");
        if (cuda || !rows[i].cuda)
            transport_rows(report, &daemon, rows[i].transport);
        daemon_stop(&daemon);
    }
    if (cuda)
        peer_row(report, "cuda");
    peer_row(report, "cpu");
}
