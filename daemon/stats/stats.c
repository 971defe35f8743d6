/* SPDX-License-Identifier: MIT
 *
 * See stats.h.
 */
#include "stats.h"

#include "message.h"

/* ---- Histograms ---- */

#define DECADE(ns) (ns), (ns)*5 / 2, (ns)*5

const uint64_t shuf__bucket_bounds[SHUF__BUCKETS - 1] = {
    DECADE(UINT64_C(1000)),       DECADE(UINT64_C(10000)),       DECADE(UINT64_C(100000)),
    DECADE(UINT64_C(1000000)),    DECADE(UINT64_C(10000000)),    DECADE(UINT64_C(100000000)),
    DECADE(UINT64_C(1000000000)), DECADE(UINT64_C(10000000000)), UINT64_C(100000000000)};

static unsigned find_bucket(uint64_t ns)
{
    unsigned bucket = 0;
    while (bucket < SHUF__BUCKETS - 1 && ns > shuf__bucket_bounds[bucket])
        bucket++;
    return bucket;
}

static void observe(struct shuf__histogram *histogram, uint64_t ns, struct shuf__request_id request,
                    uint64_t at_ns)
{
    const unsigned bucket = find_bucket(ns);
    histogram->count[bucket]++;
    histogram->sum_ns += ns;
    histogram->last[bucket] = (struct shuf__exemplar){request, ns ? ns : 1, at_ns};
}

uint64_t shuf__histogram_count(const struct shuf__histogram *histogram)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < SHUF__BUCKETS; i++)
        count += histogram->count[i];
    return count;
}

/* ---- One request ---- */

const char *shuf__stage_name(enum shuf__stage stage)
{
    static const char *const names[] = {"queue", "device", "reply"};
    return names[stage];
}

const char *shuf__request_kind_name(unsigned kind)
{
    static const char *const names[SHUF__REQUEST_KIND_MAX] = {
#define OTHER(ENUMERATOR, name) [SHUF__REQUEST__BODY_##ENUMERATOR] = #name,
#define RESULT(ENUMERATOR, name) [SHUF__RESULT__WHAT_##ENUMERATOR] = #name,
        SHUF__OTHER_KINDS(OTHER) SHUF__RESULT_KINDS(RESULT)
#undef RESULT
#undef OTHER
    };
    return kind < SHUF__REQUEST_KIND_MAX && names[kind] ? names[kind] : "none";
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

bool shuf__request_stage(const struct shuf__request_record *record, enum shuf__stage stage,
                         uint64_t *ns)
{
    const uint64_t started = later(record->started_ns, record->received_ns);
    switch (stage) {
    case SHUF__STAGE_QUEUE:
        *ns = started - record->received_ns;
        return record->started_ns != 0;
    case SHUF__STAGE_DEVICE:
        *ns = record->computed_ns - started;
        return record->started_ns != 0 && record->computed_ns >= started;
    default:
        *ns = record->sent_ns - record->replied_ns;
        return record->replied_ns != 0;
    }
}

/* ---- Totals of users ---- */

struct shuf__user_total *shuf__user_total_of(struct shuf__user_totals *totals, uint32_t uid)
{
    for (size_t i = 0; i < totals->users; i++)
        if (totals->row[i].uid == uid)
            return &totals->row[i];
    if (totals->users == SHUF__USER_TOTALS - 1)
        return &totals->row[SHUF__USER_TOTALS - 1];
    struct shuf__user_total *fresh = &totals->row[totals->users++];
    fresh->uid = uid;
    return fresh;
}

/* ---- All counts ---- */

static unsigned column_of(const struct shuf__request_record *record, shuf_status status)
{
    if (shuf__request_is_divided(record, status))
        return SHUF__COLUMN_DIVIDED;
    return status >= 0 && status <= SHUF_INTERNAL ? (unsigned)status : SHUF_INTERNAL;
}

static void count(struct shuf__stats *stats, const struct shuf__request_record *record,
                  shuf_status status)
{
    const unsigned row = record->kind < SHUF__REQUEST_KIND_MAX ? record->kind : 0;
    stats->requests[row][column_of(record, status)]++;
}

static void observe_stages(struct shuf__stats *stats, const struct shuf__request_record *record,
                           struct shuf__user_total *user)
{
    for (int stage = 0; stage < SHUF__STAGES; stage++) {
        uint64_t ns;
        if (!shuf__request_stage(record, (enum shuf__stage)stage, &ns))
            continue;
        observe(&stats->stages[stage], ns, record->request, record->sent_ns);
        user->device_ns += stage == SHUF__STAGE_DEVICE ? ns : 0;
    }
}

void shuf__stats_sent(struct shuf__stats *stats, const struct shuf__request_record *record,
                      struct shuf__user_total *user)
{
    const unsigned kind = record->kind < SHUF__REQUEST_KIND_MAX ? record->kind : 0;
    count(stats, record, record->status);
    user->requests++;
    if (record->received_ns == 0) /* the connection timed out before a complete frame */
        return;
    observe(&stats->durations[kind], shuf__request_duration(record), record->request,
            record->sent_ns);
    observe_stages(stats, record, user);
    stats->values[kind] += record->values;
    user->values += record->values;
}

void shuf__stats_cancelled(struct shuf__stats *stats, const struct shuf__request_record *record,
                           struct shuf__user_total *user)
{
    count(stats, record, SHUF_CANCELLED);
    user->requests++;
}
