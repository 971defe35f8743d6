/* SPDX-License-Identifier: MIT
 *
 * See shuffle_local.h. The values of the permutation arrive in chunks of any size. A list collects
 * them before records move.
 */
#include "shuffle_local.h"

#include "fetch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST = 16384,        /* values */
    CHUNK = 1 << 20,     /* bytes of records for a sink; a larger record is a chunk of its own */
    AHEAD = 16,          /* records */
    AHEAD_BYTES = 4 * 64 /* of a record; the processor prefetches the rest itself */
};

struct local_shuffle {
    shuf *handle;
    const shuf_records *records;
    const char *in;
    char *out;      /* all records or, with a sink, a chunk */
    shuf_sink sink; /* or NULL */
    void *context;
    uint64_t done;   /* records */
    uint64_t beyond; /* a received value that is not below n, or 0 */
    unsigned width;  /* bytes of a value */
    size_t held;     /* bytes of the list */
    uint64_t list[LIST];
};

/* ---- Moving ------------------------------------------------------------------------ */

static inline __attribute__((always_inline)) uint64_t value_at(const struct local_shuffle *s,
                                                               size_t i)
{
    return s->width == sizeof(uint32_t) ? ((const uint32_t *)(const void *)s->list)[i] : s->list[i];
}

static inline __attribute__((always_inline)) void expect(const char *record, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes && i < AHEAD_BYTES; i += 64)
        __builtin_prefetch(record + i);
}

/* Inlined with a constant `record` for the usual sizes, which makes the copies fast. */
static inline __attribute__((always_inline)) void
gather(const struct local_shuffle *s, size_t first, size_t count, char *out, uint64_t record)
{
    for (size_t i = first; i < first + count; i++) {
        if (i + AHEAD < first + count)
            expect(s->in + value_at(s, i + AHEAD) * record, record);
        memcpy(out + (i - first) * record, s->in + value_at(s, i) * record, record);
    }
}

static inline __attribute__((always_inline)) void scatter(const struct local_shuffle *s,
                                                          size_t count, uint64_t record)
{
    const char *from = s->in + s->done * record;
    for (size_t i = 0; i < count; i++)
        memcpy(s->out + value_at(s, i) * record, from + i * record, record);
}

static inline __attribute__((always_inline)) void move(const struct local_shuffle *s, size_t first,
                                                       size_t count, char *out, uint64_t record)
{
    if (s->records->inverse)
        scatter(s, count, record);
    else
        gather(s, first, count, out, record);
}

static void move_records(const struct local_shuffle *s, size_t first, size_t count, char *out)
{
    switch (s->records->record) {
    case 1:
        move(s, first, count, out, 1);
        return;
    case 4:
        move(s, first, count, out, 4);
        return;
    case 8:
        move(s, first, count, out, 8);
        return;
    default:
        move(s, first, count, out, s->records->record);
    }
}

static bool feed(const struct local_shuffle *s, size_t count)
{
    const uint64_t record = s->records->record;
    const size_t most = record < CHUNK ? CHUNK / record : 1;
    for (size_t first = 0; first < count; first += most) {
        const size_t some = count - first < most ? count - first : most;
        move_records(s, first, some, s->out);
        const struct shuf__error before = shuf__handle_begin_callback(s->handle);
        const bool continues = s->sink(s->context, s->out, some * record);
        shuf__handle_end_callback(s->handle, &before);
        if (!continues)
            return false;
    }
    return true;
}

/* Checks the values: a broken daemon must not make this process write outside its memory. */
static bool check_list(struct local_shuffle *s, size_t count)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = value_at(s, i) > largest ? value_at(s, i) : largest;
    s->beyond = largest < s->records->n ? 0 : largest;
    return s->beyond == 0;
}

static bool move_list(struct local_shuffle *s)
{
    const size_t count = s->held / s->width;
    bool continues = true;
    if (!check_list(s, count))
        return false;
    if (s->sink)
        continues = feed(s, count);
    else
        move_records(s, 0, count, s->out + s->done * s->records->record);
    s->done += count;
    s->held = 0;
    return continues;
}

static bool take_values(void *context, const void *bytes, size_t size)
{
    struct local_shuffle *s = context;
    const char *from = bytes;
    while (size > 0) {
        const size_t room = LIST * s->width - s->held, some = size < room ? size : room;
        memcpy((char *)s->list + s->held, from, some);
        s->held += some;
        from += some;
        size -= some;
        if (s->held == LIST * s->width && !move_list(s))
            return false;
    }
    return true;
}

/* ---- The call ------------------------------------------------------------------------ */

static shuf_status fail_stopped(shuf *handle, const struct local_shuffle *s)
{
    if (s->beyond)
        return shuf__fail(&handle->error, SHUF_PROTOCOL,
                          "reply value %" PRIu64 ": expected less than n = %" PRIu64, s->beyond,
                          s->records->n);
    return shuf__fail(&handle->error, SHUF_CANCELLED,
                      "stopped by its sink after at most %" PRIu64 " of %" PRIu64 " record%s",
                      s->done, s->records->n, shuf__plural(s->records->n));
}

static void set_result(const shuf_records *records, shuf_result *result)
{
    result->shape = (shuf_shape){.rows = 1, .count = records->n, .bytes = records->n};
    result->shape.width = (__typeof__(result->shape.width))records->record;
    result->shape.bytes *= records->record;
    result->n_first = result->n_last = 0;
    memset(result->first, 0, sizeof result->first);
    memset(result->last, 0, sizeof result->last);
}

static shuf_status run(shuf *handle, struct local_shuffle *s, shuf_result *result)
{
    const shuf_records *records = s->records;
    const bool narrow = records->n <= UINT64_C(1) << 32;
    const shuf_request order = {.permutation = {.algorithm = records->algorithm,
                                                .n = records->n,
                                                .seed = records->seed,
                                                .key = records->key,
                                                .epoch = records->epoch,
                                                .dtype = narrow ? SHUF_U32 : SHUF_U64}};
    s->width = narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    shuf_status status = shuf__fetch_each(handle, &order, take_values, s, result);
    if (s->beyond || (status == SHUF_OK && !move_list(s)))
        status = fail_stopped(handle, s);
    if (status == SHUF_OK)
        set_result(records, result);
    return status;
}

static struct local_shuffle *make(shuf *handle, const shuf_records *records, const void *in)
{
    struct local_shuffle *s = calloc(1, sizeof *s);
    if (!s) {
        shuf__fail(&handle->error, SHUF_NO_MEMORY, "shuffle: out of memory");
        return NULL;
    }
    s->handle = handle;
    s->records = records;
    s->in = in;
    return s;
}

shuf_status shuf__shuffle_local(shuf *handle, const shuf_records *records, const void *in,
                                void *out, shuf_result *result)
{
    struct local_shuffle *s = make(handle, records, in);
    if (!s)
        return SHUF_NO_MEMORY;
    s->out = out;
    shuf_status status = run(handle, s, result);
    free(s);
    return status;
}

shuf_status shuf__shuffle_local_each(shuf *handle, const shuf_records *records, const void *in,
                                     shuf_sink sink, void *context, shuf_result *result)
{
    struct local_shuffle *s = make(handle, records, in);
    if (!s)
        return SHUF_NO_MEMORY;
    s->sink = sink;
    s->context = context;
    s->out = malloc(records->record > CHUNK ? records->record : CHUNK);
    shuf_status status = s->out
                             ? run(handle, s, result)
                             : shuf__fail(&handle->error, SHUF_NO_MEMORY, "shuffle: out of memory");
    free(s->out);
    free(s);
    return status;
}
