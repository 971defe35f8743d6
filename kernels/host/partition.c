/* SPDX-License-Identifier: MIT
 *
 * See shuffle.h. Part b of the output block has 1 << bits places, from b << bits on. It receives
 * as many records as it has places. So the first pass can collect the records in the output block
 * itself, in the order of their arrival. A list in the workspace has the place of each record in
 * its part.
 *
 * *First pass.* A thread collects a few records of every part, with their places, in its cache. It
 * writes them in whole cache lines, past the caches. In each part it reserves room for a chunk of
 * records at a time. At its end the thread fills its last chunk of each part with copies of its
 * last record there. A copy is harmless, because it goes to the same place. Chunks that do not fit
 * their part go to spare room in the workspace.
 *
 * *Second pass.* A thread sorts a part in its own cache and writes it back.
 */
#include "host/shuffle.h"

#include "host/cancelled.h"
#include "host/tile.h"
#include "simd/primefold.h"

#include <assert.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    LINE = 64,
    RECORD_MOST = 127,
    PLACE_BITS = 32,   /* at most */
    BATCH = 2048,      /* records whose places are evaluated together */
    GROUP_BYTES = 512, /* written together, because single lines would be much slower */
};

/* The layout that all parts share. */
struct layout {
    unsigned bits;          /* of a place in its part */
    unsigned place_bytes;   /* 2 or 4 */
    unsigned chunk, group;  /* records of a chunk, and of a group, which is written together */
    size_t record, collect; /* bytes of a record, and of a part's lines in a thread's cache */
    uint64_t parts;
    uint64_t spare; /* spare chunks of each part: as many as threads */
};

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__simd_ops *simd;
    const struct shuf__computation *computation;
    uint64_t n;              /* records */
    union shuf__bijection f; /* the place of a record */
    bool narrow;
    struct layout l;
    char *out, *places; /* the block, and the place of each record in its part */
    char *spare;        /* the spare chunks; each has its records, then their places */
    char *own;          /* own_bytes for each thread */
    size_t own_bytes;
    atomic_uint *claimed; /* chunks of each part */
    atomic_uint_fast64_t next, next_part;
    atomic_bool cancelled;
};

/* The state of a thread in the first pass. */
struct collector {
    struct run *run;
    char *lines;     /* for each part, the places of a chunk, then the records of a group */
    uint32_t *chunk; /* for each part, the chunk to which the thread writes */
    uint16_t *fill;  /* for each part, the records in that chunk so far */
};

/* Writes whole lines past the caches, because nobody reads the old contents, and nobody reads the
 * new contents soon. */
static inline __attribute__((always_inline)) void write_lines(char *to, const char *from,
                                                              size_t bytes)
{
#ifdef __SSE2__
    for (size_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_load_si128((const __m128i *)(const void *)(from + i)));
#else
    memcpy(to, from, bytes);
#endif
}

