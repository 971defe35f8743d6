/* SPDX-License-Identifier: MIT
 *
 * See log.h.
 */
#include "log.h"

#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void shuf__log_init(struct shuf__log *log, enum shuf__log_level level)
{
    *log = (struct shuf__log){.level = level, .output = shuf__log_output_find()};
}

bool shuf__log_start(struct shuf__log *log)
{
    log->queue = shuf__log_queue_start(log->output);
    return log->queue != NULL;
}

void shuf__log_stop(struct shuf__log *log)
{
    if (log->queue)
        shuf__log_queue_stop(log->queue);
    log->queue = NULL;
}

__attribute__((format(printf, 2, 0))) static void format_line(struct shuf__log_line *line,
                                                              const char *format, va_list args)
{
    clock_gettime(CLOCK_REALTIME, &line->time);
    vsnprintf(line->text, sizeof line->text, format, args);
    shuf__make_printable(line->text);
}

static void add_line(const struct shuf__log *log, const struct shuf__log_line *line,
                     const char *key)
{
    if (log->queue)
        shuf__log_queue_add(log->queue, line, key, log->rate);
    else
        shuf__log_line_write(line, &log->output);
}

void shuf__log(const struct shuf__log *log, enum shuf__log_level level, const char *format, ...)
{
    va_list args;
    struct shuf__log_line line = {.level = level};
    if (level > log->level)
        return;
    va_start(args, format);
    format_line(&line, format, args);
    va_end(args);
    add_line(log, &line, NULL);
}

void shuf__log_client(const struct shuf__log *log, enum shuf__log_level level, const char *format,
                      ...)
{
    va_list args;
    struct shuf__log_line line = {.level = level};
    if (level > log->level)
        return;
    va_start(args, format);
    format_line(&line, format, args);
    va_end(args);
    add_line(log, &line, format);
}

void shuf__log_request(const struct shuf__log *log, enum shuf__log_level level,
                       const struct shuf__log_request *request, const char *format, ...)
{
    va_list args;
    struct shuf__log_line line = {.level = level, .has_request = true, .request = *request};
    if (level > log->level)
        return;
    va_start(args, format);
    format_line(&line, format, args);
    va_end(args);
    add_line(log, &line, format);
}

void shuf__log_sum_up(const struct shuf__log *log)
{
    if (log->queue)
        shuf__log_queue_sum_up(log->queue);
}

struct shuf__log_losses shuf__log_losses(const struct shuf__log *log)
{
    return log->queue ? shuf__log_queue_losses(log->queue) : (struct shuf__log_losses){0};
}
