/* SPDX-License-Identifier: MIT
 *
 * See metrics_text.h. metrics.def writes simple metrics itself. The functions here write the
 * metrics that have labels, or that need more than one expression.
 */
#include "metrics_text.h"

#include "memory/shortage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LABELS_TEXT = 4 * SHUF__LABEL_TEXT };

/* The users that one reader may see. */
struct view {
    struct shuf__metrics_reader reader;
    struct shuf__accounts_listed listed;
};

/* ---- The daemon ---- */

static void write_build(struct shuf__exposition *x, const struct shuf__service *s)
{
    char labels[LABELS_TEXT], device[SHUF__LABEL_TEXT], id[SHUF__LABEL_TEXT];
    const struct shuf__backend *backend = shuf__engine_backend(s->engine);
    snprintf(labels, sizeof labels,
             "version=\"" SHUF_VERSION_TEXT "\",backend=\"%s\",device=\"%s\",device_id=\"%s\"",
             backend->ops->name, shuf__exposition_escape(device, backend->device),
             shuf__exposition_escape(id, backend->device_id));
    shuf__exposition_number(x, labels, 1);
}

static uint64_t ns_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

static void write_cpu_time(struct shuf__exposition *x)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        shuf__exposition_seconds(x, NULL, ns_of(usage.ru_utime) + ns_of(usage.ru_stime));
}

static void write_resident(struct shuf__exposition *x)
{
    uint64_t bytes;
    if (shuf__resident_bytes(&bytes))
        shuf__exposition_number(x, NULL, bytes);
}

/* ---- Requests ---- */

/* Whether the metrics have rows of this kind: a kind of the protocol, or 0 for a frame that is not
 * a request. */
static bool is_kind(unsigned kind)
{
    return kind == 0 || strcmp(shuf__request_kind_name(kind), "none") != 0;
}

static const char *column_name(unsigned column)
{
    return column == SHUF__COLUMN_DIVIDED ? "DIVIDED" : shuf_status_name((shuf_status)column);
}

static void write_requests(struct shuf__exposition *x, const struct shuf__service *s)
{
    char labels[LABELS_TEXT];
    for (unsigned kind = 0; kind < SHUF__REQUEST_KIND_MAX; kind++)
        for (unsigned column = 0; column < SHUF__COLUMNS; column++) {
            const uint64_t count = s->stats.requests[kind][column];
            const bool shown = column == SHUF_OK && kind != 0 && is_kind(kind);
            if (count == 0 && !shown)
                continue;
            snprintf(labels, sizeof labels, "kind=\"%s\",status=\"%s\"",
                     shuf__request_kind_name(kind), column_name(column));
            shuf__exposition_number(x, labels, count);
        }
}

static void write_durations(struct shuf__exposition *x, const struct shuf__service *s)
{
    char labels[LABELS_TEXT];
    for (unsigned kind = 0; kind < SHUF__REQUEST_KIND_MAX; kind++) {
        if (shuf__histogram_count(&s->stats.durations[kind]) == 0)
            continue;
        snprintf(labels, sizeof labels, "kind=\"%s\"", shuf__request_kind_name(kind));
        shuf__exposition_histogram(x, labels, &s->stats.durations[kind]);
    }
}

static void write_stages(struct shuf__exposition *x, const struct shuf__service *s)
{
    char labels[LABELS_TEXT];
    for (int stage = 0; stage < SHUF__STAGES; stage++) {
        snprintf(labels, sizeof labels, "stage=\"%s\"", shuf__stage_name((enum shuf__stage)stage));
        shuf__exposition_histogram(x, labels, &s->stats.stages[stage]);
    }
}

static void write_values(struct shuf__exposition *x, const struct shuf__service *s)
{
#define RESULT(ENUMERATOR, name) SHUF__RESULT__WHAT_##ENUMERATOR,
    static const unsigned kinds[] = {SHUF__RESULT_KINDS(RESULT) SHUF__REQUEST__BODY_INDEX};
#undef RESULT
    char labels[LABELS_TEXT];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i] == SHUF__RESULT__WHAT_BUFFER) /* its client fills it */
            continue;
        snprintf(labels, sizeof labels, "kind=\"%s\"", shuf__request_kind_name(kinds[i]));
        shuf__exposition_number(x, labels, s->stats.values[kinds[i]]);
    }
}

static void write_served(struct shuf__exposition *x, const struct shuf__service *s)
{
    shuf__exposition_number(x, "way=\"lease\"", s->stats.leased_bytes);
    shuf__exposition_number(x, "way=\"payload\"", s->stats.payload_bytes);
}

static void write_computations(struct shuf__exposition *x, const struct shuf__service *s)
{
    const struct shuf__cache *cache = &s->cache;
    shuf__exposition_number(x, "place=\"host\"", cache->computed_on_host);
    shuf__exposition_number(x, "place=\"device\"", cache->computed - cache->computed_on_host);
}

/* ---- Memory ---- */

enum budget_field { USED, LIMIT, CONFIGURED, IDLE, IDLE_LIMIT, AVAILABLE, TOTAL };

static uint64_t budget_value(const struct shuf__service *s, enum shuf__side side,
                             enum budget_field field)
{
    const struct shuf__budget *budget = &s->allocations.budgets[side];
    const uint64_t values[] = {
        [USED] = budget->used,
        [LIMIT] = budget->limit,
        [CONFIGURED] = budget->max_limit,
        [IDLE] = s->pool.idle_bytes[side],
        [IDLE_LIMIT] = budget->idle_limit,
        [AVAILABLE] = budget->available,
        [TOTAL] = budget->total,
    };
    return values[field];
}