/* Called before other threads read lines that were written past the caches. */
static void written(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* ---- The addresses of chunks ---- */

struct chunk {
    char *records, *places;
};

static uint64_t records_of(const struct run *run, uint64_t part)
{
    const uint64_t rest = run->n - (part << run->l.bits), most = UINT64_C(1) << run->l.bits;
    return rest < most ? rest : most;
}

static struct chunk chunk_at(const struct run *run, uint64_t part, uint64_t index)
{
    const struct layout *l = &run->l;
    const uint64_t inside = records_of(run, part) / l->chunk;
    const size_t records = l->chunk * l->record;
    if (index < inside) {
        const uint64_t first = (part << l->bits) + index * l->chunk;
        return (struct chunk){run->out + first * l->record, run->places + first * l->place_bytes};
    }
    assert(index - inside < l->spare);
    char *spare = run->spare + (part * l->spare + index - inside) *
                                   (records + (size_t)l->chunk * l->place_bytes);
    return (struct chunk){spare, spare + records};
}

/* ---- The first pass, compiled for each usual `record` and `place_bytes` ---- */

/* Writes a full group. With the last group of a chunk it also writes the chunk's places. */
static __attribute__((noinline)) void write_group(struct collector *c, uint64_t part, unsigned fill,
                                                  size_t record, size_t place_bytes)
{
    struct run *run = c->run;
    const struct layout *l = &run->l;
    const char *places = c->lines + part * l->collect, *records = places + l->chunk * place_bytes;
    if (fill == l->group)
        c->chunk[part] = atomic_fetch_add(&run->claimed[part], 1);
    const struct chunk to = chunk_at(run, part, c->chunk[part]);
    write_lines(to.records + (fill - l->group) * record, records, l->group * record);
    if (fill == l->chunk)
        write_lines(to.places, places, l->chunk * place_bytes);
}

/* Copies of the fields that the loop over records needs, so that the loop has them in registers. */
struct lines {
    char *lines;
    uint16_t *fill;
    size_t collect;
    unsigned in_group, in_chunk; /* masks */
};

/* Adds a record to its part. A full group is written when the next record of the part comes. By
 * then the processor has moved the group's bytes from the store buffer to the cache. */
static inline __attribute__((always_inline)) void collect(struct collector *c, struct lines l,
                                                          uint64_t part, uint32_t place,
                                                          const char *from, size_t record,
                                                          size_t place_bytes)
{
    unsigned fill = l.fill[part];
    char *places = l.lines + part * l.collect, *records = places + (l.in_chunk + 1) * place_bytes;
    if (__builtin_expect((fill & l.in_group) == 0 && fill > 0, 0)) {
        write_group(c, part, fill, record, place_bytes);
        fill &= l.in_chunk;
    }
    if (place_bytes == 2)
        ((uint16_t *)(void *)places)[fill] = (uint16_t)place;
    else
        ((uint32_t *)(void *)places)[fill] = place;
    memcpy(records + (fill & l.in_group) * record, from, record);
    l.fill[part] = (uint16_t)(fill + 1);
}

static struct lines lines_of_collector(const struct collector *c)
{
    const struct layout *l = &c->run->l;
    return (struct lines){c->lines, c->fill, l->collect, l->group - 1, l->chunk - 1};
}

static inline __attribute__((always_inline)) void
collect_batch(struct collector *c, uint64_t first, size_t count, size_t record, size_t place_bytes)
{
    struct run *run = c->run;
    const struct lines l = lines_of_collector(c);
    const unsigned bits = run->l.bits;
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    const char *from = (const char *)run->computation->input->memory + first * record;
    uint32_t narrow[BATCH];
    uint64_t wide[BATCH];
    if (run->narrow)
        run->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&run->f, (uint32_t)first, 1, narrow, count);
    else
        run->simd->wide[SHUF_ALGORITHM_PRIMEFOLD](&run->f, first, 1, wide, count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t place = run->narrow ? narrow[i] : wide[i];
        collect(c, l, place >> bits, (uint32_t)(place & mask), from + i * record, record,
                place_bytes);
    }
}

/* Appends copies of the part's last record until the chunk is full. */
static inline __attribute__((always_inline)) void fill_up(struct collector *c, uint64_t part,
                                                          size_t record, size_t place_bytes)
{
    const struct layout *l = &c->run->l;
    const char *places = c->lines + part * l->collect, *records = places + l->chunk * place_bytes;
    const unsigned last = c->fill[part] - 1u;
    char copy[RECORD_MOST];
    if (c->fill[part] == 0)
        return;
    const uint32_t place = place_bytes == 2 ? ((const uint16_t *)(const void *)places)[last]
                                            : ((const uint32_t *)(const void *)places)[last];
    memcpy(copy, records + (last & (l->group - 1)) * record, record);
    while (c->fill[part] < l->chunk)
        collect(c, lines_of_collector(c), part, place, copy, record, place_bytes);
    write_group(c, part, l->chunk, record, place_bytes);
}

static inline __attribute__((always_inline)) void collect_all(struct collector *c, size_t record,
                                                              size_t place_bytes)
{
    struct run *run = c->run;
    const uint64_t n = run->n;
    for (;;) {
        const uint64_t first = atomic_fetch_add(&run->next, 16 * BATCH);
        if (first >= n || shuf__is_cancelled(run->computation, &run->cancelled))
            break;
        const uint64_t end = n - first < 16 * BATCH ? n : first + 16 * BATCH;
        for (uint64_t i = first; i < end; i += BATCH)
            collect_batch(c, i, end - i < BATCH ? end - i : BATCH, record, place_bytes);
    }
    for (uint64_t part = 0; part < run->l.parts; part++)
        fill_up(c, part, record, place_bytes);
    written();
}

