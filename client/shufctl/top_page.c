/* SPDX-License-Identifier: MIT
 *
 * See top_page.h.
 */
#include "top_page.h"

#include "error.h"
#include "units.h"
#include "user.h"

#include <inttypes.h>
#include <math.h>

enum { BAR = 24 };

struct page {
    const struct shuf__top_sample *before, *now;
    double seconds; /* between them */
    FILE *to;
};

static double rate(const struct page *page, double before, double now)
{
    return page->seconds > 0 ? (now - before) / page->seconds : 0;
}

uint64_t shuf__top_quantile(const struct shuf__top_sample *before,
                            const struct shuf__top_sample *now, double share)
{
    if (now->buckets == 0)
        return 0;
    const unsigned last = now->buckets - 1;
    const double all = now->bucket[last] - (before->buckets > last ? before->bucket[last] : 0);
    for (unsigned i = 0; i < last && all > 0; i++) {
        const double count = now->bucket[i] - (before->buckets > i ? before->bucket[i] : 0);
        if (count >= share * all)
            return (uint64_t)llround(now->bound[i] * 1e9);
    }
    return all > 0 && last > 0 ? (uint64_t)llround(now->bound[last - 1] * 1e9) : 0;
}

static const char *quantile(const struct page *page, double share, char text[SHUF__UNITS_TEXT])
{
    const uint64_t ns = shuf__top_quantile(page->before, page->now, share);
    return ns ? shuf__units_time(text, ns) : "-";
}

static const char *mean(const struct page *page, enum shuf__top_stage stage,
                        char text[SHUF__UNITS_TEXT])
{
    const double count = page->now->stage_count[stage] - page->before->stage_count[stage];
    const double sum = page->now->stage_sum[stage] - page->before->stage_sum[stage];
    return count > 0 ? shuf__units_time(text, (uint64_t)(sum / count * 1e9)) : "-";
}

static void print_head(const struct page *page, const char *socket)
{
    char up[SHUF__UNITS_TEXT];
    const shuf_daemon *d = &page->now->daemon;
    fprintf(page->to, "%s, pid %" PRIu64 ", up %s, on %s\n%s: %s\n\n", d->version, d->pid,
            shuf__units_time(up, d->uptime_ms * 1000000), socket, d->backend, d->device);
}

static void print_load(const struct page *page)
{
    char values[SHUF__UNITS_TEXT], a[SHUF__UNITS_TEXT], b[SHUF__UNITS_TEXT], c[SHUF__UNITS_TEXT];
    const struct shuf__top_sample *x = page->before, *y = page->now;
    const shuf_daemon *d = &y->daemon;
    fprintf(page->to, "requests    %.1f/s, %.1f/s failed, %s, %.0f slow since the start\n",
            rate(page, x->requests, y->requests), rate(page, x->failed, y->failed),
            shuf__units_rate(values, (uint64_t)fmax(0, y->values - x->values),
                             (uint64_t)(page->seconds * 1e9)),
            y->slow);
    fprintf(page->to, "latency     50%% within %s, 90%% within %s, 99%% within %s\n",
            quantile(page, 0.5, a), quantile(page, 0.9, b), quantile(page, 0.99, c));
    fprintf(page->to, "stages      queue %s, device %s, reply %s on average\n",
            mean(page, SHUF__TOP_QUEUE, a), mean(page, SHUF__TOP_DEVICE, b),
            mean(page, SHUF__TOP_REPLY, c));
    fprintf(page->to, "queue       %" PRIu64 " of %" PRIu64 " job%s, %" PRIu64 " client%s\n",
            d->queued, d->queue_limit, shuf__plural(d->queue_limit), d->clients,
            shuf__plural(d->clients));
    fprintf(page->to, "cache       %.1f/s computed, %.1f/s hits, %.1f/s joined, %.1f/s evicted\n",
            rate(page, (double)x->daemon.computed, (double)d->computed),
            rate(page, (double)x->daemon.hits, (double)d->hits),
            rate(page, (double)x->daemon.joined, (double)d->joined),
            rate(page, (double)x->daemon.evicted, (double)d->evicted));
}

