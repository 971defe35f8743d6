/* SPDX-License-Identifier: MIT
 *
 * See log_line.h.
 */
#include "log_line.h"

#include "log_journal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

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

struct shuf__log_output shuf__log_output_find(void)
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

bool shuf__log_line_write(const struct shuf__log_line *line, const struct shuf__log_output *output)
{
    char all[PREFIX + SHUF__LOG_TEXT + 16];
    int used = put_prefix(line, output, all);
    const char *text = all + used;
    used += snprintf(all + used, sizeof all - (size_t)used, "%s: %s", levels[line->level].name,
                     line->text);
    if (output->journal && line->has_request &&
        shuf__log_journal(levels[line->level].priority, text, &line->request))
        return true;
    all[used] = '\n';
    return write_whole(all, (size_t)used + 1);
}
