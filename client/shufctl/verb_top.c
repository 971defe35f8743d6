/* SPDX-License-Identifier: MIT
 *
 * `shufctl top`: a live view of the daemon on a terminal; elsewhere it prints pages of text.
 */
#include "verb_top.h"

#include "clock.h"
#include "connect.h"
#include "error.h"
#include "exit.h"
#include "number.h"
#include "option.h"
#include "units.h"
#include "user.h"
#include "verb_metrics.h"
#include "verb_options.h"
#include "verbs.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#ifdef SHUF_HAVE_NCURSES
#include <curses.h>
#include <term.h>

static const uint64_t glance_ns = 200000000;
#endif

/* ---- The options ---- */

enum key { KEY_INTERVAL = 0x400, KEY_COUNT };

struct top_options {
    struct shuf__daemon_options daemon;
    uint64_t interval_ns, count; /* 0 pages: no end */
};

static const struct argp_option option_table[] = {
    {"interval", KEY_INTERVAL, "TIME", 0, "Time between two pages, 100ms or more (default 1s)", 0},
    {"count", KEY_COUNT, "N", 0, "End after so many pages", 0},
    {0},
};

static error_t parse_top_option(int key, char *text, struct argp_state *state)
{
    struct top_options *options = state->input;
    struct shuf__error error;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case KEY_INTERVAL:
        if (shuf__duration_parse("--interval", text, 100000000, UINT64_C(3600000000000),
                                 &options->interval_ns, &error))
            shuf__option_fail(state, EX_USAGE, "%s", error.text);
        return 0;
    case KEY_COUNT:
        shuf__option_number_in(state, "--count", text, 1, UINT32_MAX, &options->count);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- A sample ---- */

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

/* Fails as the calls of the library do, with the message in the handle. */
static shuf_status read_sample(shuf *handle, struct shuf__top_sample *sample)
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

/* ---- The page ---- */

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

/* Prints the page: the state `now`, and the rates since `before`. */
static void print_page(const char *socket, const struct shuf__top_sample *before,
                       const struct shuf__top_sample *now, FILE *to)
{
    const struct page page = {before, now, (double)(now->at_ns - before->at_ns) / 1e9, to};
    print_head(&page, socket);
    print_load(&page);
    print_memory(&page);
    print_users(&page);
    print_leases(&page);
}

/* ---- Where the pages go ---- */

static void pause_ns(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
                                  .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

static void show_text(const char *page)
{
    puts(page);
    fflush(stdout);
}

static bool wait_text(uint64_t ns)
{
    pause_ns(ns);
    return !ferror(stdout);
}

#ifdef SHUF_HAVE_NCURSES

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

static void end_screen(void)
{
    if (!isendwin())
        endwin();
}

/* initscr() would end the program for a terminal without a description, and a failed newterm()
 * keeps memory. */
static bool is_known_terminal(void)
{
    int found;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}

/* False if curses does not know the terminal, as in a container without its description. */
static bool begin_screen(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    if (!is_known_terminal() || !newterm(NULL, stdout, stdin))
        return false;
    atexit(end_screen);
    cbreak();
    noecho();
    curs_set(0);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return true;
}

/* Shows the page without the lines that do not fit. */
static void show_screen(const char *page)
{
    int row = 0;
    erase();
    for (const char *line = page; *line && row < LINES - 1; row++) {
        const size_t length = strcspn(line, "\n");
        mvaddnstr(row, 0, line, length < (size_t)COLS ? (int)length : COLS);
        line += length + (line[length] == '\n');
    }
    mvaddnstr(LINES - 1, 0, "q: quit", COLS);
    refresh();
}

/* False if the user wants to leave. A signal that comes just before getch() does not end it, so it
 * waits for a short time only. */
static bool wait_screen(uint64_t ns)
{
    const uint64_t end_ns = shuf__clock_ns() + ns;
    for (uint64_t now_ns; !interrupted && (now_ns = shuf__clock_ns()) < end_ns;) {
        const uint64_t left_ns = end_ns - now_ns;
        timeout((int)((left_ns < glance_ns ? left_ns : glance_ns) / 1000000) + 1);
        const int key = getch();
        if (key != ERR)
            return key != 'q' && key != 'Q';
    }
    return !interrupted;
}

#endif

struct screen {
    void (*show)(const char *page);
    bool (*wait)(uint64_t ns);
};

static struct screen begin(void)
{
#ifdef SHUF_HAVE_NCURSES
    if (isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && begin_screen())
        return (struct screen){show_screen, wait_screen};
#endif
    return (struct screen){show_text, wait_text};
}

/* False when out of memory. Without memory for its last byte, fclose() succeeds without a page. */
static bool show_page(const struct screen *screen, const char *socket,
                      const struct shuf__top_sample *before, const struct shuf__top_sample *now)
{
    char *page = NULL;
    size_t size;
    FILE *to = open_memstream(&page, &size);
    if (!to)
        return false;
    print_page(socket, before, now, to);
    const bool failed = ferror(to), is_complete = fclose(to) == 0 && !failed && page;
    if (is_complete)
        screen->show(page);
    free(page);
    return is_complete;
}

/* Sets *has_memory to false if there is no memory for a page. */
static shuf_status watch_daemon(shuf *handle, const struct top_options *options, bool *has_memory)
{
    static struct shuf__top_sample samples[2];
    shuf_status status = read_sample(handle, &samples[0]);
    if (status != SHUF_OK)
        return status;
    const struct screen screen = begin();
    for (uint64_t page = 0; options->count == 0 || page < options->count; page++) {
        struct shuf__top_sample *before = &samples[page % 2], *now = &samples[1 - page % 2];
        if (!screen.wait(options->interval_ns))
            return SHUF_OK;
        if ((status = read_sample(handle, now)) != SHUF_OK)
            return status;
        *has_memory = show_page(&screen, shuf_socket(handle), before, now);
        if (!*has_memory)
            return SHUF_OK;
    }
    return SHUF_OK;
}

static int show_top(shuf *handle, const struct top_options *options)
{
    bool has_memory = true;
    const shuf_status status = watch_daemon(handle, options, &has_memory);
#ifdef SHUF_HAVE_NCURSES
    if (stdscr)
        end_screen();
#endif
    if (!has_memory)
        return shuf__fail_with(EX_OSERR, "top: out of memory");
    return status == SHUF_OK ? EX_OK : shuf__fail_call(handle, status, &options->daemon);
}

int shuf__verb_top(int argc, char **argv)
{
    static const struct argp_child children[] = {{&shuf__connection_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_top_option,
        .doc = "Shows requests, latency, memory, users and leases of the daemon, as they change.",
        .children = children,
    };
    struct top_options options = {.interval_ns = 1000000000};
    shuf *handle;
    shuf__options_parse(&argp, argc, argv, &options);
    int code = shuf__connect_or_fail(&handle, &options.daemon);
    if (code == EX_OK)
        code = show_top(handle, &options);
    shuf_close(handle);
    return code;
}
