/* SPDX-License-Identifier: MIT
 *
 * See stats.h.
 */
#include "stats.h"

static uint64_t *count_of(struct shuf__stats *stats, unsigned kind, shuf_status status)
{
    const unsigned row = kind < SHUF__REQUEST_KIND_MAX ? kind : 0;
    const unsigned column = (unsigned)status < SHUF__STATUSES ? (unsigned)status : SHUF_INTERNAL;
    return &stats->requests[row][column];
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
    ++*count_of(stats, kind, record->status);
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
    ++*count_of(stats, record->kind, SHUF_CANCELLED);
    user->requests++;
}