static void print_bar(const struct page *page, const char *name, double used, double idle,
                      double limit)
{
    char bar[BAR + 1], text[SHUF__UNITS_TEXT], most[SHUF__UNITS_TEXT], kept[SHUF__UNITS_TEXT];
    for (int i = 0; i < BAR; i++) {
        const double place = limit > 0 ? (double)i / BAR * limit : INFINITY;
        bar[i] = place < used - idle ? '#' : place < used ? '+' : '.';
    }
    bar[BAR] = '\0';
    fprintf(page->to, "%-11s [%s] %s of %s, %s of it idle\n", name, bar,
            shuf__units_memory(text, (uint64_t)used), shuf__units_memory(most, (uint64_t)limit),
            shuf__units_memory(kept, (uint64_t)idle));
}

static void print_memory(const struct page *page)
{
    const shuf_daemon *d = &page->now->daemon;
    print_bar(page, "host", (double)d->host_used, (double)d->host_idle, (double)d->host_limit);
    if (page->now->device_limit > 0)
        print_bar(page, "device", page->now->device_used, (double)d->device_idle,
                  page->now->device_limit);
    fprintf(page->to, "blocks      %" PRIu64 ", %" PRIu64 " pending free, %" PRIu64 " buffer%s\n",
            d->blocks, d->pending_free, d->buffers, shuf__plural(d->buffers));
}

static void print_users(const struct page *page)
{
    char name[SHUF__USER_TEXT], bytes[SHUF__UNITS_TEXT], idle[SHUF__UNITS_TEXT];
    const shuf_daemon *d = &page->now->daemon;
    fprintf(page->to, "\n%-16s %8s %8s %8s %10s %10s\n", "USER", "CLIENTS", "LEASES", "BLOCKS",
            "MEMORY", "IDLE");
    for (unsigned i = 0; i < d->users; i++) {
        const shuf_user *u = &d->user[i];
        fprintf(page->to, "%-16.16s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %10s %10s\n",
                shuf__user_text(name, u->uid), u->clients, u->leases, u->blocks,
                shuf__units_memory(bytes, u->bytes), shuf__units_memory(idle, u->idle));
    }
    if (d->other_users > 0)
        fprintf(page->to, "and %" PRIu64 " user%s with less memory\n", d->other_users,
                shuf__plural(d->other_users));
}

static const char *kind_of(const shuf_lease_entry *e)
{
    static const char *const names[] = {"permute", "stream", "exchange", "shuffle", "buffer"};
    return e->request.kind < SHUF_OTHER_KIND ? names[e->request.kind] : "other";
}

static uint64_t size_of(const shuf_lease_entry *e)
{
    return e->request.kind == SHUF_PERMUTATION ? e->request.permutation.n : e->count;
}

static void print_leases(const struct page *page)
{
    char name[SHUF__USER_TEXT], bytes[SHUF__UNITS_TEXT], age[SHUF__UNITS_TEXT];
    fprintf(page->to, "\n%-8s %-8s %-12s %-9s %-10s %10s %10s %s\n", "LEASE", "PID", "USER", "KIND",
            "TRANSPORT", "BLOCK", "AGE", "N");
    for (unsigned i = 0; i < page->now->leases; i++) {
        const shuf_lease_entry *e = &page->now->lease[i];
        fprintf(page->to, "%-8" PRIu64 " %-8" PRIu64 " %-12.12s %-9s %-10s %10s %10s %" PRIu64 "\n",
                e->id, e->pid, shuf__user_text(name, e->uid), kind_of(e),
                shuf_transport_name(e->transport), shuf__units_memory(bytes, e->block_bytes),
                shuf__units_time(age, e->age_ms * 1000000), size_of(e));
    }
}

void shuf__top_print(const char *socket, const struct shuf__top_sample *before,
                     const struct shuf__top_sample *now, FILE *to)
{
    const struct page page = {before, now, (double)(now->at_ns - before->at_ns) / 1e9, to};
    print_head(&page, socket);
    print_load(&page);
    print_memory(&page);
    print_users(&page);
    print_leases(&page);
}
