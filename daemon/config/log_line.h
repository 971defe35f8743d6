/* SPDX-License-Identifier: MIT
 *
 * One line of the log, and the code that writes it: to standard error, or to the journal with
 * fields.
 */
#ifndef SHUFD_LOG_LINE_H
#define SHUFD_LOG_LINE_H

#include "log_fields.h"

#include <stdbool.h>
#include <time.h>

enum { SHUF__LOG_TEXT = 512 };

/* Most severe first. */
enum shuf__log_level {
    SHUF__LOG_ERROR,
    SHUF__LOG_WARNING,
    SHUF__LOG_INFO,
    SHUF__LOG_DEBUG,
};

struct shuf__log_line {
    enum shuf__log_level level;
    struct timespec time;
    bool has_request; /* the line is about `request` */
    struct shuf__log_request request;
    char text[SHUF__LOG_TEXT];
};

/* Where the log goes. */
struct shuf__log_output {
    bool journal; /* stderr is the journal: prefix lines with <6> and the like */
    bool stamped; /* prefix lines with the time */
};

/* "error", "warning", "info", "debug" */
const char *shuf__log_level_name(enum shuf__log_level level);

/* Finds out what standard error of this process is. */
struct shuf__log_output shuf__log_output_find(void);

/* Writes a line. May wait for the program that reads standard error. False: the line is lost. */
bool shuf__log_line_write(const struct shuf__log_line *line, const struct shuf__log_output *output);

#endif
