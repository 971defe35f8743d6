/* SPDX-License-Identifier: MIT
 *
 * See stats.h.
 */
#include "stats.h"

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
        shuf__histogram_observe(&stats->stages[stage], ns, record->request, record->sent_ns);
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
    shuf__histogram_observe(&stats->durations[kind], shuf__request_duration(record),
                            record->request, record->sent_ns);
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