/* ---- The second pass ---- */

static inline __attribute__((always_inline)) void order_chunks(const struct chunk *from,
                                                               size_t count, char *window,
                                                               size_t record, size_t place_bytes)
{
    for (size_t i = 0; i < count; i++) {
        const size_t place = place_bytes == 2 ? ((const uint16_t *)(const void *)from->places)[i]
                                              : ((const uint32_t *)(const void *)from->places)[i];
        memcpy(window + place * record, from->records + i * record, record);
    }
}

static inline __attribute__((always_inline)) void
order_part(struct run *run, uint64_t part, char *window, size_t record, size_t place_bytes)
{
    const struct layout *l = &run->l;
    const uint64_t count = records_of(run, part), inside = count / l->chunk;
    const size_t bytes = count * record, lines = bytes / LINE * LINE;
    const struct chunk first = {run->out + (part << l->bits) * record,
                                run->places + (part << l->bits) * place_bytes};
    order_chunks(&first, inside * l->chunk, window, record, place_bytes);
    for (uint64_t i = inside; i < atomic_load(&run->claimed[part]); i++) {
        const struct chunk beside = chunk_at(run, part, i);
        order_chunks(&beside, l->chunk, window, record, place_bytes);
    }
    write_lines(first.records, window, lines);
    memcpy(first.records + lines, window + lines, bytes - lines);
}

static inline __attribute__((always_inline)) void order_all(struct run *run, char *window,
                                                            size_t record, size_t place_bytes)
{
    for (;;) {
        const uint64_t part = atomic_fetch_add(&run->next_part, 1);
        if (part >= run->l.parts || shuf__is_cancelled(run->computation, &run->cancelled))
            break;
        order_part(run, part, window, record, place_bytes);
    }
    written();
}

/* ---- Both, by every thread ---- */

static inline __attribute__((always_inline)) void run_passes(struct run *run, size_t record,
                                                             size_t place_bytes)
{
    const uint64_t parts = run->l.parts;
    char *own = run->own + (size_t)omp_get_thread_num() * run->own_bytes;
    struct collector c = {.run = run, .lines = own};
    c.chunk = (uint32_t *)(void *)(own + parts * run->l.collect);
    c.fill = (uint16_t *)(void *)(c.chunk + parts);
    memset(c.fill, 0, parts * sizeof *c.fill);
    collect_all(&c, record, place_bytes);
#pragma omp barrier
    order_all(run, own, record, place_bytes);
}

static inline __attribute__((always_inline)) void run_thread_with(struct run *run, size_t record)
{
    if (run->l.place_bytes == 2)
        run_passes(run, record, 2);
    else
        run_passes(run, record, 4);
}

static void run_thread(struct run *run)
{
    switch (run->l.record) {
    case 1:
        run_thread_with(run, 1);
        return;
    case 2:
        run_thread_with(run, 2);
        return;
    case 4:
        run_thread_with(run, 4);
        return;
    case 8:
        run_thread_with(run, 8);
        return;
    case 12:
        run_thread_with(run, 12);
        return;
    case 16:
        run_thread_with(run, 16);
        return;
    default:
        run_thread_with(run, run->l.record);
    }
}

/* ---- Memory ---- */

