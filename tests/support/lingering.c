/* SPDX-License-Identifier: MIT
 *
 * See lingering.h.
 */
#include "support/lingering.h"

#include "support/cmocka_all.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINGER_S = 100, READERS = 256 };

static int readers[READERS];
static size_t reader_count;

int lingering_make(void)
{
    static const uint8_t bytes[1 << 16];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(reader_count < READERS);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    readers[reader_count] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(readers[reader_count++] >= 0);
    close(listening);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    return fd;
}

static void set_linger(int fd, int seconds)
{
    const struct linger linger = {.l_onoff = seconds > 0, .l_linger = seconds};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
}

void lingering_arm(int fd)
{
    set_linger(fd, LINGER_S);
}

void lingering_disarm(int fd)
{
    set_linger(fd, 0);
}

void lingering_end_all(void)
{
    while (reader_count > 0)
        close(readers[--reader_count]);
}
