/* SPDX-License-Identifier: MIT
 *
 * A program that may start before the daemon, for example at boot. It waits for the daemon for at
 * most SECONDS:
 *
 *     cc wait.c $(pkg-config --cflags --libs libshuf) -o wait && ./wait 60
 *
 * shuf_connect() itself fails at once without a daemon. After it has succeeded once, every call
 * waits for the next daemon by itself: see shuf_set_reconnect().
 */
#define _POSIX_C_SOURCE 200809L /* clocks, also with -std=c11 */
#include <shuf.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Another daemon may come after these two: none answers, or one starts or hangs. The other
 * failures, such as a denied socket, would stay. */
static bool may_come(shuf_status status)
{
    return status == SHUF_NO_DAEMON || status == SHUF_TIMEOUT;
}

static shuf_status connect_within(shuf **daemon, double seconds)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    const double end = now() + seconds;
    shuf_status status = shuf_connect(daemon, NULL);
    while (may_come(status) && now() < end) {
        shuf_close(*daemon); /* a new handle looks for the socket anew */
        nanosleep(&pause, NULL);
        status = shuf_connect(daemon, NULL);
    }
    return status;
}

int main(int argc, char **argv)
{
    shuf *daemon;
    uint32_t order[5];
    const shuf_request request = {.permutation = {.n = 5, .seed = 7}};
    if (connect_within(&daemon, argc > 1 ? strtod(argv[1], NULL) : 60) != SHUF_OK ||
        shuf_copy(daemon, &request, order, sizeof order, NULL) != SHUF_OK) {
        fprintf(stderr, "wait: %s\n", shuf_message(daemon));
        return EXIT_FAILURE;
    }
    printf("the daemon on %s answers: %u %u ...\n", shuf_socket(daemon), order[0], order[1]);
    shuf_close(daemon);
    return EXIT_SUCCESS;
}
