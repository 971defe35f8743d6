/* SPDX-License-Identifier: MIT
 *
 * See log_limit.h.
 */
#include "log_limit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)
#define LONGEST_NS (64 * SECOND_NS)

static struct shuf__log_kind *kind_of(struct shuf__log_limits *limits, const char *key)
{
    for (size_t i = 0; i < limits->count; i++)
        if (limits->kind[i].key == key)
            return &limits->kind[i];
    assert(limits->count < SHUF__LOG_KINDS); /* the code has a fixed number of kinds */
    limits->kind[limits->count].key = key;
    return &limits->kind[limits->count++];
}

static void begin_window(struct shuf__log_kind *kind, uint64_t now_ns, uint64_t window_ns)
{
    kind->begin_ns = now_ns;
    kind->window_ns = window_ns < LONGEST_NS ? window_ns : LONGEST_NS;
    kind->logged = kind->held = 0;
}

bool shuf__log_limits_admit(struct shuf__log_limits *limits, const char *key, uint64_t rate,
                            const struct shuf__log_line *line, uint64_t now_ns)
{
    struct shuf__log_kind *kind = kind_of(limits, key);
    if (kind->held == 0 && now_ns - kind->begin_ns >= kind->window_ns)
        begin_window(kind, now_ns, SECOND_NS);
    if (rate == 0 || kind->logged < rate) {
        kind->logged++;
        return true;
    }
    if (kind->held++ == 0) {
        limits->held_kinds++;
        kind->line = *line;
    }
    limits->held_lines++;
    return false;
}

static void sum_up(const struct shuf__log_kind *kind, struct shuf__log_line *sum)
{
    *sum = kind->line;
    snprintf(sum->text, sizeof sum->text, "%" PRIu64 " more of these in %" PRIu64 " s: %.400s",
             kind->held, kind->window_ns / SECOND_NS, kind->line.text);
}

bool shuf__log_limits_sum_up(struct shuf__log_limits *limits, uint64_t now_ns,
                             struct shuf__log_line *sum)
{
    for (size_t i = 0; i < limits->count && limits->held_kinds > 0; i++) {
        struct shuf__log_kind *kind = &limits->kind[i];
        if (kind->held == 0 || now_ns - kind->begin_ns < kind->window_ns)
            continue;
        sum_up(kind, sum);
        begin_window(kind, now_ns, 2 * kind->window_ns);
        limits->held_kinds--;
        return true;
    }
    return false;
}
