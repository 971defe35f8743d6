/* SPDX-License-Identifier: MIT
 *
 * See daemon.h.
 */
#include "daemon.h"

#include "clock.h"
#include "process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const double start_ns = 60e9;

static void show_log(void)
{
    char line[512];
    FILE *file = fopen(process_file("shufd.log"), "re");
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "    shufd| %s", line);
    if (file)
        fclose(file);
}

shuf *daemon_connect(const struct daemon *daemon)
{
    shuf *handle;
    shuf_status status = shuf_connect(&handle, daemon->socket);
    if (status != SHUF_OK) {
        show_log();
        die("shufd: %s", handle ? shuf_message(handle) : shuf_status_message(status));
    }
    return handle;
}

void daemon_status(const struct daemon *daemon, shuf_daemon *status)
{
    shuf *handle = daemon_connect(daemon);
    if (shuf_daemon_status(handle, status) != SHUF_OK)
        die("shufd: %s", shuf_message(handle));
    shuf_close(handle);
}

static bool is_listening(const struct daemon *daemon)
{
    shuf *handle;
    shuf_status status = shuf_connect(&handle, daemon->socket);
    shuf_close(handle);
    return status == SHUF_OK;
}

static void wait_until_listening(const struct daemon *daemon)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    double start = now_ns();
    while (!is_listening(daemon)) {
        int status;
        if (process_ended(daemon->pid, &status) || now_ns() - start > start_ns) {
            show_log();
            die("shufd did not start");
        }
        nanosleep(&pause, NULL);
    }
}

static const char *write_config(const char *config)
{
    const char *path = process_file("shufd.conf");
    FILE *file = fopen(path, "we");
    if (!file || fputs(config, file) < 0)
        die("%s: cannot write the file", path);
    fclose(file);
    return path;
}

void daemon_start_with(struct daemon *daemon, const char *name, const char *backend,
                       const char *config, const char *log)
{
    char lock[32];
    shuf_daemon status;
    daemon->socket = process_file(name);
    snprintf(lock, sizeof lock, "%s.lock", name);
    process_file(lock); /* deletes the daemon's lock file at exit */
    const char *argv[] = {
        SHUFD_PATH, "--config", write_config(config), "--socket", daemon->socket, "--backend",
        backend,    NULL};
    daemon->pid = process_start(argv, log);
    wait_until_listening(daemon);
    daemon_status(daemon, &status);
    snprintf(daemon->backend, sizeof daemon->backend, "%s", status.backend);
    snprintf(daemon->device_id, sizeof daemon->device_id, "%s", status.device_id);
}

/* The benchmark has the machine for itself, so the daemon may use and keep nearly all memory. */
void daemon_start(struct daemon *daemon, const char *backend)
{
    daemon_start_with(daemon, "shufd", backend,
                      "host_memory = 90%\ndevice_memory = 90%\n"
                      "host_cache = 90%\ndevice_cache = 90%\n",
                      process_file("shufd.log"));
}

void daemon_stop(struct daemon *daemon)
{
    int status = process_end(daemon->pid, SIGTERM);
    if (status != 0) {
        show_log();
        die("shufd ended with wait status 0x%x, expected 0", (unsigned)status);
    }
    daemon->pid = 0;
}

void daemon_fact(const struct daemon *daemon, struct report *report, const char *name)
{
    shuf_daemon status;
    char fact[256];
    daemon_status(daemon, &status);
    snprintf(fact, sizeof fact, "%s, %s: %s (%s)", status.version, status.backend, status.device,
             status.device_id);
    report_fact(report, name, fact);
}
