/* SPDX-License-Identifier: MIT
 *
 * See wire.h.
 */
#include "support/wire.h"

#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/harness.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void wire_start(struct harness *h, const char *backend, const char *config)
{
    static char path[HARNESS_PATH + 8];
    static const char *const extra[] = {"--config", path, NULL};
    assert_true(harness_prepare(h, backend, extra));
    snprintf(path, sizeof path, "%s/conf", h->directory);
    shufd_write(path, config);
    assert_true(harness_restart(h));
}

int wire_start_each(void **state)
{
    static struct harness h;
    *state = harness_start(&h, harness_backend, NULL) ? &h : NULL;
    return *state ? 0 : -1;
}

int wire_start_uncached(void **state)
{
    static struct harness h;
    wire_start(&h, harness_backend, "cache_time = 0\n");
    *state = &h;
    return 0;
}

int wire_stop_each(void **state)
{
    return harness_stop(*state) ? 0 : -1;
}

struct wire *wire_open(const struct harness *h)
{
    struct wire *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->descriptor = -1;
    w->fd = harness_connect(h->socket);
    assert_true(w->fd >= 0);
    return w;
}

static struct wire *greet(struct wire *w)
{
    wire_send_hello(w, SHUF__PROTOCOL_VERSION);
    wire_expect(w, SHUF_OK, "");
    return w;
}

struct wire *wire_greet(const struct harness *h)
{
    return greet(wire_open(h));
}

/* The kernel reports the effective user to the daemon. */
struct wire *wire_open_as(const struct harness *h, uid_t user)
{
    assert_int_equal(seteuid(user), 0);
    struct wire *w = wire_open(h);
    assert_int_equal(seteuid(0), 0);
    return w;
}

struct wire *wire_greet_as(const struct harness *h, uid_t user)
{
    return greet(wire_open_as(h, user));
}

int wire_take_descriptor(struct wire *w)
{
    int fd = w->descriptor;
    w->descriptor = -1;
    return fd;
}

static void drop_descriptor(struct wire *w)
{
    int fd = wire_take_descriptor(w);
    if (fd >= 0)
        close(fd);
}

void wire_close(struct wire *w)
{
    drop_descriptor(w);
    close(w->fd);
    free(w);
}

void wire_send_bytes(struct wire *w, const void *bytes, size_t size)
{
    ssize_t sent = 0;
    for (size_t done = 0; done < size; done += (size_t)sent) {
        sent = send(w->fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        assert_true(sent > 0);
    }
}

ssize_t wire_try_descriptors(int socket, const void *bytes, size_t size, const int *fds,
                             size_t count, int flags)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(WIRE_DESCRIPTORS * sizeof *fds)];
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(count * sizeof *fds)}};
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = CMSG_SPACE(count * sizeof *fds)};
    assert_in_range(count, 1, WIRE_DESCRIPTORS);
    memcpy(CMSG_DATA(&control.header), fds, count * sizeof *fds);
    return sendmsg(socket, &message, MSG_NOSIGNAL | flags);
}

size_t wire_pack(struct wire *w, Shuf__Request *request, uint8_t *at, size_t room)
{
    request->id = ++w->id;
    size_t size = shuf__message_pack(&request->base, at, room);
    assert_true(size > 0);
    return size;
}

void wire_send(struct wire *w, Shuf__Request *request)
{
    wire_send_bytes(w, w->frame, wire_pack(w, request, w->frame, sizeof w->frame));
}

void wire_send_hello(struct wire *w, uint32_t version)
{
    Shuf__Hello hello = SHUF__HELLO__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    hello.version = version;
    hello.client = (char *)"test";
    request.body_case = SHUF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    wire_send(w, &request);
}

void wire_send_result(struct wire *w, struct shuf__result_message *message)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(message);
    wire_send(w, &request);
}

void wire_send_release(struct wire *w, uint64_t *leases, size_t count, uint64_t *unmapped,
                       size_t unmapped_count)
{
    Shuf__Release release = SHUF__RELEASE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    release.lease = leases;
    release.n_lease = count;
    release.unmapped = unmapped;
    release.n_unmapped = unmapped_count;
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = &release;
    wire_send(w, &request);
}

void wire_send_release_all(struct wire *w)
{
    Shuf__Release release = SHUF__RELEASE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    release.everything = true;
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = &release;
    wire_send(w, &request);
}

void wire_read_payload(struct wire *w, void *out, size_t size)
{
    ssize_t got = 0;
    for (size_t done = 0; done < size; done += (size_t)got) {
        got = recv(w->fd, (char *)out + done, size - done, 0);
        assert_true(got > 0);
    }
}