/* The CPU backend has no memory of its own, and so no side "device". */
static void write_budgets(struct shuf__exposition *x, const struct shuf__service *s,
                          enum budget_field field)
{
    const struct shuf__backend *backend = shuf__engine_backend(s->engine);
    shuf__exposition_number(x, "side=\"host\"", budget_value(s, SHUF__SIDE_HOST, field));
    if (shuf__side_of(backend->ops->own) == SHUF__SIDE_DEVICE)
        shuf__exposition_number(x, "side=\"device\"", budget_value(s, SHUF__SIDE_DEVICE, field));
}

/* ---- Users ---- */

static bool may_see(const struct view *v, uint32_t uid)
{
    return v->reader.sees == SHUF__METRICS_ALL_USERS ||
           (v->reader.sees == SHUF__METRICS_ONE_USER && v->reader.uid == uid);
}

enum total_field { REQUESTS, VALUES, DEVICE };

static void write_user_total(struct shuf__exposition *x, const char *labels,
                             const struct shuf__user_total *total, enum total_field field)
{
    if (field == DEVICE)
        shuf__exposition_seconds(x, labels, total->device_ns);
    else
        shuf__exposition_number(x, labels, field == VALUES ? total->values : total->requests);
}

static void write_user_totals(struct shuf__exposition *x, const struct shuf__service *s,
                              const struct view *v, enum total_field field)
{
    char labels[LABELS_TEXT];
    const struct shuf__user_totals *totals = &s->stats.users;
    for (size_t i = 0; i < totals->users; i++) {
        if (!may_see(v, totals->row[i].uid))
            continue;
        snprintf(labels, sizeof labels, "uid=\"%" PRIu32 "\"", totals->row[i].uid);
        write_user_total(x, labels, &totals->row[i], field);
    }
    if (v->reader.sees == SHUF__METRICS_ALL_USERS && shuf__user_totals_others(totals)->requests > 0)
        write_user_total(x, "uid=\"other\"", shuf__user_totals_others(totals), field);
}

enum account_field { CLIENTS, LEASES, BYTES, IDLE_BYTES };

static void write_accounts(struct shuf__exposition *x, const struct view *v,
                           enum account_field field)
{
    char labels[LABELS_TEXT];
    for (unsigned i = 0; i < v->listed.count; i++) {
        const struct shuf__account *account = v->listed.account[i];
        const uint64_t values[] = {account->clients, shuf__account_leases(account),
                                   shuf__account_bytes(account), shuf__account_idle(account)};
        if (!may_see(v, account->uid))
            continue;
        snprintf(labels, sizeof labels, "uid=\"%" PRIu32 "\"", account->uid);
        shuf__exposition_number(x, labels, values[field]);
    }
}

/* ---- The table ---- */

#define SHUF__METRIC(name, type, unit, labels, help, statement)                              \
    static void write_##name(struct shuf__exposition *x, struct shuf__service *s,            \
                             const struct view *v)                                           \
    {                                                                                        \
        static const struct shuf__metric metric = {#name, SHUF__METRIC_##type, unit, labels, \
                                                   help};                                    \
        (void)s, (void)v;                                                                    \
        shuf__exposition_begin_family(x, &metric);                                           \
        statement;                                                                           \
    }
#include "metrics.def"
#undef SHUF__METRIC

static void write_all(struct shuf__exposition *x, struct shuf__service *service,
                      const struct view *view)
{
#define SHUF__METRIC(name, type, unit, labels, help, statement) write_##name(x, service, view);
#include "metrics.def"
#undef SHUF__METRIC
    shuf__exposition_end(x);
}

struct shuf__metrics_reader shuf__metrics_reader_of(uint32_t uid)
{
    return (struct shuf__metrics_reader){
        .sees = shuf__uid_is_privileged(uid) ? SHUF__METRICS_ALL_USERS : SHUF__METRICS_ONE_USER,
        .uid = uid};
}

char *shuf__metrics_text(struct shuf__service *service, struct shuf__metrics_reader reader,
                         enum shuf__exposition_format format, size_t *size)
{
    char *text = NULL;
    char name[SHUF__LABEL_TEXT], common[LABELS_TEXT] = "";
    struct timespec now;
    struct view view = {.reader = reader};
    struct shuf__exposition x = {.out = open_memstream(&text, size),
                                 .format = format,
                                 .hides_requests = reader.sees == SHUF__METRICS_ONE_USER};
    if (!x.out)
        return NULL;
    if (reader.daemon)
        snprintf(common, sizeof common, "daemon=\"%s\"",
                 shuf__exposition_escape(name, reader.daemon));
    x.common = common;
    clock_gettime(CLOCK_REALTIME, &now);
    x.now_seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    x.now_ns = uv_hrtime();
    shuf__allocations_refresh(&service->allocations, SHUF__MEMORY_MEMFD);
    view.listed = shuf__accounts_list(&service->allocations.accounts,
                                      reader.sees == SHUF__METRICS_ONE_USER ? &reader.uid : NULL);
    write_all(&x, service, &view);
    const bool failed = ferror(x.out);
    if (fclose(x.out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}
