/* SPDX-License-Identifier: MIT
 *
 * See wait_limit.h.
 */
#include "wait_limit.h"

#include "interrupt.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)

uint64_t shuf__now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

static struct timeval to_timeval(uint64_t ns)
{
    uint64_t us = ns == 0 ? 0 : ns / 1000 + 1; /* 0 disables the timeout */
    return (struct timeval){.tv_sec = (time_t)(us / 1000000),
                            .tv_usec = (suseconds_t)(us % 1000000)};
}

/* 0: no limit. */
static uint64_t longest_ns(uint64_t now, uint64_t end)
{
    const uint64_t left = end == 0 ? 0 : end - now, most = SHUF__ASK_MS * NS_PER_MS;
    if (!shuf__has_interrupt())
        return left;
    return left == 0 || left > most ? most : left;
}

int shuf__limit_wait(struct shuf__wait_limits *limits, int fd, int option, uint64_t end)
{
    const uint64_t now = end == 0 ? 0 : shuf__now_ns();
    uint64_t *set = option == SO_RCVTIMEO ? &limits->receive_ns : &limits->send_ns;
    if (end != 0 && now >= end) {
        errno = EAGAIN;
        return -1;
    }
    const uint64_t ns = longest_ns(now, end);
    const struct timeval value = to_timeval(ns);
    if (ns == *set)
        return 0;
    *set = ns;
    return setsockopt(fd, SOL_SOCKET, option, &value, sizeof value);
}

bool shuf__may_wait_on(uint64_t end)
{
    const bool by_signal = errno == EINTR;
    if (!by_signal && (errno != EAGAIN || (end != 0 && shuf__now_ns() >= end)))
        return false;
    if (!shuf__is_interrupted(by_signal ? EINTR : 0))
        return true;
    errno = EINTR;
    return false;
}
