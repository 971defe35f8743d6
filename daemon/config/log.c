/* SPDX-License-Identifier: MIT
 *
 * See log.h.
 */
#include "log.h"

#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

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

void shuf__log_init(struct shuf__log *log, enum shuf__log_level level)
{
    log->level = level;
    log->journal = getenv("JOURNAL_STREAM") != NULL;
}

void shuf__log(const struct shuf__log *log, enum shuf__log_level level, const char *format, ...)
{
    char line[512];
    if (level > log->level)
        return;
    int used = log->journal ? snprintf(line, sizeof line, "<%d>", levels[level].priority) : 0;
    used += snprintf(line + used, sizeof line - (size_t)used, "%s: ", levels[level].name);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    shuf__make_printable(line);
    size_t length = strlen(line);
    line[length] = '\n';
    if (write(STDERR_FILENO, line, length + 1) < 0)
        return; /* nothing else can report it */
}
