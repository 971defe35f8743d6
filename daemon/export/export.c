/* SPDX-License-Identifier: MIT
 *
 * See export.h.
 */
#include "export.h"

#include "config/config.h"
#include "error.h"
#include "handlers/metrics_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_PATH = SHUF__CONFIG_PATH + 8 };

/* ---- The file, on a thread of libuv ---- */

/* Names the first directory that the daemon may not search, or else the last one, in which it may
 * not make the file. */
static void write_permission(const char *path, char text[SHUF__REMEDY])
{
    char directory[SHUF__CONFIG_PATH] = "/";
    bool may_search = true;
    for (const char *slash = path; may_search && (slash = strchr(slash + 1, '/')) != NULL;) {
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
        may_search = access(directory, X_OK) == 0;
    }
    snprintf(text, SHUF__REMEDY,
             "; uid %u of the daemon may not %s %.56s: permit it, or choose another directory",
             (unsigned)geteuid(), may_search ? "write to" : "search", directory);
}

void shuf__remedy_of_file(int cause, const char *path, char text[SHUF__REMEDY])
{
    text[0] = '\0';
    const char *advice = shuf__advice_of_sandbox(path);
    if ((cause == EACCES || cause == ENOENT) && *advice)
        snprintf(text, SHUF__REMEDY, "%s", advice);
    else if (cause == EACCES)
        write_permission(path, text);
    else if (cause == EROFS && shuf__is_in_unit()) /* by ProtectSystem= */
        strcpy(text, "; its unit needs ReadWritePaths=, or write to /run/shufd-metrics with the "
                     "drop-in metrics-file.conf");
}

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(fd, text, size);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* Writes a temporary file and renames it. The textfile collector reads only names that end in
 * .prom, so it does not read the temporary file. */
static bool replace_file(const char *path, const char *text, size_t size)
{
    char temporary[TEMPORARY_PATH];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    unlink(temporary); /* a daemon that was killed may have left it */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, text, size) && fchmod(fd, 0644) == 0;
    ok = close(fd) == 0 && ok && rename(temporary, path) == 0;
    if (!ok) {
        const int cause = errno;
        unlink(temporary);
        errno = cause;
    }
    return ok;
}

static void run_write(uv_work_t *work)
{
    struct shuf__textfile *file = work->data;
    file->error = replace_file(file->path, file->text, file->size) ? 0 : errno;
    shuf__remedy_of_file(file->error, file->path, file->remedy);
}

/* ---- The file, on the loop's thread ---- */

/* A disk may hang for as long as it likes: the loop goes on. */
static void note_hang(struct shuf__textfile *file)
{
    struct shuf__publication *p = &file->service->publications[SHUF__PUBLICATION_FILE];
    if (file->has_failed)
        return;
    file->has_failed = true;
    snprintf(p->fault, sizeof p->fault, "metrics_file %.96s: the last write has not ended",
             file->path);
    shuf__log(file->service->log, SHUF__LOG_WARNING, "%s", p->fault);
}

/* Notes for the status why the file is not written. */
static void note_result(struct shuf__textfile *file)
{
    struct shuf__publication *p = &file->service->publications[SHUF__PUBLICATION_FILE];
    file->has_failed = file->error != 0;
    p->fault[0] = '\0';
    if (file->has_failed)
        snprintf(p->fault, sizeof p->fault, "metrics_file %.96s: %s%s", file->path,
                 strerror(file->error), file->remedy);
}

static void after_write(uv_work_t *work, int status)
{
    struct shuf__textfile *file = work->data;
    (void)status;
    free(file->text);
    file->text = NULL;
    file->is_writing = false;
    if (file->error && !file->has_failed)
        shuf__log(file->service->log, SHUF__LOG_WARNING,
                  "metrics_file %s: %s%s; trying again every metrics_interval", file->path,
                  strerror(file->error), file->remedy);
    if (!file->error && file->has_failed)
        shuf__log(file->service->log, SHUF__LOG_INFO, "metrics_file %s: written again", file->path);
    note_result(file);
    if (file->stopped)
        unlink(file->path);
}

/* Everybody can read the file, so the text has no rows of users. */
static void on_timer(uv_timer_t *timer)
{
    struct shuf__textfile *file = timer->data;
    const struct shuf__metrics_reader anybody = {.sees = SHUF__METRICS_NO_USER,
                                                 .daemon = file->service->name};
    uv_timer_start(timer, on_timer, shuf__config_ms(file->service->config->metrics_interval), 0);
    if (file->is_writing) {
        note_hang(file);
        return;
    }
    file->text =
        shuf__metrics_text(file->service, anybody, SHUF__EXPOSITION_PROMETHEUS, &file->size);
    if (!file->text)
        return;
    file->is_writing = uv_queue_work(file->service->loop, &file->work, run_write, after_write) == 0;
    if (!file->is_writing)
        free(file->text);
}

static void init_file(struct shuf__textfile *file, struct shuf__service *service)
{
    file->service = service;
    uv_timer_init(service->loop, &file->timer);
    file->timer.data = file->work.data = file;
}

/* Starts to write if the configuration has a file. */
static void start_file(struct shuf__textfile *file)
{
    struct shuf__service *service = file->service;
    struct shuf__publication *p = &service->publications[SHUF__PUBLICATION_FILE];
    file->path[0] = '\0';
    if (!shuf__service_name_expand(service->config->metrics_file, service->name, file->path,
                                   sizeof file->path)) {
        snprintf(p->fault, sizeof p->fault,
                 "metrics_file %s: expected a shorter path; writing none",
                 service->config->metrics_file);
        shuf__log(service->log, SHUF__LOG_WARNING, "%s", p->fault);
    } else if (file->path[0]) {
        snprintf(p->place, sizeof p->place, "%.*s", (int)sizeof p->place - 1, file->path);
        uv_timer_start(&file->timer, on_timer, 0, 0);
    }
}

/* Call after a reload. Writes now, and then every metrics_interval. Does nothing without a file. */
static void configure_file(struct shuf__textfile *file)
{
    if (uv_is_active((uv_handle_t *)&file->timer))
        uv_timer_start(&file->timer, on_timer, 0, 0);
}

/* Stops writing, and removes the file, because a daemon that has ended has no metrics. The caller
 * closes the timer. */
static void stop_file(struct shuf__textfile *file)
{
    file->stopped = true;
    uv_timer_stop(&file->timer);
    if (file->path[0] && !file->is_writing)
        unlink(file->path);
}

/* ---- Both exports ---- */

void shuf__exports_start(struct shuf__exports *exports, struct shuf__service *service)
{
    struct shuf__publication *http = &service->publications[SHUF__PUBLICATION_HTTP];
    struct shuf__error error;
    exports->started = true;
    if (shuf__http_start(&exports->http, service, &error)) {
        shuf__log(service->log, SHUF__LOG_WARNING, "%s; serving without HTTP", error.text);
        snprintf(http->fault, sizeof http->fault, "%.*s", (int)sizeof http->fault - 1, error.text);
    } else if (exports->http) {
        snprintf(http->place, sizeof http->place, "%s", service->config->metrics);
        shuf__log(service->log, SHUF__LOG_INFO, "metrics on %s", http->place);
    }
    init_file(&exports->file, service);
    start_file(&exports->file);
}

void shuf__exports_configure(struct shuf__exports *exports)
{
    if (exports->started)
        configure_file(&exports->file);
}

void shuf__exports_stop(struct shuf__exports *exports)
{
    if (!exports->started)
        return;
    shuf__http_stop(exports->http);
    stop_file(&exports->file);
    uv_close((uv_handle_t *)&exports->file.timer, NULL);
}