static size_t lines_of(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* The least power of two of records that fill whole lines and have GROUP_BYTES or more. */
static unsigned group_of(uint64_t record)
{
    unsigned group = 1;
    while (group * record % LINE != 0 || group * record < GROUP_BYTES)
        group *= 2;
    return group;
}

static struct layout lay_out(const struct shuf__shuffle *s, unsigned bits, int threads)
{
    struct layout l = {.bits = bits, .record = s->record, .group = group_of(s->record)};
    l.place_bytes = bits <= 16 ? 2 : 4;
    l.chunk = l.group < LINE / l.place_bytes ? LINE / l.place_bytes : l.group;
    l.collect = (size_t)l.chunk * l.place_bytes + l.group * l.record;
    l.parts = ((s->permutation.n - 1) >> bits) + 1;
    l.spare = (uint64_t)threads;
    return l;
}

/* The second pass sorts a part in the memory that the first pass used for `lines`. */
static size_t own_bytes(const struct layout *l)
{
    const size_t first = lines_of(l->parts * (l->collect + sizeof(uint32_t) + sizeof(uint16_t)));
    const size_t second = lines_of(l->record << l->bits);
    return first > second ? first : second;
}

/* The offsets of the arrays in the workspace. */
struct room {
    size_t own_bytes; /* for each thread */
    size_t places, own, spare, claimed, end;
};

static struct room make_room(const struct layout *l, int threads)
{
    struct room r = {.own_bytes = own_bytes(l)};
    r.own = r.places + lines_of((l->parts << l->bits) * l->place_bytes);
    r.spare = r.own + (size_t)threads * r.own_bytes;
    r.claimed = r.spare + lines_of(l->parts * l->spare * l->chunk * (l->record + l->place_bytes));
    r.end = r.claimed + lines_of(l->parts * sizeof(atomic_uint));
    return r;
}

uint64_t shuf__partition_bytes(const struct shuf__shuffle *shuffle, int threads, unsigned bits)
{
    const struct layout l = lay_out(shuffle, bits, threads);
    return make_room(&l, threads).end;
}

bool shuf__partition(const struct shuf__simd_ops *simd, int threads,
                     const struct shuf__computation *computation, unsigned bits, void *memory,
                     void *out)
{
    const struct shuf__shuffle *shuffle = &computation->request.shuffle;
    const uint64_t n = shuffle->permutation.n;
    struct run run = {simd, computation, .n = n, .l = lay_out(shuffle, bits, threads), .out = out};
    assert(shuffle->record <= RECORD_MOST && bits <= PLACE_BITS && run.l.chunk >> bits <= 1 &&
           ((uintptr_t)out | (uintptr_t)memory) % LINE == 0);
    const shuf_primefold_shape shape = shuf__primefold_shape(n);
    const struct room room = make_room(&run.l, threads);
    run.own_bytes = room.own_bytes;
    run.places = (char *)memory + room.places;
    run.own = (char *)memory + room.own;
    run.spare = (char *)memory + room.spare;
    run.claimed = (atomic_uint *)((char *)memory + room.claimed);
    for (uint64_t part = 0; part < run.l.parts; part++)
        atomic_init(&run.claimed[part], 0);
    run.narrow = shuf__primefold_word_bits(&shape) <= 32;
    shuf__bijection_make(&shuffle->permutation, 0, &shape, &run.f);
    if (!shuffle->inverse)
        shuf__primefold_invert(&run.f.primefold);
    atomic_init(&run.next, 0);
    atomic_init(&run.next_part, 0);
    atomic_init(&run.cancelled, false);
#pragma omp parallel num_threads(threads)
    run_thread(&run);
    return !atomic_load(&run.cancelled);
}

/* ---- When, and how ---- */

static uint64_t cache_bytes(void)
{
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? (uint64_t)bytes : 1 << 20;
}

/* Two passes pay only for small records in a large array. A direct move of a small record uses a
 * small part of each cache line that it touches. An array near the size of one L2 cache does not
 * need two passes, because the L2 caches of all processors together hold it. */
bool shuf__partition_pays(const struct shuf__shuffle *shuffle)
{
    return shuffle->permutation.algorithm == SHUF_ALGORITHM_PRIMEFOLD &&
           shuffle->record <= RECORD_MOST &&
           shuffle->permutation.n > 12 * cache_bytes() / shuffle->record;
}

/* The size of a part is at least a quarter of the L2 cache. It grows until the records that a
 * thread collects for all parts fit three quarters of the cache. */
unsigned shuf__partition_bits(const struct shuf__shuffle *shuffle)
{
    const uint64_t cache = cache_bytes();
    unsigned bits = 12;
    while (shuffle->record << bits < cache / 4)
        bits++;
    while (bits < PLACE_BITS &&
           ((shuffle->permutation.n - 1) >> bits) * lay_out(shuffle, bits, 1).collect >
               cache / 4 * 3)
        bits++;
    return bits;
}
