/* SPDX-License-Identifier: MIT
 *
 * See redis.h.
 */
#include "redis.h"

#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { OWN = 8, OPTIONS = 16 };

bool redis_have(struct report *report, const char *program)
{
    const char *argv[] = {program, "--version", NULL};
    char *version = process_output(argv);
    if (version)
        version[strcspn(version, "\n")] = '\0';
    report_fact(report, program, version ? version : "not installed");
    free(version);
    return version != NULL;
}

/* Returns -1 if no server listens. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void await_listening(const struct redis *redis, const char *program)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int fd, status;
    while ((fd = connect_to(redis->socket)) < 0) {
        if (process_ended(redis->pid, &status))
            die("%s did not start", program);
        nanosleep(&pause, NULL);
    }
    close(fd);
}

void redis_start(struct redis *redis, const char *program, const char *const *options,
                 const char *log)
{
    redis->socket = process_file("redis");
    const char *argv[OWN + OPTIONS + 2] = {
        program, "--port", "0", "--unixsocket", redis->socket, "--save", "", "--appendonly", "no"};
    for (int i = 0; options[i] && i < OPTIONS; i++)
        argv[1 + OWN + i] = options[i];
    redis->pid = process_start(argv, log);
    await_listening(redis, program);
}

void redis_stop(struct redis *redis)
{
    const int status = process_end(redis->pid, SIGTERM);
    if (status != 0)
        die("the redis-server ended with wait status 0x%x, expected 0", (unsigned)status);
    redis->pid = 0;
}

int redis_connect(const struct redis *redis)
{
    const int fd = connect_to(redis->socket);
    if (fd < 0)
        die("%s: %s", redis->socket, strerror(errno));
    return fd;
}
