/* SPDX-License-Identifier: MIT
 *
 * See peer.h.
 */
#include "support/peer.h"

#include "support/child.h"
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* ---- A fake daemon with leases ---- */

struct lease_server lease_server;

enum { NEXT_CONNECTION = 1000000000, VALUES = 1000 /* nonzero values */ };

static void log_request(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void log_request(const char *format, ...)
{
    va_list args;
    size_t used = strlen(lease_server.log);
    va_start(args, format);
    vsnprintf(lease_server.log + used, sizeof lease_server.log - used, format, args);
    va_end(args);
}

uint32_t lease_server_value(int connection, uint64_t block, uint64_t i)
{
    return (uint32_t)((uint64_t)connection * NEXT_CONNECTION + block * 1000 + i);
}

int lease_server_memory(const struct lease_server_reply *p, int connection)
{
    int fd = memfd_create("shuf-peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint32_t values[VALUES];
    for (uint64_t i = 0; i < VALUES; i++)
        values[i] = lease_server_value(connection, p->reply.block, i);
    if (fd < 0 || ftruncate(fd, (off_t)p->file) != 0 ||
        (p->file > LEASE_SERVER_OFFSET + sizeof values &&
         pwrite(fd, values, sizeof values, LEASE_SERVER_OFFSET) != sizeof values) ||
        (!p->unsealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0))
        abort();
    return fd;
}

static void log_release(const Shuf__Release *release)
{
    for (size_t i = 0; release && i < release->n_lease; i++)
        log_request("-%d", (int)release->lease[i]);
    for (size_t i = 0; release && i < release->n_unmapped; i++) {
        log_request("/%d", (int)release->unmapped[i]);
        lease_server.has_descriptor[release->unmapped[i]] = false;
    }
}

/* Sets the location of the values. */
static void set_location(struct lease_server_reply *p, uint64_t block)
{
    bool by_descriptor = lease_server.transport != SHUF__TRANSPORT__TRANSPORT_CUDA_IPC;
    p->reply.transport =
        lease_server.transport ? lease_server.transport : SHUF__TRANSPORT__TRANSPORT_MEMFD;
    p->reply.lease = ++lease_server.leases;
    p->reply.block = block;
    p->reply.offset = LEASE_SERVER_OFFSET;
    p->file = (LEASE_SERVER_OFFSET + p->reply.bytes + LEASE_SERVER_UNIT - 1) / LEASE_SERVER_UNIT *
              LEASE_SERVER_UNIT;
    p->reply.block_bytes = p->file;
    p->descriptors = by_descriptor && !lease_server.has_descriptor[block];
    p->reply.descriptor = p->descriptors;
    p->reply.shared = true;
    if (lease_server.device_id)
        p->reply.device_id = lease_server.device_id;
    if (!by_descriptor)
        lease_server.set_ipc_handles(p);
}

struct lease_server_reply lease_server_reply_to(uint64_t n, uint64_t block, bool prefetch)
{
    struct lease_server_reply p = {.reply = SHUF__RESULT_REPLY__INIT};
    p.reply.rows = 1;
    p.reply.count = n;
    p.reply.dtype = SHUF__DTYPE__DTYPE_U32;
    p.reply.bytes = n * 4;
    if (prefetch)
        return p;
    if (lease_server.transport != SHUF__TRANSPORT__TRANSPORT_INLINE) {
        set_location(&p, block);
        return p;
    }
    p.reply.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    p.payload = p.reply.bytes;
    return p;
}

static void send_reply(int fd, uint64_t id, struct lease_server_reply *p, int connection)
{
    int descriptors[4];
    Shuf__Reply reply = SHUF__REPLY__INIT;
    uint32_t *values = calloc(p->payload / 4 + 1, 4);
    for (uint64_t i = 0; i < p->payload / 4; i++)
        values[i] = lease_server_value(connection, 0, i);
    for (unsigned i = 0; i < p->descriptors; i++)
        descriptors[i] = lease_server_memory(p, connection);
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &p->reply;
    reply.payload_bytes = p->payload;
    peer_send_reply(fd, &reply, descriptors, p->descriptors);
    peer_send(fd, values, p->payload);
    for (unsigned i = 0; i < p->descriptors; i++)
        close(descriptors[i]);
    free(values);
}

static void reply_permute(int fd, uint64_t id, const Shuf__Result *request, int connection)
{
    const Shuf__Permutation *asked = request->permute->permutation;
    const bool prefetch = request->delivery->prefetch;
    log_request(prefetch ? " prefetch" : " take");
    log_release(request->delivery->give_back);
    if (++lease_server.takes > 1 && lease_server.busy_takes-- > 0) {
        peer_refuse(fd, id, SHUF_BUSY, 0);
        return;
    }
    struct lease_server_reply p = lease_server_reply_to(asked->n, asked->seed, prefetch);
    if (lease_server.corrupt)
        lease_server.corrupt(&p);
    if (p.descriptors > 0)
        log_request("+");
    if (!prefetch)
        lease_server.has_descriptor[asked->seed] = true;
    send_reply(fd, id, &p, connection);
}

static void reply_buffer(int fd, uint64_t id, const Shuf__Result *request, int connection)
{
    const uint64_t bytes = request->buffer->bytes;
    const bool sent = lease_server.transport == SHUF__TRANSPORT__TRANSPORT_INLINE;
    struct lease_server_reply p = lease_server_reply_to(bytes / 4, LEASE_SERVER_BUFFER, false);
    p.payload = 0;
    p.reply.count = bytes;
    p.reply.dtype = SHUF__DTYPE__DTYPE_AUTO;
    if (sent) {
        p.reply.lease = ++lease_server.leases;
        p.reply.block = LEASE_SERVER_BUFFER;
        p.reply.block_bytes = LEASE_SERVER_UNIT;
    }
    p.reply.shared = false;
    if (lease_server.corrupt)
        lease_server.corrupt(&p);
    log_request(p.descriptors > 0 ? " buffer+" : " buffer");
    log_release(request->delivery->give_back);
    send_reply(fd, id, &p, connection);
}

static void reply_write(int fd, uint64_t id, const Shuf__Write *request)
{
    Shuf__WriteReply done = SHUF__WRITE_REPLY__INIT;
    Shuf__ReleaseReply released = SHUF__RELEASE_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    log_request(" write%d:%d", (int)request->offset, (int)request->data.len);
    reply.id = id;
    reply.body_case =
        lease_server.wrong_write_reply ? SHUF__REPLY__BODY_RELEASE : SHUF__REPLY__BODY_WRITE;
    if (lease_server.wrong_write_reply)
        reply.release = &released;
    else
        reply.write = &done;
    peer_send_reply(fd, &reply, NULL, 0);
}

static void reply_release(int fd, uint64_t id, const Shuf__Release *release)
{
    Shuf__ReleaseReply done = SHUF__RELEASE_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    log_request(release->everything ? " goodbye" : " release");
    log_release(release);
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_RELEASE;
    reply.release = &done;
    if (release->n_lease > 0 && release->lease[0] > lease_server.leases)
        peer_refuse(fd, id, SHUF_INVALID, 0);
    else
        peer_send_reply(fd, &reply, NULL, 0);
}

void lease_server_script(int fd, int connection)
{
    const Shuf__Request *request;
    memset(lease_server.has_descriptor, 0, sizeof lease_server.has_descriptor);
    log_request("%shello", connection > 0 ? " " : "");
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    for (int i = 1; (request = peer_receive(fd)); i++) {
        if (i == lease_server.lost_at && connection < lease_server.lost_connections) {
            log_request(" lost");
            return;
        }
        const bool is_result = request->body_case == SHUF__REQUEST__BODY_RESULT;
        if (is_result && request->result->what_case == SHUF__RESULT__WHAT_PERMUTE)
            reply_permute(fd, request->id, request->result, connection);
        else if (is_result && request->result->what_case == SHUF__RESULT__WHAT_BUFFER)
            reply_buffer(fd, request->id, request->result, connection);
        else if (request->body_case == SHUF__REQUEST__BODY_WRITE)
            reply_write(fd, request->id, request->write);
        else if (request->body_case == SHUF__REQUEST__BODY_RELEASE)
            reply_release(fd, request->id, request->release);
        else
            return;
    }
}

/* ---- For tests ---- */

int lease_server_mappings(void)
{
    int count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:shuf-peer") != NULL;
    fclose(maps);
    return count;
}

static int descriptors_before;

shuf *lease_server_start(peer_script script)
{
    shuf *handle;
    lease_server.log[0] = '\0';
    lease_server.leases = 0;
    lease_server.takes = 0;
    descriptors_before = count_descriptors();
    peer_start(script);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    return handle;
}

void lease_server_finish(shuf *handle, const char *log)
{
    shuf_close(handle);
    peer_stop();
    assert_string_equal(lease_server.log, log);
    assert_int_equal(lease_server_mappings(), 0);
    assert_int_equal(count_descriptors(), descriptors_before);
    memset(&lease_server, 0, sizeof lease_server);
}

void lease_server_check(const shuf_lease *lease, int connection, uint64_t block)
{
    const uint32_t *values = lease->data;
    for (uint64_t i = 0; i < lease->result.shape.count && i < VALUES; i++)
        assert_int_equal(values[i], lease_server_value(connection, block, i));
}

unsigned lease_server_transport(Shuf__Transport transport)
{
    static const unsigned bits[] = {
        [SHUF__TRANSPORT__TRANSPORT_INLINE] = SHUF_INLINE,
        [SHUF__TRANSPORT__TRANSPORT_MEMFD] = SHUF_MEMFD,
        [SHUF__TRANSPORT__TRANSPORT_CUDA_FD] = SHUF_CUDA_FD,
        [SHUF__TRANSPORT__TRANSPORT_CUDA_IPC] = SHUF_CUDA_IPC,
    };
    return bits[transport];
}

void lease_server_take(shuf *handle, uint64_t block, uint64_t n, shuf_lease **lease)
{
    shuf_request request = {.permutation = {.n = n, .seed = block}};
    shuf_lease_options options = {.transports = lease_server_transport(lease_server.transport)};
    if (shuf_lease_take(handle, &request, &options, lease) != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    assert_int_equal((*lease)->block, block);
    assert_int_equal((*lease)->transport, lease_server.transport
                                              ? lease_server_transport(lease_server.transport)
                                              : SHUF_MEMFD);
}

void lease_server_release(shuf *handle, shuf_lease **lease)
{
    assert_int_equal(shuf_lease_release(handle, lease), SHUF_OK);
    assert_string_equal(shuf_message(handle), "");
    *lease = NULL;
}
