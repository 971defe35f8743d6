/* SPDX-License-Identifier: MIT
 *
 * See request_record.h.
 */
#include "request_record.h"

#include "request_kinds.h"

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