void wire_read_permutation(struct wire *w, uint64_t bytes, uint64_t n)
{
    uint8_t *values = malloc(bytes), *seen = calloc(n / 8 + 1, 1);
    assert_non_null(values);
    assert_non_null(seen);
    wire_read_payload(w, values, bytes);
    const uint32_t *numbers = (const uint32_t *)(const void *)values;
    for (uint64_t i = 0; i < bytes / 4; i++) {
        if (numbers[i] >= n || (seen[numbers[i] / 8] >> numbers[i] % 8 & 1))
            fail_msg("value %u is out of range or occurs twice", numbers[i]);
        seen[numbers[i] / 8] |= (uint8_t)(1 << numbers[i] % 8);
    }
    free(seen);
    free(values);
}

/* Receives the first bytes of a frame, with the descriptor if one comes. */
static void read_header(struct wire *w)
{
    union {
        struct cmsghdr header;
        /* Room for two, so that a second descriptor is noticed. */
        uint8_t bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec part = {w->frame, SHUF__FRAME_HEADER};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(w->fd, &message, MSG_CMSG_CLOEXEC);
    assert_true(got > 0);
    assert_int_equal(message.msg_flags & MSG_CTRUNC, 0);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header) {
        assert_int_equal(header->cmsg_len, CMSG_LEN(sizeof(int)));
        memcpy(&w->descriptor, CMSG_DATA(header), sizeof(int));
    }
    wire_read_payload(w, w->frame + got, SHUF__FRAME_HEADER - (size_t)got);
}

const Shuf__Reply *wire_receive(struct wire *w)
{
    size_t length;
    drop_descriptor(w);
    read_header(w);
    assert_int_not_equal(shuf__frame_parse(w->frame, SHUF__FRAME_HEADER, &length), SHUF__FRAME_BAD);
    wire_read_payload(w, w->frame + SHUF__FRAME_HEADER, length);
    const Shuf__Reply *reply = shuf__reply_unpack(&w->arena, w->frame + SHUF__FRAME_HEADER, length);
    assert_non_null(reply);
    bool has_descriptor = reply->body_case == SHUF__REPLY__BODY_RESULT && reply->result->descriptor;
    assert_int_equal(w->descriptor >= 0, has_descriptor);
    return reply;
}

const Shuf__Reply *wire_expect(struct wire *w, shuf_status status, const char *text)
{
    const Shuf__Reply *reply = wire_receive(w);
    if (reply->status != (uint32_t)status || !strstr(reply->message, text))
        fail_msg("expected %s with \"%s\", got %s with \"%s\"", shuf_status_name(status), text,
                 shuf_status_name((shuf_status)reply->status), reply->message);
    assert_null(strchr(reply->message, '\n'));
    if (status == SHUF_OK)
        assert_int_equal(reply->id, w->id);
    return reply;
}

void wire_expect_end(struct wire *w)
{
    char byte;
    assert_int_equal(recv(w->fd, &byte, 1, 0), 0);
}

const Shuf__StatusReply *wire_ask_status(struct wire *w)
{
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    wire_send(w, &request);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_STATUS_REPLY);
    return reply->status_reply;
}

Shuf__StatusReply wire_status(const struct harness *h)
{
    struct wire *w = wire_greet(h);
    Shuf__StatusReply copy = *wire_ask_status(w);
    wire_close(w);
    return copy;
}

void wire_wait(unsigned *waited, const char *condition)
{
    if (*waited > HARNESS_WAIT_MS)
        fail_msg("not within the time limit: %s", condition);
    usleep(1000);
    ++*waited;
}

void wire_await_queued(const struct harness *h, uint64_t queued)
{
    WIRE_AWAIT(h, s, s.queued == queued);
}

void wire_await_end_of_listening(const struct harness *h)
{
    int fd;
    for (int waited = 0; (fd = harness_connect(h->socket)) >= 0; waited += 5) {
        close(fd);
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
    }
    assert_true(errno == ENOENT || errno == ECONNREFUSED);
}

uint64_t wire_idle_bytes(const struct harness *h)
{
    const Shuf__StatusReply s = wire_status(h);
    return s.host_idle + s.device_idle;
}

void wire_await_memory_free(const struct harness *h)
{
    WIRE_AWAIT(h, s, s.memory_used == s.host_idle + s.device_idle);
}

uint64_t wire_private_bytes(pid_t pid)
{
    char path[64], line[256];
    uint64_t kib = 0, part;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Dirty: %" SCNu64, &part) == 1)
            kib += part;
    fclose(file);
    return kib * 1024;
}

