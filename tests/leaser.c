/* SPDX-License-Identifier: MIT
 *
 * See leaser.h.
 */
#include "leaser.h"

#include "support/cmocka_all.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct leaser leaser;

enum { NEXT_CONNECTION = 1000000000, VALUES = 1000 /* that are not zero */ };

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list args;
    size_t used = strlen(leaser.said);
    va_start(args, format);
    vsnprintf(leaser.said + used, sizeof leaser.said - used, format, args);
    va_end(args);
}

uint32_t leaser_value(int connection, uint64_t block, uint64_t i)
{
    return (uint32_t)((uint64_t)connection * NEXT_CONNECTION + block * 1000 + i);
}

int leaser_memory(const struct leaser_parcel *p, int connection)
{
    int fd = memfd_create("shuf-peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint32_t values[VALUES];
    for (uint64_t i = 0; i < VALUES; i++)
        values[i] = leaser_value(connection, p->reply.block, i);
    if (fd < 0 || ftruncate(fd, (off_t)p->file) != 0 ||
        (p->file > LEASER_OFFSET + sizeof values &&
         pwrite(fd, values, sizeof values, LEASER_OFFSET) != sizeof values) ||
        (!p->unsealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0))
        abort();
    return fd;
}

static void hear_release(const Shuf__Release *release)
{
    for (size_t i = 0; release && i < release->n_lease; i++)
        say("-%d", (int)release->lease[i]);
    for (size_t i = 0; release && i < release->n_unmapped; i++) {
        say("/%d", (int)release->unmapped[i]);
        leaser.has[release->unmapped[i]] = false;
    }
}

/* Where the values are. */
static void place(struct leaser_parcel *p, uint64_t block)
{
    bool by_descriptor = leaser.transport != SHUF__TRANSPORT__TRANSPORT_CUDA_IPC;
    p->reply.transport = leaser.transport ? leaser.transport : SHUF__TRANSPORT__TRANSPORT_MEMFD;
    p->reply.lease = ++leaser.leases;
    p->reply.block = block;
    p->reply.offset = LEASER_OFFSET;
    p->file = (LEASER_OFFSET + p->reply.bytes + LEASER_UNIT - 1) / LEASER_UNIT * LEASER_UNIT;
    p->reply.block_bytes = p->file;
    p->descriptors = by_descriptor && !leaser.has[block];
    p->reply.descriptor = p->descriptors;
    p->reply.shared = true;
    if (leaser.device_id)
        p->reply.device_id = leaser.device_id;
    if (!by_descriptor)
        leaser.hand_over(p);
}

struct leaser_parcel leaser_parcel(const Shuf__Permute *asked)
{
    struct leaser_parcel p = {.reply = SHUF__RESULT_REPLY__INIT};
    p.reply.rows = 1;
    p.reply.count = asked->n;
    p.reply.dtype = SHUF__DTYPE__DTYPE_U32;
    p.reply.bytes = asked->n * 4;
    if (asked->prefetch)
        return p;
    if (leaser.transport != SHUF__TRANSPORT__TRANSPORT_INLINE) {
        place(&p, asked->seed);
        return p;
    }
    p.reply.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    p.bulk = p.reply.bytes;
    return p;
}

static void send_parcel(int fd, uint64_t id, struct leaser_parcel *p, int connection)
{
    int descriptors[4];
    Shuf__Reply reply = SHUF__REPLY__INIT;
    uint32_t *values = calloc(p->bulk / 4 + 1, 4);
    for (uint64_t i = 0; i < p->bulk / 4; i++)
        values[i] = leaser_value(connection, 0, i);
    for (unsigned i = 0; i < p->descriptors; i++)
        descriptors[i] = leaser_memory(p, connection);
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &p->reply;
    reply.payload_bytes = p->bulk;
    peer_put_reply(fd, &reply, descriptors, p->descriptors);
    peer_put(fd, values, p->bulk);
    for (unsigned i = 0; i < p->descriptors; i++)
        close(descriptors[i]);
    free(values);
}

static void answer_permute(int fd, uint64_t id, const Shuf__Permute *asked, int connection)
{
    say(asked->prefetch ? " prefetch" : " take");
    hear_release(asked->give_back);
    if (++leaser.takes > 1 && leaser.refuse-- > 0) {
        peer_refuse(fd, id, SHUF_BUSY, 0);
        return;
    }
    struct leaser_parcel p = leaser_parcel(asked);
    if (leaser.spoil)
        leaser.spoil(&p);
    if (p.descriptors > 0)
        say("+");
    if (!asked->prefetch)
        leaser.has[asked->seed] = true;
    send_parcel(fd, id, &p, connection);
}

static void answer_allocate(int fd, uint64_t id, const Shuf__Allocate *asked, int connection)
{
    Shuf__Permute as = SHUF__PERMUTE__INIT;
    as.n = asked->bytes / 4;
    as.seed = LEASER_BUFFER;
    const bool sent = leaser.transport == SHUF__TRANSPORT__TRANSPORT_INLINE;
    struct leaser_parcel p = leaser_parcel(&as);
    p.bulk = 0;
    p.reply.count = asked->bytes;
    p.reply.dtype = SHUF__DTYPE__DTYPE_AUTO;
    if (sent) {
        p.reply.lease = ++leaser.leases;
        p.reply.block = LEASER_BUFFER;
        p.reply.block_bytes = LEASER_UNIT;
    }
    p.reply.shared = false;
    if (leaser.spoil)
        leaser.spoil(&p);
    say(p.descriptors > 0 ? " buffer+" : " buffer");
    hear_release(asked->give_back);
    send_parcel(fd, id, &p, connection);
}

static void answer_write(int fd, uint64_t id, const Shuf__Write *asked)
{
    Shuf__WriteReply done = SHUF__WRITE_REPLY__INIT;
    Shuf__ReleaseReply released = SHUF__RELEASE_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    say(" write%d:%d", (int)asked->offset, (int)asked->data.len);
    reply.id = id;
    reply.body_case = leaser.odd ? SHUF__REPLY__BODY_RELEASE : SHUF__REPLY__BODY_WRITE;
    if (leaser.odd)
        reply.release = &released;
    else
        reply.write = &done;
    peer_put_reply(fd, &reply, NULL, 0);
}

static void answer_release(int fd, uint64_t id, const Shuf__Release *release)
{
    Shuf__ReleaseReply done = SHUF__RELEASE_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    say(release->everything ? " goodbye" : " release");
    hear_release(release);
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_RELEASE;
    reply.release = &done;
    if (release->n_lease > 0 && release->lease[0] > leaser.leases)
        peer_refuse(fd, id, SHUF_INVALID, 0);
    else
        peer_put_reply(fd, &reply, NULL, 0);
}

void leaser_script(int fd, int connection)
{
    const Shuf__Request *request;
    memset(leaser.has, 0, sizeof leaser.has);
    say("%shello", connection > 0 ? " " : "");
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    for (int i = 1; (request = peer_get(fd)); i++) {
        if (i == leaser.leave && connection < leaser.leavers) {
            say(" lost");
            return;
        }
        if (request->body_case == SHUF__REQUEST__BODY_PERMUTE)
            answer_permute(fd, request->id, request->permute, connection);
        else if (request->body_case == SHUF__REQUEST__BODY_ALLOCATE)
            answer_allocate(fd, request->id, request->allocate, connection);
        else if (request->body_case == SHUF__REQUEST__BODY_WRITE)
            answer_write(fd, request->id, request->write);
        else if (request->body_case == SHUF__REQUEST__BODY_RELEASE)
            answer_release(fd, request->id, request->release);
        else
            return;
    }
}

/* ---- The test's side --------------------------------------------------------------- */

static int count_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

int leaser_mappings(void)
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

shuf *leaser_begin(peer_script script)
{
    shuf *handle;
    leaser.said[0] = '\0';
    leaser.leases = 0;
    leaser.takes = 0;
    descriptors_before = count_descriptors();
    peer_start(script);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    return handle;
}

void leaser_finish(shuf *handle, const char *said)
{
    shuf_close(handle);
    peer_stop();
    assert_string_equal(leaser.said, said);
    assert_int_equal(leaser_mappings(), 0);
    assert_int_equal(count_descriptors(), descriptors_before);
    memset(&leaser, 0, sizeof leaser);
}

void leaser_check(const shuf_lease *lease, int connection, uint64_t block)
{
    const uint32_t *values = lease->data;
    for (uint64_t i = 0; i < lease->result.shape.count && i < VALUES; i++)
        assert_int_equal(values[i], leaser_value(connection, block, i));
}

unsigned leaser_bit(Shuf__Transport transport)
{
    static const unsigned bits[] = {
        [SHUF__TRANSPORT__TRANSPORT_INLINE] = SHUF_INLINE,
        [SHUF__TRANSPORT__TRANSPORT_MEMFD] = SHUF_MEMFD,
        [SHUF__TRANSPORT__TRANSPORT_CUDA_FD] = SHUF_CUDA_FD,
        [SHUF__TRANSPORT__TRANSPORT_CUDA_IPC] = SHUF_CUDA_IPC,
    };
    return bits[transport];
}

void leaser_take(shuf *handle, uint64_t block, uint64_t n, shuf_lease **lease)
{
    shuf_permutation what = {.n = n, .seed = block};
    shuf_lease_options options = {.transports = leaser_bit(leaser.transport)};
    if (shuf_lease_take(handle, &what, &options, lease) != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    assert_int_equal((*lease)->block, block);
    assert_int_equal((*lease)->transport,
                     leaser.transport ? leaser_bit(leaser.transport) : SHUF_MEMFD);
}

void leaser_release(shuf *handle, shuf_lease **lease)
{
    assert_int_equal(shuf_lease_release(handle, *lease), SHUF_OK);
    assert_string_equal(shuf_message(handle), "");
    *lease = NULL;
}
