/* SPDX-License-Identifier: MIT
 *
 * Writes the metrics to a file for the textfile collector of node_exporter. A reader sees the old
 * text or the new one, never a part of a text. A thread of libuv writes, because a disk may be
 * slow.
 */
#ifndef SHUFD_TEXTFILE_H
#define SHUFD_TEXTFILE_H

#include "handlers/service.h"
#include "remedy.h"

struct shuf__textfile {
    struct shuf__service *service;
    uv_timer_t timer;
    uv_work_t work;
    bool is_writing, stopped;
    bool has_failed; /* the last write failed or hangs: the next failure is not logged again */
    char path[SHUF__CONFIG_PATH];
    char *text;
    size_t size;
    int error; /* errno of the last write; 0: none */
    char remedy[SHUF__REMEDY];
};

void shuf__textfile_init(struct shuf__textfile *file, struct shuf__service *service);

/* Starts to write if the configuration has a file. */
void shuf__textfile_start(struct shuf__textfile *file);

/* Call after a reload. Writes now, and then every metrics_interval. Does nothing without a file. */
void shuf__textfile_configure(struct shuf__textfile *file);

/* Stops writing, and removes the file, because a daemon that has ended has no metrics. The caller
 * closes the timer. */
void shuf__textfile_stop(struct shuf__textfile *file);

#endif
