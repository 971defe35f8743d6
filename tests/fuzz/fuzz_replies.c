/* SPDX-License-Identifier: MIT
 *
 * Replies as the client reads them. For any bytes of the daemon, a call of libshuf must end with a
 * status, and a failed call with a printable line. The first bytes of the input select the call and
 * a descriptor, and the rest are the bytes of the daemon. The linker's --wrap replaces connect()
 * and send(). So the client reads these bytes on its first connection, one reply for each request.
 * Later connections fail.
 */
#include "../support/take.h"
#include "fuzz.h"
#include "message.h"
#include "shuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { NO_HELLO = 0x80, HEAD = 2, N = 100, BLOCK = 4096 };

static int client_end = -1; /* until it is taken */

/* The daemon's end of the connection, and the bytes that it has not sent yet. */
static int daemon_end;
static struct fuzz_bytes rest;
static uint8_t descriptor; /* the kind of descriptor to send with the first bytes; 0: none */

/* ---- The connection ---- */

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    (void)address;
    (void)length;
    if (client_end < 0) {
        errno = ECONNREFUSED;
        return -1;
    }
    fuzz_require(dup3(client_end, fd, O_CLOEXEC) == fd);
    close(client_end);
    client_end = -1;
    return 0;
}

/* A pause ends at once, but the client's clock advances by its length. */
static uint64_t paused_ns;

int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    (void)left;
    paused_ns += (uint64_t)pause->tv_sec * 1000000000 + (uint64_t)pause->tv_nsec;
    return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = __real_clock_gettime(clock, now);
    const uint64_t ns = (uint64_t)now->tv_nsec + paused_ns;
    now->tv_sec += (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return result;
}

static int make_memfd(off_t size, int seals)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    fuzz_require(fd >= 0 && ftruncate(fd, size) == 0);
    if (seals)
        fcntl(fd, F_ADD_SEALS, seals);
    return fd;
}

/* The descriptors to send with the first bytes. Returns their number. */
static int make_descriptors(uint8_t kind, int fds[2])
{
    switch (kind % 8) {
    case 1:
        fds[0] = make_memfd(BLOCK, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
        return 1;
    case 2:
        fds[0] = make_memfd(100, F_SEAL_SHRINK);
        return 1;
    case 3:
        fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
        return 1;
    case 4:
        fds[0] = make_memfd(BLOCK, F_SEAL_SHRINK | F_SEAL_GROW);
        return 1;
    case 5:
        fuzz_require(pipe2(fds, O_CLOEXEC) == 0);
        return 2;
    case 6:
        fds[0] = make_memfd(BLOCK, 0);
        return 1;
    default:
        return 0;
    }
}

static void send_piece(int fd, const uint8_t *bytes, size_t size, uint8_t kind)
{
    union {
        struct cmsghdr aligned;
        uint8_t bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    int fds[2];
    const int count = make_descriptors(kind, fds);
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        control.aligned.cmsg_level = SOL_SOCKET;
        control.aligned.cmsg_type = SCM_RIGHTS;
        control.aligned.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(&control.aligned), fds, (size_t)count * sizeof(int));
    }
    fuzz_require(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)size);
    for (int i = 0; i < count; i++)
        close(fds[i]);
}

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);

static void send_hello(int fd)
{
    static char name[] = "shufd fuzz";
    uint8_t bytes[128];
    Shuf__HelloReply hello = SHUF__HELLO_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    hello.version = SHUF__PROTOCOL_VERSION;
    hello.daemon = name;
    reply.id = 1;
    reply.body_case = SHUF__REPLY__BODY_HELLO;
    reply.hello = &hello;
    const size_t size = shuf__message_pack(&reply.base, bytes, sizeof bytes);
    fuzz_require(__real_send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
}

/* The bytes of the next reply: a frame and its payload, or all. */
static size_t next_piece(void)
{
    static struct shuf__arena arena;
    size_t length = 0;
    if (shuf__frame_parse(rest.at, rest.left, &length) != SHUF__FRAME_WHOLE)
        return rest.left;
    const size_t behind = rest.left - SHUF__FRAME_HEADER - length;
    const Shuf__Reply *reply = shuf__reply_unpack(&arena, rest.at + SHUF__FRAME_HEADER, length);
    const uint64_t payload = reply ? reply->payload_bytes : 0;
    return SHUF__FRAME_HEADER + length + (payload < behind ? payload : behind);
}

/* The daemon answers a request at once, and leaves after its last bytes. */
static void answer(void)
{
    const size_t size = next_piece();
    if (size > 0)
        send_piece(daemon_end, rest.at, size, descriptor);
    descriptor = 0;
    rest.at += size;
    rest.left -= size;
    if (rest.left == 0)
        shutdown(daemon_end, SHUT_WR);
}

static bool says_hello;

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    const ssize_t sent = __real_send(fd, bytes, size, flags);
    if (says_hello)
        send_hello(daemon_end);
    else
        answer();
    says_hello = false;
    return sent;
}