static unsigned count_descriptors(pid_t pid, bool show)
{
    char path[64], target[128];
    unsigned count = 0, segments = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        if (length <= 0)
            continue; /* skips the directory itself, and a descriptor that has been closed since */
        target[length] = '\0';
        count++;
        segments += strstr(target, "/cuda.shm.") != NULL;
        if (show)
            fprintf(stderr, "descriptor %s: %s\n", entry->d_name, target);
    }
    closedir(directory);
    return count - (segments > 0);
}

unsigned wire_descriptors(pid_t pid)
{
    return count_descriptors(pid, false);
}

void wire_show_descriptors(pid_t pid)
{
    count_descriptors(pid, true);
}

Shuf__Transport *wire_accept(Shuf__Transport transport)
{
    /* The last element is an unknown transport. */
    static Shuf__Transport accept[SHUF__TRANSPORT__TRANSPORT_CUDA_IPC + 2];
    const size_t place = transport <= SHUF__TRANSPORT__TRANSPORT_CUDA_IPC
                             ? (size_t)transport
                             : SHUF__TRANSPORT__TRANSPORT_CUDA_IPC + 1;
    accept[place] = transport;
    return &accept[place];
}

struct shuf__result_message wire_result(Shuf__Result__WhatCase what, Shuf__Transport transport)
{
    struct shuf__result_message message;
    shuf__result_message_init(&message, what);
    message.delivery.accept = wire_accept(transport);
    message.delivery.n_accept = transport != SHUF__TRANSPORT__TRANSPORT_NONE;
    return message;
}

struct shuf__result_message wire_permutation(uint64_t n, Shuf__Transport transport)
{
    struct shuf__result_message permute = wire_result(SHUF__RESULT__WHAT_PERMUTE, transport);
    permute.permutation.n = n;
    permute.permutation.seed = 7;
    return permute;
}

struct shuf__result_message wire_endless_permutation(void)
{
    static uint64_t seed; /* different seeds, because equal requests share a job */
    struct shuf__result_message permute =
        wire_permutation(UINT64_C(1) << 62, SHUF__TRANSPORT__TRANSPORT_NONE);
    /* philox24 has to scan the permutation up to a late position */
    permute.permutation.algorithm = (char *)"philox24";
    seed += 1000;
    permute.permutation.seed = seed;
    permute.permutation.n -= 1; /* at a power of two philox24 needs no scan */
    shuf__result_message_add_view(&permute, SHUF__PERMUTE__VIEW_SLICE);
    permute.slice.offset = permute.permutation.n - 1;
    permute.slice.count = permute.slice.stride = 1;
    return permute;
}

Shuf__Transport wire_backend_transport(const char *backend)
{
    return strncmp(backend, "cuda", 4) == 0 ? SHUF__TRANSPORT__TRANSPORT_CUDA_FD
                                            : SHUF__TRANSPORT__TRANSPORT_MEMFD;
}

const Shuf__ResultReply *wire_lease(struct wire *w, uint64_t n, uint64_t seed,
                                    Shuf__Transport transport)
{
    struct shuf__result_message permute = wire_permutation(n, transport);
    permute.permutation.seed = seed;
    wire_send_result(w, &permute);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    assert_int_equal(reply->transport, transport);
    assert_int_not_equal(reply->lease, 0);
    assert_int_not_equal(reply->block, 0);
    assert_true(reply->block_bytes >= reply->bytes &&
                reply->block_bytes % (uint64_t)sysconf(_SC_PAGESIZE) == 0);
    return reply;
}

void wire_release(struct wire *w, uint64_t lease, uint64_t block)
{
    wire_send_release(w, &lease, 1, &block, block != 0);
    wire_expect(w, SHUF_OK, "");
}

const void *wire_map(struct wire *w, uint64_t bytes)
{
    const void *view = mmap(NULL, bytes, PROT_READ, MAP_SHARED, w->descriptor, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    drop_descriptor(w);
    return view;
}

void wire_unmap(const void *view, uint64_t bytes)
{
    assert_int_equal(munmap((void *)(uintptr_t)view, bytes), 0);
}

void wire_check_alive(struct wire *w)
{
    enum { N = 1000 };
    uint32_t values[N];
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    shuf_primefold f = shuf_primefold_make(N, 7, 0);
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->payload_bytes, sizeof values);
    wire_read_payload(w, values, sizeof values);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(values[i], shuf_primefold_forward(&f, i));
}

