/* SPDX-License-Identifier: MIT
 *
 * See mapping.h.
 */
#include "mapping.h"

#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- Transports ---- */

static const struct {
    shuf_transport transport;
    Shuf__Transport wire;
    const char *name;
} transport_table[SHUF__TRANSPORTS] = {
    {SHUF_INLINE, SHUF__TRANSPORT__TRANSPORT_INLINE, "inline"},
    {SHUF_MEMFD, SHUF__TRANSPORT__TRANSPORT_MEMFD, "memfd"},
    {SHUF_CUDA_FD, SHUF__TRANSPORT__TRANSPORT_CUDA_FD, "cuda-fd"},
    {SHUF_CUDA_IPC, SHUF__TRANSPORT__TRANSPORT_CUDA_IPC, "cuda-ipc"},
};

const char *shuf_transport_name(shuf_transport transport)
{
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++)
        if (transport_table[i].transport == transport)
            return transport_table[i].name;
    return "none";
}

shuf_transport shuf__transport_of_wire(Shuf__Transport wire)
{
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++)
        if (transport_table[i].wire == wire)
            return transport_table[i].transport;
    return (shuf_transport)0;
}

static bool is_in_set(unsigned set, Shuf__Transport wire)
{
    return set & shuf__transport_of_wire(wire);
}

shuf_status shuf__transport_list(unsigned set, Shuf__Transport list[SHUF__TRANSPORTS],
                                 size_t *count, struct shuf__error *error)
{
    unsigned rest = set;
    *count = 0;
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++) {
        if (!(set & transport_table[i].transport))
            continue;
        list[(*count)++] = transport_table[i].wire;
        rest &= ~(unsigned)transport_table[i].transport;
    }
    if (*count > 0 && rest == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "transports 0x%x: expected one or more of SHUF_INLINE, SHUF_MEMFD, "
                      "SHUF_CUDA_FD and SHUF_CUDA_IPC",
                      set);
}

/* ---- The reply ---- */

static shuf_status check_lease_id(const Shuf__ResultReply *p, bool buffer,
                                  struct shuf__error *error)
{
    bool leased = buffer || p->transport != SHUF__TRANSPORT__TRANSPORT_INLINE;
    const char *name = shuf_transport_name(shuf__transport_of_wire(p->transport));
    if ((p->lease != 0) != leased)
        return shuf__fail(error, SHUF_PROTOCOL, "reply lease %" PRIu64 ": expected %s with %s",
                          p->lease, leased ? "another" : "0", name);
    if (p->descriptor && p->transport != SHUF__TRANSPORT__TRANSPORT_MEMFD &&
        p->transport != SHUF__TRANSPORT__TRANSPORT_CUDA_FD)
        return shuf__fail(error, SHUF_PROTOCOL, "reply with a descriptor: expected none with %s",
                          name);
    return SHUF_OK;
}

/* All values must be inside the block: only the block is mapped. */
static shuf_status check_offset(const Shuf__ResultReply *p, const shuf_shape *shape,
                                struct shuf__error *error)
{
    const uint64_t bytes = shape->bytes;
    if (p->block_bytes == 0 || p->block_bytes > INT64_MAX)
        return shuf__fail(error, SHUF_PROTOCOL, "reply block_bytes %" PRIu64 ": expected 1 to 2^63",
                          p->block_bytes);
    if (p->offset > p->block_bytes || bytes > p->block_bytes - p->offset)
        return shuf__fail(error, SHUF_PROTOCOL,
                          "reply offset %" PRIu64 ": expected %" PRIu64
                          " bytes behind it in a block of %" PRIu64,
                          p->offset, bytes, p->block_bytes);
    if (p->offset % shape->width != 0)
        return shuf__fail(error, SHUF_PROTOCOL,
                          "reply offset %" PRIu64 ": expected a multiple of %" PRIu64, p->offset,
                          shape->width);
    return SHUF_OK;
}

static shuf_status check_handle_size(const char *field, const ProtobufCBinaryData *handle,
                                     struct shuf__error *error)
{
    if (handle->len == SHUF__IPC_BYTES)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply %s of %zu bytes: expected %d", field,
                      handle->len, SHUF__IPC_BYTES);
}

