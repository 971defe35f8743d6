/* SPDX-License-Identifier: MIT
 *
 * See top_sample.h.
 */
#include "top_sample.h"

#include "clock.h"
#include "metric_samples.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* True for a request for results, false for one about the daemon. */
static bool is_work(const struct shuf__metric_sample *metric)
{
    static const char *const kinds[] = {"permute", "stream", "shuffle", "exchange",
                                        "index",   "buffer", "write"};
    const char *kind = shuf__metric_label_of(metric, "kind");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

static void add_requests(struct shuf__top_sample *to, const struct shuf__metric_sample *metric)
{
    if (!is_work(metric))
        return;
    to->requests += metric->value;
    if (strcmp(shuf__metric_label_of(metric, "status"), "OK") != 0)
        to->failed += metric->value;
}

/* Adds a bucket of one kind to the sum. All kinds have the same bounds, in the same order. */
static void add_bucket(struct shuf__top_sample *to, const struct shuf__metric_sample *metric)
{
    unsigned i = 0;
    const double bound = strtod(shuf__metric_label_of(metric, "le"), NULL);
    if (!is_work(metric))
        return;
    while (i < to->buckets && to->bound[i] != bound)
        i++;
    if (i == SHUF__TOP_BUCKETS)
        return;
    to->bound[i] = bound;
    to->bucket[i] += metric->value;
    to->buckets += i == to->buckets;
}

static double *stage_of(double of[SHUF__TOP_STAGES], const struct shuf__metric_sample *metric)
{
    static const char *const names[] = {"queue", "device", "reply"};
    const char *stage = shuf__metric_label_of(metric, "stage");
    for (int i = 0; i < SHUF__TOP_STAGES - 1; i++)
        if (strcmp(stage, names[i]) == 0)
            return &of[i];
    return &of[SHUF__TOP_REPLY];
}

static void add_metric(struct shuf__top_sample *to, const struct shuf__metric_sample *metric)
{
    const char *name = metric->name;
    const bool device = strcmp(shuf__metric_label_of(metric, "side"), "device") == 0;
    if (strcmp(name, "shufd_requests_total") == 0)
        add_requests(to, metric);
    else if (strcmp(name, "shufd_request_duration_seconds_bucket") == 0)
        add_bucket(to, metric);
    else if (strcmp(name, "shufd_stage_duration_seconds_sum") == 0)
        *stage_of(to->stage_sum, metric) = metric->value;
    else if (strcmp(name, "shufd_stage_duration_seconds_count") == 0)
        *stage_of(to->stage_count, metric) = metric->value;
    else if (strcmp(name, "shufd_values_total") == 0)
        to->values += metric->value;
    else if (strcmp(name, "shufd_slow_requests_total") == 0)
        to->slow = metric->value;
    else if (strcmp(name, "shufd_memory_used_bytes") == 0 && device)
        to->device_used = metric->value;
    else if (strcmp(name, "shufd_memory_limit_bytes") == 0 && device)
        to->device_limit = metric->value;
}

static shuf_status read_metrics(shuf *handle, struct shuf__top_sample *sample)
{
    char *text;
    struct shuf__metric_sample metric;
    shuf_status status = shuf_daemon_metrics(handle, SHUF_PROMETHEUS, &text);
    for (const char *at = text; status == SHUF_OK && shuf__metric_sample_next(&at, &metric);)
        add_metric(sample, &metric);
    free(text);
    return status;
}

static bool add_lease(void *context, const shuf_lease_entry *entry)
{
    struct shuf__top_sample *sample = context;
    sample->lease[sample->leases++] = *entry;
    return sample->leases < SHUF__TOP_LEASES;
}

shuf_status shuf__top_sample_read(shuf *handle, struct shuf__top_sample *sample)
{
    memset(sample, 0, sizeof *sample);
    shuf_status status = shuf_daemon_status(handle, &sample->daemon);
    if (status == SHUF_OK)
        status = read_metrics(handle, sample);
    sample->at_ns = shuf__clock_ns();
    if (status == SHUF_OK)
        status = shuf_leases(handle, add_lease, sample);
    return status == SHUF_CANCELLED ? SHUF_OK : status;
}