void wire_check_unread_results(const struct harness *h, bool host_memory)
{
    enum { CLIENTS = 8, N = 8 << 20 };
    const uint64_t most = CLIENTS * (UINT64_C(1) << 20);
    struct wire *clients[CLIENTS];
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_NONE);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = wire_greet(h);
    wire_send_result(clients[0], &permute); /* starts the threads and allocates the workspaces */
    wire_expect(clients[0], SHUF_OK, "");
    uint64_t before = wire_private_bytes(h->pid);
    permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    for (int i = 0; i < CLIENTS; i++) {
        permute.permutation.seed =
            100 + (uint64_t)i; /* different requests, which share no result */
        wire_send_result(clients[i], &permute);
        wire_expect(clients[i], SHUF_OK, "");
    }
    usleep(100000); /* gives the daemon time to buffer more */
    uint64_t used = wire_status(h).memory_used;
    assert_true(used >= CLIENTS * UINT64_C(4) * N);
    uint64_t after = wire_private_bytes(h->pid), own = host_memory ? used : 0;
    if (!TEST_SANITIZED && after > before + own + most)
        fail_msg("%" PRIu64 " bytes beyond the results, expected at most %" PRIu64,
                 after - before - own, most);
    for (int i = 0; i < CLIENTS; i++)
        wire_close(clients[i]);
    wire_await_memory_free(h);
}

/* ---- Buffers and shuffles ---- */

#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD
#define DEVICE SHUF__TRANSPORT__TRANSPORT_CUDA_FD

void wire_send_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport)
{
    struct shuf__result_message buffer = wire_result(SHUF__RESULT__WHAT_BUFFER, transport);
    buffer.buffer.bytes = bytes;
    wire_send_result(w, &buffer);
}

Shuf__ResultReply wire_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport)
{
    wire_send_allocate(w, bytes, transport);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_RESULT);
    const Shuf__ResultReply r = *reply->result;
    assert_true(r.lease != 0 && r.block != 0 && r.block_bytes >= bytes && !r.shared);
    assert_true(r.transport == transport && r.bytes == bytes && r.count == bytes && r.rows == 1);
    assert_int_equal(r.descriptor, transport == HOST || transport == DEVICE);
    assert_int_equal(reply->payload_bytes + r.n_first + r.n_last + r.record, 0);
    return r;
}

void wire_send_write(struct wire *w, uint64_t lease, uint64_t offset, const void *data, size_t size)
{
    Shuf__Write write = SHUF__WRITE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    write.lease = lease;
    write.offset = offset;
    write.data.data = (uint8_t *)(uintptr_t)data;
    write.data.len = size;
    request.body_case = SHUF__REQUEST__BODY_WRITE;
    request.write = &write;
    wire_send(w, &request);
}

struct shuf__result_message wire_shuffle_of(uint64_t lease, uint64_t n, uint64_t record,
                                            Shuf__Transport transport)
{
    struct shuf__result_message shuffle = wire_result(SHUF__RESULT__WHAT_SHUFFLE, transport);
    shuffle.permutation.n = n;
    shuffle.permutation.seed = 7;
    shuffle.shuffle.record = record;
    shuffle.shuffle.lease = lease;
    return shuffle;
}

const Shuf__Reply *wire_shuffle(struct wire *w, struct shuf__result_message *shuffle)
{
    const uint64_t n = shuffle->permutation.n, record = shuffle->shuffle.record;
    wire_send_result(w, shuffle);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_RESULT);
    const Shuf__ResultReply *r = reply->result;
    assert_string_equal(r->algorithm, "primefold");
    assert_true(r->rows == 1 && r->count == n && r->record == record);
    assert_true(r->bytes == n * record && !r->shared);
    assert_int_equal(r->n_first + r->n_last + r->fingerprint, 0);
    return reply;
}

void *wire_map_writable(struct wire *w, uint64_t bytes)
{
    int fd = wire_take_descriptor(w);
    void *view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    close(fd);
    return view;
}

bool wire_is_zero(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* ---- shufd to its end, and its files ---- */

void shufd_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

size_t shufd_read(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
    return length;
}

void shufd_await(const char *path, char *text, size_t size, const char *expected)
{
    for (int waited = 0; shufd_read(path, text, size), !strstr(text, expected); waited += 5) {
        if (waited >= HARNESS_WAIT_MS)
            fail_msg("no \"%s\" in %s:\n%s", expected, path, text);
        usleep(5000);
    }
}

void shufd_expect_code(int status, int code)
{
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

void shufd_expect_exit(const char *const *arguments, int code, const char *text)
{
    char output[16384]; /* holds --help and --print-config */
    int status = harness_run(arguments, output, sizeof output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !strstr(output, text))
        fail_msg("expected exit %d with \"%s\", got wait status 0x%x with \"%s\"", code, text,
                 (unsigned)status, output);
}