static shuf_status copy_handles(const Shuf__ResultReply *p, struct shuf__mapping_info *info,
                                struct shuf__error *error)
{
    if (check_handle_size("ipc_handle", &p->ipc_handle, error))
        return error->status;
    memcpy(info->ipc, p->ipc_handle.data, sizeof info->ipc);
    info->has_event = p->ipc_event.len > 0;
    if (!info->has_event)
        return SHUF_OK;
    if (check_handle_size("ipc_event", &p->ipc_event, error))
        return error->status;
    memcpy(info->event, p->ipc_event.data, sizeof info->event);
    return SHUF_OK;
}

shuf_status shuf__mapping_info_read(const Shuf__ResultReply *p, unsigned transports,
                                    const shuf_shape *shape, bool buffer,
                                    struct shuf__mapping_info *info, struct shuf__error *error)
{
    bool copied = p->transport == SHUF__TRANSPORT__TRANSPORT_INLINE;
    /* An empty result always comes inline. */
    if (!is_in_set(transports, p->transport) && !(copied && shape->bytes == 0))
        return shuf__fail(error, SHUF_PROTOCOL,
                          "reply transport %d: expected one that was accepted", (int)p->transport);
    if (check_lease_id(p, buffer, error))
        return error->status;
    *info = (struct shuf__mapping_info){.transport = shuf__transport_of_wire(p->transport),
                                        .shared = p->shared,
                                        .writable = buffer};
    if (copied && !buffer)
        return SHUF_OK;
    if (check_offset(p, shape, error))
        return error->status;
    info->lease = p->lease;
    info->block = p->block;
    info->block_bytes = p->block_bytes;
    info->offset = p->offset;
    info->descriptor = p->descriptor;
    if (info->transport >= SHUF_CUDA_FD)
        shuf__copy_string(info->device_id, sizeof info->device_id, p->device_id);
    return info->transport == SHUF_CUDA_IPC ? copy_handles(p, info, error) : SHUF_OK;
}

/* ---- One mapping ---- */

/* Checks that the memory is sealed against shrinking. If mapped memory shrank, a read of it would
 * end this process (SIGBUS). */
static shuf_status check_memfd(const struct shuf__mapping_info *info, int fd,
                               struct shuf__error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return shuf__fail(error, SHUF_IO, "block %" PRIu64 ": %s", info->block, strerror(errno));
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size < info->block_bytes)
        return shuf__fail(error, SHUF_PROTOCOL,
                          "block %" PRIu64 " by a descriptor of %" PRIu64
                          " bytes: expected at least %" PRIu64,
                          info->block, (uint64_t)status.st_size, info->block_bytes);
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return shuf__fail(error, SHUF_PROTOCOL,
                          "block %" PRIu64 " by a descriptor without F_SEAL_SHRINK: expected it",
                          info->block);
    return SHUF_OK;
}

static shuf_status map_memory(struct shuf__mapping *m, const struct shuf__mapping_info *info,
                              int fd, struct shuf__error *error)
{
    if (check_memfd(info, fd, error))
        return error->status;
    const int access = info->writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *host = mmap(NULL, info->block_bytes, access, MAP_SHARED, fd, 0);
    if (host == MAP_FAILED)
        return shuf__fail(error, errno == ENOMEM ? SHUF_NO_MEMORY : SHUF_IO,
                          "block %" PRIu64 ": mapping its %" PRIu64 " bytes: %s", info->block,
                          info->block_bytes, strerror(errno));
    m->host = host;
    return SHUF_OK;
}

static shuf_status map_device(struct shuf__mappings *mappings, struct shuf__mapping *m,
                              const struct shuf__mapping_info *info, int fd,
                              struct shuf__error *error)
{
    struct shuf__gpu *gpu;
    if (shuf__gpu_find(&mappings->gpus, info->device_id, &gpu, error))
        return error->status;
    return info->transport == SHUF_CUDA_FD
               ? shuf__gpu_map(gpu, fd, info->block_bytes, info->writable, &m->view, error)
               : shuf__gpu_open(gpu, info->ipc, info->block_bytes, &m->view, error);
}

