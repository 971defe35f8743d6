/* SPDX-License-Identifier: MIT
 *
 * See peer.h.
 */
#include "support/peer.h"

#include "support/cmocka_all.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
    char directory[64], path[96];
    int listener;
    pthread_t thread;
    peer_script script;
    int connections;
} peer;

char peer_escape_text[] = "\033[2Jshufd\n1";

static void *serve(void *argument)
{
    (void)argument;
    int fd;
    while ((fd = accept4(peer.listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        peer.script(fd, peer.connections++);
        close(fd);
    }
    return NULL;
}

void peer_start(peer_script script)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(peer.directory, "/tmp/shuf-peer-XXXXXX");
    assert_non_null(mkdtemp(peer.directory));
    snprintf(peer.path, sizeof peer.path, "%s/s", peer.directory);
    strcpy(address.sun_path, peer.path);
    peer.script = script;
    peer.connections = 0;
    peer.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(peer.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(peer.listener, 16), 0);
    assert_int_equal(pthread_create(&peer.thread, NULL, serve, NULL), 0);
}

int peer_stop(void)
{
    shutdown(peer.listener, SHUT_RDWR); /* ends accept() */
    pthread_join(peer.thread, NULL);
    close(peer.listener);
    unlink(peer.path);
    rmdir(peer.directory);
    return peer.connections;
}

const char *peer_path(void)
{
    return peer.path;
}

void peer_send(int fd, const void *bytes, size_t size)
{
    const char *p = bytes;
    ssize_t sent;
    for (; size > 0 && (sent = send(fd, p, size, MSG_NOSIGNAL)) > 0; p += sent)
        size -= (size_t)sent;
}

void peer_send_byte(int fd, uint8_t byte, const int *descriptors, unsigned count)
{
    union {
        struct cmsghdr aligned;
        uint8_t bytes[CMSG_SPACE(16 * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (count == 0) {
        peer_send(fd, &byte, 1);
        return;
    }
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(c), descriptors, count * sizeof(int));
    sendmsg(fd, &message, MSG_NOSIGNAL);
}

void peer_send_reply(int fd, const Shuf__Reply *reply, const int *descriptors, unsigned count)
{
    static uint8_t frame[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
    size_t size = shuf__message_pack(&reply->base, frame, sizeof frame);
    if (size == 0) /* an assertion of cmocka ends only the main thread */
        abort();
    size_t sent_alone = count > 0;
    if (sent_alone)
        peer_send_byte(fd, frame[0], descriptors, count);
    peer_send(fd, frame + sent_alone, size - sent_alone);
}

const Shuf__Request *peer_receive(int fd)
{
    static struct shuf__arena arena;
    static uint8_t frame[SHUF__FRAME_MAX];
    size_t length;
    uint8_t header[SHUF__FRAME_HEADER];
    if (recv(fd, header, sizeof header, MSG_WAITALL) != sizeof header)
        return NULL;
    shuf__frame_parse(header, sizeof header, &length);
    if (recv(fd, frame, length, MSG_WAITALL) != (ssize_t)length)
        return NULL;
    return shuf__request_unpack(&arena, frame, length);
}

void peer_await_close(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        continue;
}

static uint64_t id_of(const Shuf__Request *request)
{
    return request ? request->id : 0;
}

void peer_welcome(int fd, uint32_t version, uint64_t id_shift)
{
    Shuf__HelloReply hello = SHUF__HELLO_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    hello.version = version;
    hello.daemon = peer_escape_text;
    reply.id = id_of(peer_receive(fd)) + id_shift;
    reply.body_case = SHUF__REPLY__BODY_HELLO;
    reply.hello = &hello;
    peer_send_reply(fd, &reply, NULL, 0);
}

void peer_refuse(int fd, uint64_t id, shuf_status status, uint64_t payload)
{
    static char refusal_message[] = "because\033[2J\n";
    Shuf__Reply reply = SHUF__REPLY__INIT;
    reply.id = id;
    reply.status = status;
    reply.message = refusal_message;
    reply.payload_bytes = payload;
    peer_send_reply(fd, &reply, NULL, 0);
}
