/* SPDX-License-Identifier: MIT
 *
 * See log_queue.h. A thread of its own writes the lines, because a write may wait for the reader.
 * The flag O_NONBLOCK is no remedy. It belongs to the open file, which other processes share, and a
 * pipe or a terminal of another user cannot be opened again. Files on a network and
 * sd_journal_sendv() wait even with the flag. A crash loses the lines in the queue.
 */
#include "log_queue.h"

#include "log_limit.h"
#include "thread.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES = 512, END_SECONDS = 10 };

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

/* ---- with the mutex ---- */

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

/* ---- the thread that writes ---- */

static bool tell_dropped(const struct shuf__log_queue *queue, uint64_t dropped)
{
    struct shuf__log_line line = {.level = SHUF__LOG_WARNING};
    clock_gettime(CLOCK_REALTIME, &line.time);
    snprintf(line.text, sizeof line.text,
             "%" PRIu64 " line%s of the log dropped: their reader was too slow", dropped,
             dropped == 1 ? "" : "s");
    return shuf__log_line_write(&line, &queue->output);
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
    const bool lost = has_line && !shuf__log_line_write(&entry.line, &queue->output);
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

/* ---- the start and the end ---- */

static void destroy(struct shuf__log_queue *queue)
{
    pthread_cond_destroy(&queue->ended);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

struct shuf__log_queue *shuf__log_queue_start(struct shuf__log_output output)
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

void shuf__log_queue_add(struct shuf__log_queue *queue, const struct shuf__log_line *line,
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

void shuf__log_queue_sum_up(struct shuf__log_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    sum_up(queue, UINT64_MAX);
    pthread_mutex_unlock(&queue->mutex);
}

struct shuf__log_losses shuf__log_queue_losses(struct shuf__log_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    const struct shuf__log_losses losses = {queue->dropped, queue->limits.held_lines};
    pthread_mutex_unlock(&queue->mutex);
    return losses;
}

static bool reader_is_ready(void)
{
    struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&reader, 1, 0) > 0;
}

/* If the thread still waits for the reader after a second, or for a disk or a processor after
 * END_SECONDS, the queue is not freed, and the thread ends with the process. */
void shuf__log_queue_stop(struct shuf__log_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->stopping = true;
    pthread_cond_signal(&queue->changed);
    for (int second = 0; second < END_SECONDS && (second == 0 || reader_is_ready()); second++) {
        const struct timespec until = seconds_from_now(1);
        int result = 0;
        while (!queue->has_ended && result == 0)
            result = pthread_cond_timedwait(&queue->ended, &queue->mutex, &until);
    }
    const bool has_ended = queue->has_ended;
    pthread_mutex_unlock(&queue->mutex);
    if (!has_ended) {
        pthread_detach(queue->thread);
        return;
    }
    pthread_join(queue->thread, NULL);
    destroy(queue);
}