static shuf_status map_block(struct shuf__mappings *mappings, struct shuf__mapping *m,
                             const struct shuf__mapping_info *info, int fd,
                             struct shuf__error *error)
{
    if (info->transport != SHUF_CUDA_IPC && fd < 0)
        return shuf__fail(
            error, SHUF_PROTOCOL,
            "block %" PRIu64
            " without a descriptor: expected one, because the block is not mapped yet",
            info->block);
    m->block = info->block;
    m->bytes = info->block_bytes;
    m->transport = info->transport;
    m->writable = info->writable;
    return info->transport == SHUF_MEMFD ? map_memory(m, info, fd, error)
                                         : map_device(mappings, m, info, fd, error);
}

static void unmap_block(struct shuf__mapping *m)
{
    if (m->host)
        munmap(m->host, m->bytes);
    else
        shuf__gpu_unmap(&m->view);
    free(m);
}

const void *shuf__mapping_at(const struct shuf__mapping *m, uint64_t offset)
{
    if (m->host)
        return (const char *)m->host + offset;
    return (const void *)(uintptr_t)(m->view.address + offset);
}

/* ---- The collection ---- */

void shuf__mappings_open(struct shuf__mappings *mappings)
{
    TAILQ_INIT(&mappings->host.list);
    TAILQ_INIT(&mappings->device.list);
}

static struct shuf__idle_mappings *idle_of(struct shuf__mappings *mappings,
                                           const struct shuf__mapping *m)
{
    return m->host ? &mappings->host : &mappings->device;
}

static void set_idle(struct shuf__mappings *mappings, struct shuf__mapping *m)
{
    struct shuf__idle_mappings *idle = idle_of(mappings, m);
    TAILQ_INSERT_TAIL(&idle->list, m, idle);
    idle->count++;
    idle->bytes += m->bytes;
}

static void set_busy(struct shuf__mappings *mappings, struct shuf__mapping *m)
{
    struct shuf__idle_mappings *idle = idle_of(mappings, m);
    TAILQ_REMOVE(&idle->list, m, idle);
    idle->count--;
    idle->bytes -= m->bytes;
}

static uint64_t remove_idle(struct shuf__mappings *mappings, struct shuf__mapping *m)
{
    uint64_t block = m->block;
    set_busy(mappings, m);
    LIST_REMOVE(m, bucket);
    unmap_block(m);
    return block;
}

/* Unmaps the oldest idle mappings until the others are within these limits. */
static size_t trim_to(struct shuf__mappings *mappings, const struct shuf__idle_mappings *idle,
                      unsigned count, uint64_t bytes, uint64_t *blocks)
{
    size_t unmapped = 0;
    while (idle->count > count || idle->bytes > bytes)
        blocks[unmapped++] = remove_idle(mappings, TAILQ_FIRST(&idle->list));
    return unmapped;
}

size_t shuf__mappings_trim(struct shuf__mappings *mappings, uint64_t blocks[SHUF__UNMAPPED_MAX])
{
    const size_t unmapped = trim_to(mappings, &mappings->host, 0, 0, blocks);
    return unmapped + trim_to(mappings, &mappings->device, 0, 0, blocks + unmapped);
}

size_t shuf__mappings_set_limit(struct shuf__mappings *mappings, uint64_t bytes,
                                uint64_t blocks[SHUF__UNMAPPED_MAX])
{
    const bool is_less = bytes < mappings->device_limit;
    mappings->device_limit = bytes;
    return is_less ? trim_to(mappings, &mappings->device, 0, 0, blocks) : 0;
}

void shuf__mappings_set_generation(struct shuf__mappings *mappings, uint64_t generation)
{
    struct shuf__mapping *m;
    uint64_t ignored[SHUF__UNMAPPED_MAX];
    if (mappings->generation == generation)
        return;
    mappings->generation = generation;
    shuf__mappings_trim(mappings, ignored);
    for (int i = 0; i < SHUF__MAPPING_BUCKETS; i++)
        while ((m = LIST_FIRST(&mappings->buckets[i]))) {
            m->detached = true;
            LIST_REMOVE(m, bucket);
        }
}

void shuf__mappings_close(struct shuf__mappings *mappings)
{
    shuf__mappings_set_generation(mappings, mappings->generation + 1);
    shuf__gpus_close(&mappings->gpus);
}

static struct shuf__mapping *find_mapping(const struct shuf__mappings *mappings, uint64_t block)
{
    struct shuf__mapping *m;
    LIST_FOREACH (m, &mappings->buckets[block % SHUF__MAPPING_BUCKETS], bucket)
        if (m->block == block)
            break;
    return m;
}

