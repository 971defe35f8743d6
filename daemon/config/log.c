/* SPDX-License-Identifier: MIT
 *
 * See log.h.
 */
#include "log.h"

#include "error.h"
#include "log_journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { LOG_TEXT = 512 };

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

/* A program whose stderr was redirected inherits the variable too, so the file counts. */
static bool is_journal(void)
{
    struct stat status;
    unsigned long long device, inode;
    const char *stream = getenv("JOURNAL_STREAM");
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

void shuf__log_init(struct shuf__log *log, enum shuf__log_level level)
{
    log->level = level;
    log->journal = is_journal();
    log->stamped = !log->journal;
}

/* "2026-11-22 22:07:31.123 +0000 " */
static int write_time(char *line, size_t size)
{
    struct timespec now;
    struct tm local;
    char day[32], zone[8];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local);
    strftime(zone, sizeof zone, "%z", &local);
    return snprintf(line, size, "%s.%03ld %s ", day, now.tv_nsec / 1000000, zone);
}

__attribute__((format(printf, 2, 0))) static void
format_line(enum shuf__log_level level, const char *format, va_list args, char text[LOG_TEXT])
{
    const int used = snprintf(text, LOG_TEXT, "%s: ", levels[level].name);
    vsnprintf(text + used, LOG_TEXT - (size_t)used, format, args);
    shuf__make_printable(text);
}

static void write_line(const struct shuf__log *log, enum shuf__log_level level, const char *text)
{
    char line[LOG_TEXT + 64];
    const size_t used = (size_t)(log->journal   ? snprintf(line, 64, "<%d>", levels[level].priority)
                                 : log->stamped ? write_time(line, 64)
                                                : 0);
    const size_t length = strlen(text);
    memcpy(line + used, text, length);
    line[used + length] = '\n';
    if (write(STDERR_FILENO, line, used + length + 1) < 0)
        return; /* nothing else can report it */
}

void shuf__log(const struct shuf__log *log, enum shuf__log_level level, const char *format, ...)
{
    va_list args;
    char text[LOG_TEXT];
    if (level > log->level)
        return;
    va_start(args, format);
    format_line(level, format, args, text);
    va_end(args);
    write_line(log, level, text);
}

void shuf__log_request(const struct shuf__log *log, enum shuf__log_level level,
                       const struct shuf__log_request *request, const char *format, ...)
{
    va_list args;
    char text[LOG_TEXT];
    if (level > log->level)
        return;
    va_start(args, format);
    format_line(level, format, args, text);
    va_end(args);
    if (!log->journal || !shuf__log_journal(levels[level].priority, text, request))
        write_line(log, level, text);
}
