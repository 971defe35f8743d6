/* SPDX-License-Identifier: MIT
 *
 * See service_manager.h. The sd_notify() of libsystemd would wait for a service manager that does
 * not read, and the loop would wait with it. Here no send waits. A report that does not fit into
 * the socket is sent with the next heartbeat. Other errors are ignored, because a lost report
 * changes nothing for the clients.
 */
#include "service_manager.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REPORT = 2048 };

static const uint64_t us_per_ms = 1000;
static char unsent[REPORT]; /* the last report that did not fit into the socket */

/* Returns false if the socket is full. */
static bool send_text(const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    const size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof address.sun_path)
        return true;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, path, length);
    if (*path == '@')
        address.sun_path[0] = '\0'; /* in the abstract namespace */
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    const bool sent = sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                             (struct sockaddr *)&address, size) >= 0;
    const bool is_full = !sent && errno == EAGAIN;
    if (fd >= 0)
        close(fd);
    return !is_full;
}

static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Replaces an unsent report, because only the last state matters. */
static void report(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(unsent, sizeof unsent, format, args);
    va_end(args);
    if (send_text(unsent))
        unsent[0] = '\0';
}

void shuf__service_manager_ready(const char *status)
{
    report("READY=1\nSTATUS=%s", status);
}

/* systemd tells this reload from earlier ones by the time. */
void shuf__service_manager_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    report("RELOADING=1\nSTATUS=Reading the configuration\nMONOTONIC_USEC=%" PRIu64,
           (uint64_t)now.tv_sec * 1000 * us_per_ms + (uint64_t)now.tv_nsec / 1000);
}

void shuf__service_manager_stopping(const char *status, uint64_t most_ms)
{
    report("STOPPING=1\nSTATUS=%s\nEXTEND_TIMEOUT_USEC=%" PRIu64, status, most_ms * us_per_ms);
}

void shuf__service_manager_alive(void)
{
    if (unsent[0] && send_text(unsent))
        unsent[0] = '\0';
    send_text("WATCHDOG=1");
}

/* These variables are described in sd_watchdog_enabled(3). */
uint64_t shuf__service_manager_watchdog_ms(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    const bool is_for_other = pid && strtol(pid, NULL, 10) != (long)getpid();
    return us && !is_for_other ? strtoull(us, NULL, 10) / us_per_ms : 0;
}