static void start_daemon(const uint8_t *data, size_t size)
{
    int ends[2];
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    says_hello = !(data[0] & NO_HELLO);
    descriptor = data[1];
    rest = (struct fuzz_bytes){data + HEAD, size - HEAD};
    daemon_end = ends[0];
    client_end = ends[1];
}

/* ---- The calls ---- */

static const shuf_request permutation = {.permutation = {.n = N, .seed = 7, .dtype = SHUF_U32}};
static const shuf_request numbers = {
    .kind = SHUF_NUMBERS,
    .numbers = {
        .distribution = SHUF_GAUSS, .count = N, .std = 1, .dtype = SHUF_F32, .moments = true}};
static shuf_result result;

static void observe(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)context;
    (void)event;
    fuzz_require(done <= all);
}

static bool count_bytes(void *context, const void *bytes, size_t size)
{
    size_t *count = context;
    fuzz_require(size > 0 && size % 4 == 0);
    *count += size + 0 * ((const uint8_t *)bytes)[size - 1];
    return true;
}

static shuf_status permute(shuf *h)
{
    uint32_t *out = malloc(N * sizeof *out);
    fuzz_require(out != NULL);
    const shuf_status status = shuf_copy(h, &permutation, out, N * sizeof *out, &result);
    free(out);
    return status;
}

static shuf_status permute_each(shuf *h)
{
    size_t count = 0;
    const shuf_status status = shuf_each(h, &permutation, count_bytes, &count, &result);
    fuzz_require(status != SHUF_OK || count == 4 * N);
    fuzz_require(count <= 4 * N);
    return status;
}

static shuf_status summarize(shuf *h)
{
    return shuf_summarize(h, &permutation, &result);
}

static shuf_status draw(shuf *h)
{
    float *out = malloc(N * sizeof *out);
    fuzz_require(out != NULL);
    const shuf_status status = shuf_copy(h, &numbers, out, N * sizeof *out, &result);
    free(out);
    return status;
}

static shuf_status draw_summary(shuf *h)
{
    return shuf_summarize(h, &numbers, &result);
}

static shuf_status look_up(shuf *h)
{
    const shuf_request whole = {.permutation = {.n = N, .seed = 7}};
    const uint64_t at[3] = {1, 99, 50};
    uint64_t *out = malloc(sizeof at);
    fuzz_require(out != NULL);
    const shuf_status status = shuf_index(h, &whole.permutation, SHUF_FORWARD, at, 3, out);
    for (int i = 0; i < 3; i++)
        fuzz_require(status != SHUF_OK || out[i] < N);
    free(out);
    return status;
}

/* Reads every byte of the values through the mapping. */
static shuf_status use_lease(shuf *h, shuf_status status, shuf_lease *lease)
{
    uint8_t byte, sum = 0;
    if (status != SHUF_OK) {
        fuzz_require(lease == NULL);
        return status;
    }
    const uint64_t mapped = lease->data ? lease->result.shape.bytes : 0;
    fuzz_require(mapped > 0 || lease->result.shape.bytes == 0 ||
                 (lease->transport == SHUF_INLINE && lease->id != 0)); /* a buffer by copies */
    for (uint64_t i = 0; i < mapped; i++)
        sum = (uint8_t)(sum + ((const volatile uint8_t *)lease->data)[i]);
    shuf_lease_read(h, lease, lease->result.shape.bytes - 1, 1, &byte);
    if (lease->buffer)
        shuf_lease_write(h, lease, 0, 1, &sum);
    return shuf_lease_release(h, &lease);
}

static shuf_status lease(shuf *h)
{
    shuf_lease *taken = NULL;
    const shuf_status status = shuf_lease_take(h, &permutation, NULL, &taken);
    return use_lease(h, status, taken);
}

static bool visit(void *context, const shuf_lease_entry *entry)
{
    unsigned *count = context;
    const shuf_permutation *p = &entry->request.permutation;
    if (entry->request.kind == SHUF_PERMUTATION)
        fuzz_require(fuzz_is_printable(p->algorithm) && (!p->key || fuzz_is_printable(p->key)));
    return ++*count < 5000;
}

