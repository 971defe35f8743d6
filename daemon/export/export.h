/* SPDX-License-Identifier: MIT
 *
 * Exports of the metrics by HTTP and to a file. If one of them fails, the daemon logs a warning and
 * continues.
 */
#ifndef SHUFD_EXPORT_H
#define SHUFD_EXPORT_H

#include "handlers/service.h"
#include "http.h"

enum { SHUF__REMEDY = 144 };

/* Writes the metrics to a file for the textfile collector of node_exporter. A reader sees the old
 * text or the new one, never a part of a text. A thread of libuv writes, because a disk may be
 * slow. */
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

struct shuf__exports {
    struct shuf__http *http;
    struct shuf__textfile file;
    bool started;
};

/* Starts the exports in the configuration. service->name replaces %i in the path of the file. */
void shuf__exports_start(struct shuf__exports *exports, struct shuf__service *service);

/* Call after a reload of the configuration. */
void shuf__exports_configure(struct shuf__exports *exports);

/* Ends the exports and closes their handles. Does nothing if they are not started. */
void shuf__exports_stop(struct shuf__exports *exports);

/* The end of a message about a file that the daemon could not make with this errno: "; ...", or "".
 * Looks at its directories, so a slow disk may block the thread. */
void shuf__remedy_of_file(int cause, const char *path, char text[SHUF__REMEDY]);

#endif
