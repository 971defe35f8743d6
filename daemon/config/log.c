/* SPDX-License-Identifier: MIT
 *
 * See log.h. A thread of its own writes the lines, because a write may wait for the reader. The
 * flag O_NONBLOCK is no remedy. It belongs to the open file, which other processes share, and a
 * pipe or a terminal of another user cannot be opened again. Files on a network and
 * sd_journal_sendv() wait even with the flag. When the queue is full, new lines are dropped and
 * counted. A crash loses the lines in the queue.
 */
#include "log.h"

#include "error.h"
#include "thread.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* ---- One line, to standard error or the journal ---- */

#ifdef SHUF_HAVE_SYSTEMD

#include <sys/uio.h>
#include <systemd/sd-journal.h>

#define JOURNAL "/run/systemd/journal/socket"

enum { FIELDS = 9, FIELD_TEXT = 560 };

struct journal_fields {
    struct iovec part[FIELDS];
    char text[FIELDS][FIELD_TEXT];
    int count;
};

static void add_field(struct journal_fields *fields, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_field(struct journal_fields *fields, const char *format, ...)
{
    va_list args;
    char *text = fields->text[fields->count];
    va_start(args, format);
    vsnprintf(text, FIELD_TEXT, format, args);
    va_end(args);
    fields->part[fields->count++] = (struct iovec){text, strlen(text)};
}

/* Returns false if the journal does not accept the line. */
static bool send_to_journal(int priority, const char *text, const struct shuf__log_request *request)
{
    struct journal_fields fields = {.count = 0};
    if (access(JOURNAL, W_OK) != 0) /* sd_journal_sendv() would lose the line without an error */
        return false;
    add_field(&fields, "MESSAGE=%s", text);
    add_field(&fields, "PRIORITY=%d", priority);
    add_field(&fields, "SYSLOG_IDENTIFIER=shufd");
    add_field(&fields, "REQUEST_ID=%s", request->id);
    add_field(&fields, "PEER_PID=%ld", (long)request->pid);
    add_field(&fields, "PEER_UID=%lu", (unsigned long)request->uid);
    add_field(&fields, "KIND=%s", request->kind);
    if (request->n)
        add_field(&fields, "N=%" PRIu64, request->n);
    if (request->duration_us)
        add_field(&fields, "DURATION_US=%" PRIu64, request->duration_us);
    return sd_journal_sendv(fields.part, fields.count) >= 0;
}

#else

/* Returns false if the journal does not accept the line. */
static bool send_to_journal(int priority, const char *text, const struct shuf__log_request *request)
{
    (void)priority;
    (void)text;
    (void)request;
    return false;
}

#endif

enum { PREFIX = 80 };

static const struct {
    const char *name;
    int priority;
} levels[] = {
    [SHUF__LOG_ERROR] = {"error", LOG_ERR},
    [SHUF__LOG_WARNING] = {"warning", LOG_WARNING},
    [SHUF__LOG_INFO] = {"info", LOG_INFO},
    [SHUF__LOG_DEBUG] = {"debug", LOG_DEBUG},
};

const char *shuf__log_level_name(enum shuf__log_level level)
{
    return levels[level].name;
}

/* $JOURNAL_STREAM alone does not prove that stderr is the journal: a program with a redirected
 * stderr inherits it too. So this function compares the device and the inode of stderr with the
 * variable. */
static bool is_journal(void)
{
    struct stat status;
    unsigned long long device, inode;
    const char *stream = getenv("JOURNAL_STREAM");
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

/* Finds out what standard error of this process is. */
static struct shuf__log_output find_output(void)
{
    const bool journal = is_journal();
    return (struct shuf__log_output){.journal = journal, .stamped = !journal};
}

/* "2026-11-22 22:07:31.123 +0000 " */
static int put_time(const struct timespec *time, char *to, size_t size)
{
    struct tm local;
    char day[32], zone[8];
    localtime_r(&time->tv_sec, &local);
    strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local);
    strftime(zone, sizeof zone, "%z", &local);
    return snprintf(to, size, "%s.%03ld %s ", day, time->tv_nsec / 1000000, zone);
}

static int put_prefix(const struct shuf__log_line *line, const struct shuf__log_output *output,
                      char to[PREFIX])
{
    if (output->journal)
        return snprintf(to, PREFIX, "<%d>", levels[line->level].priority);
    return output->stamped ? put_time(&line->time, to, PREFIX) : 0;
}

/* Writes in a loop, because a write may take only a part of the line. Waits if another process has
 * made the open file non-blocking. */
static bool write_whole(const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t wrote = write(STDERR_FILENO, bytes, size);
        if (wrote < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
        else if (wrote < 0 && errno != EINTR)
            return false; /* an error of the log itself cannot be logged */
        bytes += wrote > 0 ? wrote : 0;
        size -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

/* Writes a line. May wait for the program that reads standard error. False: the line is lost. */
static bool write_line(const struct shuf__log_line *line, const struct shuf__log_output *output)
{
    char all[PREFIX + SHUF__LOG_TEXT + 16];
    int used = put_prefix(line, output, all);
    const char *text = all + used;
    used += snprintf(all + used, sizeof all - (size_t)used, "%s: %s", levels[line->level].name,
                     line->text);
    if (output->journal && line->has_request &&
        send_to_journal(levels[line->level].priority, text, &line->request))
        return true;
    all[used] = '\n';
    return write_whole(all, (size_t)used + 1);
}

/* ---- The limit on lines that clients cause ---- */

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

static void write_sum(const struct shuf__log_kind *kind, struct shuf__log_line *sum)
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
        write_sum(kind, sum);
        begin_window(kind, now_ns, 2 * kind->window_ns);
        limits->held_kinds--;
        return true;
    }
    return false;
}

/* ---- The queue ---- */

enum { LINES = 512 };

struct entry {
    uint64_t dropped; /* lines lost directly before this one */
    struct shuf__log_line line;
};

struct shuf__log_queue {
    struct shuf__log_output output;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed, ended;
    struct entry entry[LINES];
    size_t first, count;
    /* Set when the queue is full, until it is half empty. So a slow reader gets many lines without
     * a gap, and then one large gap, instead of many small gaps. */
    bool full;
    bool stopping, has_ended;
    uint64_t untold; /* dropped lines that no entry reports yet */
    uint64_t dropped;
    struct shuf__log_limits limits;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct timespec seconds_from_now(int seconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += seconds;
    return time;
}

/* Adds a line, or drops it. Call with the mutex. */
static void push(struct shuf__log_queue *queue, const struct shuf__log_line *line)
{
    queue->full = queue->count == LINES || (queue->full && queue->count > LINES / 2);
    if (queue->full) {
        queue->dropped++;
        queue->untold++;
        return;
    }
    struct entry *entry = &queue->entry[(queue->first + queue->count++) % LINES];
    entry->line = *line;
    entry->dropped = queue->untold;
    queue->untold = 0;
    pthread_cond_signal(&queue->changed);
}

static void sum_up(struct shuf__log_queue *queue, uint64_t now)
{
    struct shuf__log_line sum;
    while (shuf__log_limits_sum_up(&queue->limits, now, &sum))
        push(queue, &sum);
}

/* ---- The thread that writes ---- */

static bool tell_dropped(const struct shuf__log_queue *queue, uint64_t dropped)
{
    struct shuf__log_line line = {.level = SHUF__LOG_WARNING};
    clock_gettime(CLOCK_REALTIME, &line.time);
    snprintf(line.text, sizeof line.text,
             "%" PRIu64 " line%s of the log dropped: their reader was too slow", dropped,
             dropped == 1 ? "" : "s");
    return write_line(&line, &queue->output);
}

/* Releases the mutex while it writes. */
static void write_next(struct shuf__log_queue *queue)
{
    struct entry entry = {.dropped = queue->untold};
    const bool has_line = queue->count > 0;
    if (has_line) {
        entry = queue->entry[queue->first];
        queue->first = (queue->first + 1) % LINES;
        queue->count--;
    } else {
        queue->untold = 0;
    }
    pthread_mutex_unlock(&queue->mutex);
    if (entry.dropped > 0)
        tell_dropped(queue, entry.dropped);
    const bool lost = has_line && !write_line(&entry.line, &queue->output);
    pthread_mutex_lock(&queue->mutex);
    queue->dropped += lost;
}

static void wait_for_lines(struct shuf__log_queue *queue)
{
    const struct timespec until = seconds_from_now(1);
    if (queue->limits.held_kinds > 0) /* a window may end before the next line comes */
        pthread_cond_timedwait(&queue->changed, &queue->mutex, &until);
    else
        pthread_cond_wait(&queue->changed, &queue->mutex);
}

static void *write_lines(void *context)
{
    struct shuf__log_queue *queue = context;
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        sum_up(queue, queue->stopping ? UINT64_MAX : now_ns());
        if (queue->count > 0 || queue->untold > 0)
            write_next(queue);
        else if (queue->stopping)
            break;
        else
            wait_for_lines(queue);
    }
    queue->has_ended = true;
    pthread_cond_signal(&queue->ended);
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

/* ---- The start and the end of the queue ---- */

static void destroy(struct shuf__log_queue *queue)
{
    pthread_cond_destroy(&queue->ended);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

/* Makes the queue and starts its thread. NULL: out of memory or threads. */
static struct shuf__log_queue *queue_start(struct shuf__log_output output)
{
    pthread_condattr_t monotonic;
    struct shuf__log_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->output = output;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, &monotonic);
    pthread_cond_init(&queue->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (shuf__thread_start(&queue->thread, write_lines, queue) == 0)
        return queue;
    destroy(queue);
    return NULL;
}

/* Adds a line, from any thread. With a `key`, the line is of the kind `key`, and
 * at most `rate` lines of this kind are written a second. 0: no limit. */
static void queue_add(struct shuf__log_queue *queue, const struct shuf__log_line *line,
                      const char *key, uint64_t rate)
{
    const uint64_t now = now_ns();
    pthread_mutex_lock(&queue->mutex);
    sum_up(queue, now);
    if (!key || shuf__log_limits_admit(&queue->limits, key, rate, line, now))
        push(queue, line);
    else if (queue->limits.held_kinds == 1)
        pthread_cond_signal(&queue->changed); /* the thread must now wait for the end of a window */
    pthread_mutex_unlock(&queue->mutex);
}

/* Adds the lines that sum up the held lines, before the end of their windows. */
static void queue_sum_up(struct shuf__log_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    sum_up(queue, UINT64_MAX);
    pthread_mutex_unlock(&queue->mutex);
}

static struct shuf__log_losses queue_losses(struct shuf__log_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    const struct shuf__log_losses losses = {queue->dropped, queue->limits.held_lines};
    pthread_mutex_unlock(&queue->mutex);
    return losses;
}

/* Waits up to a second until all lines are written. If the thread then still waits for the reader,
 * the journal, a disk or a processor, the queue is not freed, and the thread ends with the
 * process. */
static void queue_stop(struct shuf__log_queue *queue)
{
    const struct timespec until = seconds_from_now(1);
    int result = 0;
    pthread_mutex_lock(&queue->mutex);
    queue->stopping = true;
    pthread_cond_signal(&queue->changed);
    while (!queue->has_ended && result == 0)
        result = pthread_cond_timedwait(&queue->ended, &queue->mutex, &until);
    const bool has_ended = queue->has_ended;
    pthread_mutex_unlock(&queue->mutex);
    if (!has_ended) {
        pthread_detach(queue->thread);
        return;
    }
    pthread_join(queue->thread, NULL);
    destroy(queue);
}

/* ---- The log ---- */

void shuf__log_init(struct shuf__log *log, enum shuf__log_level level)
{
    *log = (struct shuf__log){.level = level, .output = find_output()};
}

bool shuf__log_start(struct shuf__log *log)
{
    log->queue = queue_start(log->output);
    return log->queue != NULL;
}

void shuf__log_stop(struct shuf__log *log)
{
    if (log->queue)
        queue_stop(log->queue);
    log->queue = NULL;
}

/* Lines with a `key` are of this kind, which has a limit. */
__attribute__((format(printf, 5, 0))) static void
put_line(const struct shuf__log *log, enum shuf__log_level level,
         const struct shuf__log_request *request, const char *key, const char *format, va_list args)
{
    if (level > log->level)
        return;
    struct shuf__log_line line = {.level = level, .has_request = request != NULL};
    if (request)
        line.request = *request;
    clock_gettime(CLOCK_REALTIME, &line.time);
    vsnprintf(line.text, sizeof line.text, format, args);
    shuf__make_printable(line.text);
    if (log->queue)
        queue_add(log->queue, &line, key, log->rate);
    else
        write_line(&line, &log->output);
}

void shuf__log(const struct shuf__log *log, enum shuf__log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line(log, level, NULL, NULL, format, args);
    va_end(args);
}

void shuf__log_client(const struct shuf__log *log, enum shuf__log_level level, const char *format,
                      ...)
{
    va_list args;
    va_start(args, format);
    put_line(log, level, NULL, format, format, args);
    va_end(args);
}

void shuf__log_request(const struct shuf__log *log, enum shuf__log_level level,
                       const struct shuf__log_request *request, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line(log, level, request, format, format, args);
    va_end(args);
}

void shuf__log_sum_up(const struct shuf__log *log)
{
    if (log->queue)
        queue_sum_up(log->queue);
}

struct shuf__log_losses shuf__log_losses(const struct shuf__log *log)
{
    return log->queue ? queue_losses(log->queue) : (struct shuf__log_losses){0};
}