static shuf_status make_mapping(struct shuf__mappings *mappings,
                                const struct shuf__mapping_info *info, int fd,
                                struct shuf__mapping **made, struct shuf__error *error)
{
    struct shuf__mapping *m = calloc(1, sizeof *m);
    if (!m)
        return shuf__fail(error, SHUF_NO_MEMORY, "block %" PRIu64 ": out of memory", info->block);
    if (map_block(mappings, m, info, fd, error)) {
        free(m);
        return error->status;
    }
    LIST_INSERT_HEAD(&mappings->buckets[m->block % SHUF__MAPPING_BUCKETS], m, bucket);
    set_idle(mappings, m);
    *made = m;
    return SHUF_OK;
}

/* Fails if a known block id comes with another size, transport or access. */
static shuf_status check_same_block(const struct shuf__mapping *m,
                                    const struct shuf__mapping_info *info,
                                    struct shuf__error *error)
{
    if (m->bytes == info->block_bytes && m->transport == info->transport &&
        m->writable == info->writable && (m->host || strcmp(m->view.gpu->id, info->device_id) == 0))
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL,
                      "block %" PRIu64 " of %" PRIu64 " bytes by %s: expected the %" PRIu64
                      " bytes by %s of its first reply",
                      info->block, info->block_bytes, shuf_transport_name(info->transport),
                      m->bytes, shuf_transport_name(m->transport));
}

/* A process can open an IPC handle in only one CUDA context at a time. If the idle mapping *known
 * is open in another context, unmaps it and sets *known to NULL. The caller then opens the handle
 * again. */
static shuf_status check_context(struct shuf__mappings *mappings, struct shuf__mapping **known,
                                 struct shuf__error *error)
{
    struct shuf__mapping *m = *known;
    bool fits;
    if (shuf__gpu_fits(&m->view, &fits, error))
        return error->status;
    if (fits)
        return SHUF_OK;
    if (m->lease_count > 0)
        return shuf__fail(error, SHUF_DEVICE,
                          "block %" PRIu64 " is leased in another context of %s: expected that "
                          "context to be current",
                          m->block, m->view.gpu->id);
    remove_idle(mappings, m);
    *known = NULL;
    return SHUF_OK;
}

bool shuf__mapping_exists(const struct shuf__mappings *mappings, uint64_t block)
{
    return find_mapping(mappings, block);
}

shuf_status shuf__mapping_acquire(struct shuf__mappings *mappings,
                                  const struct shuf__mapping_info *info, int fd,
                                  struct shuf__mapping **mapping, struct shuf__error *error)
{
    struct shuf__mapping *m = find_mapping(mappings, info->block);
    if (m && check_same_block(m, info, error))
        return error->status;
    if (m && !m->host && check_context(mappings, &m, error))
        return error->status;
    if (!m && make_mapping(mappings, info, fd, &m, error))
        return error->status;
    if (m->lease_count++ == 0)
        set_busy(mappings, m);
    *mapping = m;
    return SHUF_OK;
}

static bool may_stay(const struct shuf__mappings *mappings, const struct shuf__mapping *m)
{
    const bool has_limit = !m->host && mappings->device_limit > 0;
    return !m->writable && (has_limit || m->bytes <= SHUF__MAPPING_SMALL);
}

static uint64_t idle_bytes(const struct shuf__mappings *mappings, const struct shuf__mapping *m)
{
    if (m->host)
        return SHUF__IDLE_HOST_BYTES;
    return mappings->device_limit > SHUF__IDLE_DEVICE_BYTES ? mappings->device_limit
                                                            : (uint64_t)SHUF__IDLE_DEVICE_BYTES;
}

size_t shuf__mapping_release(struct shuf__mappings *mappings, struct shuf__mapping *m, bool keep,
                             uint64_t blocks[SHUF__UNMAPPED_MAX])
{
    assert(m->lease_count > 0);
    if (--m->lease_count > 0)
        return 0;
    if (m->detached) {
        unmap_block(m);
        return 0;
    }
    set_idle(mappings, m);
    if (keep && may_stay(mappings, m))
        return trim_to(mappings, idle_of(mappings, m), SHUF__IDLE_MAPPINGS, idle_bytes(mappings, m),
                       blocks);
    blocks[0] = remove_idle(mappings, m);
    return 1;
}