static shuf_status leases(shuf *h)
{
    unsigned count = 0;
    return shuf_leases(h, visit, &count);
}

static shuf_status read_status(shuf *h)
{
    static shuf_daemon daemon;
    const shuf_status status = shuf_daemon_status(h, &daemon);
    if (status != SHUF_OK)
        return status;
    fuzz_require(daemon.users <= SHUF_USERS);
    fuzz_require(fuzz_is_printable(daemon.version) && fuzz_is_printable(daemon.device));
    fuzz_require(fuzz_is_printable(daemon.backend) && fuzz_is_printable(daemon.device_id));
    return status;
}

static shuf_status drop(shuf *h)
{
    shuf_dropped dropped;
    return shuf_drop(h, SHUF_OWN, 0, &dropped);
}

static shuf_status metrics(shuf *h)
{
    char *text = NULL;
    const shuf_status status = shuf_daemon_metrics(h, SHUF_PROMETHEUS, &text);
    fuzz_require((status == SHUF_OK) == (text != NULL));
    fuzz_require(!text || strlen(text) < 1 << 20);
    free(text);
    return status;
}

static shuf_status buffer(shuf *h)
{
    shuf_lease *taken = NULL;
    const shuf_status status = take_buffer(h, BLOCK, NULL, &taken);
    return use_lease(h, status, taken);
}

static shuf_status shuffle_lease(shuf *h)
{
    const shuf_records records = {.n = 50, .record = 8};
    shuf_lease *input = NULL, *taken = NULL;
    shuf_status status = shuf_lease_take(h, &permutation, NULL, &input);
    if (status != SHUF_OK)
        return status;
    status = take_shuffle(h, &records, input, NULL, &taken);
    use_lease(h, status, taken);
    return shuf_lease_release(h, &input);
}

static shuf_status inline_buffer(shuf *h)
{
    const shuf_lease_options options = {.transports = SHUF_INLINE};
    shuf_lease *taken = NULL;
    const shuf_status status = take_buffer(h, BLOCK, &options, &taken);
    if (status != SHUF_OK)
        return status;
    shuf_lease_write(h, taken, 8, 6, "values");
    return shuf_lease_release(h, &taken);
}

static shuf_status prefetch(shuf *h)
{
    return shuf_prefetch(h, &permutation, NULL);
}

static shuf_status shuffle(shuf *h)
{
    const shuf_records records = {.n = 50, .record = 8};
    uint64_t in[50], out[50];
    for (size_t i = 0; i < 50; i++)
        in[i] = i;
    return shuf_shuffle(h, &records, in, out, sizeof in, &result);
}

static shuf_status (*const calls[])(shuf *) = {
    permute,     permute_each, summarize, draw,   draw_summary,  look_up,  lease,   leases,
    read_status, drop,         metrics,   buffer, shuffle_lease, prefetch, shuffle, inline_buffer};

/* ---- The target ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    if (size <= HEAD || seed % 32 == 0)
        return LLVMFuzzerMutate(data, size, room);
    return HEAD + wire_mutate_frames(data + HEAD, size - HEAD, room - HEAD, seed);
}

static void check_result_text(void)
{
    fuzz_require(fuzz_is_printable(result.algorithm) && fuzz_is_printable(result.backend));
    fuzz_require(fuzz_is_printable(result.device));
    fuzz_require(result.n_first <= SHUF_SAMPLES && result.n_last <= SHUF_SAMPLES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shuf *h = NULL;
    if (size < HEAD || size > 128 * 1024)
        return 0;
    start_daemon(data, size);
    memset(&result, 0, sizeof result);
    shuf_status status = shuf_connect(&h, "fuzz.sock");
    if (status == SHUF_OK) {
        shuf_set_reconnect(h, 0);
        shuf_set_observer(h, observe, NULL);
        status = calls[(data[0] & 0x7f) % (sizeof calls / sizeof *calls)](h);
    }
    fuzz_require(h != NULL);
    fuzz_require((status == SHUF_OK) == (shuf_message(h)[0] == '\0'));
    fuzz_require(fuzz_is_printable(shuf_message(h)));
    if (status == SHUF_OK)
        check_result_text();
    shuf_close(h);
    close(daemon_end);
    if (client_end >= 0)
        close(client_end);
    client_end = -1;
    return 0;
}
