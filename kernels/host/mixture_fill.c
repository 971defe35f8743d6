/* SPDX-License-Identifier: MIT
 *
 * Ranges of places of a mixture. A block is computed source by source, because the draws of a
 * source in a block are consecutive positions of its epochs. Then the order of the block selects
 * from these draws. The reader keeps the last block, for short reads; the keys of the last epoch of
 * each source; and the shares at the end of the last block, where the next one begins. Readers stay
 * for later calls, because the keys of thousands of epochs take longer than a short range.
 */
#include "host/mixture.h"

#include "host/cancelled.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST_MOST = 1 << 12, /* chunks of a window that a reader lists */
    /* Measured times, in nanoseconds, that decide whether places are looked up one by one. */
    LOOK_UP_NS = 25000, /* and one for each slot of the block */
    SLOT_NS = 5,        /* of a block, for each slot */
    SOURCE_NS = 800     /* and for each source: the keys of its epoch */
};

/* The windows of a source. */
struct windows {
    shuf_windowed order;
    shuf_window window;
    uint64_t *chunk; /* the first record of each chunk of the window; NULL with too many chunks */
    bool has_window;
};

/* The last epoch that was read of a source. */
struct epoch {
    bool known;
    uint64_t number;
    union shuf__bijection order; /* of the epoch, or of its window */
    struct windows *windows;     /* of a windowed source, else NULL */
};

struct reader {
    const struct shuf__mixture *m;
    struct epoch *epochs; /* of each source */
    /* Of the nodes of a tree: the draws before the block, and those before its end. */
    uint64_t *from, *end;
    uint64_t *slot;                  /* of a node: the first one of its slots in the block */
    const struct shuf__stage *stage; /* of `end` */
    uint64_t end_at;                 /* position in the stage */
    /* The block that is computed, if has_block. */
    bool has_block;
    uint64_t block_from;              /* in `stage` */
    struct shuf__places wanted;       /* those of its arrays that are NULL have no values */
    uint32_t *draw;                   /* of each position: the index of its draw in the arrays */
    uint32_t *leaf;                   /* of each slot */
    uint32_t *narrow;                 /* a block of numbers */
    uint64_t *index, *epoch, *record; /* of the draws of the block, source by source */
    uint32_t *source;
};

/* ---- Sources ---- */

/* Values x0 to x0 + count - 1 of a bijection. */
static void evaluate(struct reader *r, const union shuf__bijection *f, uint64_t x0, uint64_t *out,
                     size_t count)
{
    if (f->primefold.word_bits > 32) {
        r->m->simd->wide[SHUF_ALGORITHM_PRIMEFOLD](f, x0, 1, out, count);
        return;
    }
    r->m->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](f, (uint32_t)x0, 1, r->narrow, count);
    for (size_t i = 0; i < count; i++)
        out[i] = r->narrow[i];
}

static struct windows *new_windows(const shuf_windows *sizes)
{
    struct windows *w = calloc(1, sizeof *w);
    if (w && sizes->window <= LIST_MOST)
        w->chunk = malloc(sizes->window * sizeof *w->chunk);
    return w;
}

static uint64_t first_of_chunk(const struct windows *w, uint64_t k)
{
    return shuf_primefold_forward(&w->order.chunk_order, w->window.slot + k) * w->order.sizes.chunk;
}

static bool begin_epoch(const struct shuf__data_set *source, struct epoch *epoch, uint64_t number)
{
    if (epoch->known && epoch->number == number)
        return true;
    epoch->known = true;
    epoch->number = number;
    if (!source->windowed) {
        shuf__primefold_make(&epoch->order.primefold, &source->shape, source->key, number);
        return true;
    }
    if (!epoch->windows && !(epoch->windows = new_windows(&source->windows))) {
        epoch->known = false;
        return false;
    }
    epoch->windows->order = shuf_windowed_make(&source->windows, source->key, number);
    epoch->windows->has_window = false;
    return true;
}

static void begin_window(struct epoch *epoch, uint64_t position)
{
    struct windows *w = epoch->windows;
    const shuf_windows *sizes = &w->order.sizes;
    if (w->has_window && position - w->window.first < w->window.count)
        return;
    w->window = shuf_windowed_window_of(&w->order, position);
    w->has_window = true;
    const shuf_primefold_shape shape = shuf_primefold_shape_of(w->window.count);
    shuf__primefold_make(&epoch->order.primefold, &shape, w->order.key, w->window.number);
    const uint64_t left = sizes->chunks - w->window.slot;
    const size_t count = left < sizes->window ? left : sizes->window;
    for (size_t k = 0; w->chunk && k < count; k++)
        w->chunk[k] = first_of_chunk(w, k);
}

static void read_window(struct reader *r, struct epoch *epoch, uint64_t position, uint64_t *out,
                        size_t count)
{
    const struct windows *w = epoch->windows;
    const uint64_t chunk = w->order.sizes.chunk;
    evaluate(r, &epoch->order, position - w->window.first, out, count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t x = out[i] + (out[i] >= w->window.gap_at ? w->window.gap : 0);
        out[i] = (w->chunk ? w->chunk[x / chunk] : first_of_chunk(w, x / chunk)) + x % chunk;
    }
}

/* Writes records of an epoch, at positions that are all in it. */
static bool read_epoch(struct reader *r, uint32_t number, uint64_t epoch_number, uint64_t position,
                       uint64_t *out, size_t count)
{
    const struct shuf__data_set *source = &r->m->sources[number];
    struct epoch *epoch = &r->epochs[number];
    if (!begin_epoch(source, epoch, epoch_number))
        return false;
    if (!source->windowed) {
        evaluate(r, &epoch->order, position, out, count);
        return true;
    }
    for (size_t done = 0, part; done < count; done += part) {
        begin_window(epoch, position + done);
        const shuf_window *window = &epoch->windows->window;
        const uint64_t left = window->first + window->count - (position + done);
        part = left < count - done ? left : count - done;
        read_window(r, epoch, position + done, out + done, part);
    }
    return true;
}

/* Writes the draws of a source to its slots. */
static bool read_draws(struct reader *r, uint32_t number, uint64_t draw, size_t slot, size_t count)
{
    const struct shuf__data_set *source = &r->m->sources[number];
    for (size_t part; count > 0; draw += part, slot += part, count -= part) {
        const uint64_t epoch = draw / source->records, position = draw % source->records;
        const uint64_t left = source->records - position;
        part = left < count ? left : count;
        if (!read_epoch(r, number, epoch, position, r->record + slot, part))
            return false;
        for (size_t i = slot; r->wanted.index && i < slot + part; i++)
            r->index[i] = r->record[i] + source->first;
        for (size_t i = slot; r->wanted.source && i < slot + part; i++)
            r->source[i] = number;
        for (size_t i = slot; r->wanted.epoch && i < slot + part; i++)
            r->epoch[i] = epoch;
    }
    return true;
}

/* ---- Blocks ---- */

static void share_out(const shuf_mixture_tree *tree, uint64_t *share)
{
    for (uint32_t at = 2 * tree->leaves - 1; at-- > tree->leaves;) {
        const shuf_mixture_node *node = &tree->node[at];
        share[node->left] = shuf_mixture_left(tree, node, share[at]);
        share[node->right] = share[at] - share[node->left];
    }
}

/* Sets the shares at both ends of the block, and the slots where the draws of the nodes begin. */
static void enter_block(struct reader *r, const struct shuf__mixture_block *block)
{
    const shuf_mixture_tree *tree = &block->stage->tree;
    const uint32_t root = 2 * tree->leaves - 2;
    uint64_t *const from = r->end;
    r->end = r->from;
    r->from = from;
    if (r->stage != block->stage || r->end_at != block->from) {
        from[root] = block->from;
        share_out(tree, from);
    }
    r->stage = block->stage;
    r->end_at = r->end[root] = block->from + block->slots;
    share_out(tree, r->end);
    r->slot[root] = 0;
    for (uint32_t at = root + 1; at-- > tree->leaves;) {
        const shuf_mixture_node *node = &tree->node[at];
        r->slot[node->left] = r->slot[at];
        r->slot[node->right] = r->slot[at] + r->end[node->left] - from[node->left];
    }
}

/* Finds which draw stands at each position: the next one of the leaf that has the position's slot.
 * Counts up the slots of the leaves. */
static void place_draws(struct reader *r, const struct shuf__mixture_block *block)
{
    const uint32_t leaves = block->stage->tree.leaves;
    union shuf__bijection order;
    if (leaves == 1) {
        for (uint32_t i = 0; i < block->slots; i++)
            r->draw[i] = i;
        return;
    }
    for (uint32_t leaf = 0; leaf < leaves; leaf++)
        for (uint64_t i = r->slot[leaf], n = r->end[leaf] - r->from[leaf]; n-- > 0; i++)
            r->leaf[i] = leaf;
    shuf__mixture_block_order(r->m, block, &order);
    r->m->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&order, 0, 1, r->narrow, block->slots);
    for (uint64_t i = 0; i < block->slots; i++)
        r->draw[i] = (uint32_t)r->slot[r->leaf[r->narrow[i]]]++;
}

static bool is_computed(const struct reader *r, const struct shuf__mixture_block *block,
                        const struct shuf__places *out)
{
    return r->has_block && r->stage == block->stage && r->block_from == block->from &&
           (!out->index || r->wanted.index) && (!out->source || r->wanted.source) &&
           (!out->epoch || r->wanted.epoch);
}

static bool compute_block(struct reader *r, const struct shuf__mixture_block *block,
                          const struct shuf__places *out)
{
    const struct shuf__stage *stage = block->stage;
    if (is_computed(r, block, out))
        return true;
    r->has_block = false;
    r->wanted = *out;
    enter_block(r, block);
    for (uint32_t leaf = 0; leaf < stage->tree.leaves; leaf++)
        if (!read_draws(r, stage->source[leaf], stage->before[leaf] + r->from[leaf], r->slot[leaf],
                        r->end[leaf] - r->from[leaf]))
            return false;
    place_draws(r, block);
    r->has_block = true;
    r->block_from = block->from;
    return true;
}

/* The places at position x of the block, x + stride, ... */
static void select_places(const struct reader *r, const uint32_t *draw, uint64_t stride,
                          uint64_t done, size_t count, const struct shuf__places *out)
{
    for (size_t i = 0; out->index && i < count; i++)
        out->index[done + i] = r->index[draw[i * stride]];
    for (size_t i = 0; out->source && i < count; i++)
        out->source[done + i] = r->source[draw[i * stride]];
    for (size_t i = 0; out->epoch && i < count; i++)
        out->epoch[done + i] = r->epoch[draw[i * stride]];
    for (size_t i = 0; out->record && i < count; i++)
        out->record[done + i] = r->record[draw[i * stride]];
}

/* ---- Ranges ---- */

static void look_up(const struct shuf__mixture *m, uint64_t position, uint64_t i,
                    const struct shuf__places *out)
{
    const struct shuf__place place = shuf__mixture_look_up(m, position);
    if (out->index)
        out->index[i] = m->sources[place.source].first + place.record;
    if (out->source)
        out->source[i] = place.source;
    if (out->epoch)
        out->epoch[i] = place.epoch;
    if (out->record)
        out->record[i] = place.record;
}

static bool are_few(const struct reader *r, const struct shuf__mixture_block *block, uint64_t count,
                    const struct shuf__places *out)
{
    const uint64_t whole = block->slots * SLOT_NS + block->stage->tree.leaves * SOURCE_NS;
    return count * (LOOK_UP_NS + block->slots) < whole && !is_computed(r, block, out);
}

/* Reads `count` places of the block, from position number x of it on. */
static bool read_block(struct reader *r, const struct shuf__mixture_block *block, uint64_t x,
                       uint64_t stride, uint64_t done, size_t count, const struct shuf__places *out)
{
    if (are_few(r, block, count, out)) {
        for (size_t i = 0; i < count; i++)
            look_up(r->m, block->stage->first + block->from + x + i * stride, done + i, out);
        return true;
    }
    if (!compute_block(r, block, out))
        return false;
    select_places(r, r->draw + x, count > 1 ? stride : 0, done, count, out);
    return true;
}

static bool read_places(struct reader *reader, uint64_t first, uint64_t count, uint64_t stride,
                        const struct shuf__places *out)
{
    for (uint64_t done = 0, part; done < count; done += part) {
        const uint64_t position = first + done * stride;
        const struct shuf__mixture_block block = shuf__mixture_block(reader->m, position);
        const uint64_t x = position - block.stage->first - block.from;
        const uint64_t most = (block.slots - 1 - x) / stride + 1;
        part = most < count - done ? most : count - done;
        if (!read_block(reader, &block, x, stride, done, part, out))
            return false;
    }
    return true;
}

/* ---- Memory ---- */

static void reader_free(struct reader *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->epochs && i < r->m->source_count; i++)
        if (r->epochs[i].windows) {
            free(r->epochs[i].windows->chunk);
            free(r->epochs[i].windows);
        }
    free(r->epochs);
    free(r->from);
    free(r->end);
    free(r->slot);
    free(r->narrow);
    free(r->draw);
    free(r->leaf);
    free(r->index);
    free(r->epoch);
    free(r->record);
    free(r->source);
    free(r);
}

static struct reader *reader_new(const struct shuf__mixture *m)
{
    struct reader *r = calloc(1, sizeof *r);
    const size_t nodes = 2 * (size_t)m->source_count, block = m->block;
    if (!r)
        return NULL;
    r->m = m;
    r->epochs = calloc(m->source_count, sizeof *r->epochs);
    r->from = malloc(nodes * sizeof *r->from);
    r->end = malloc(nodes * sizeof *r->end);
    r->slot = malloc(nodes * sizeof *r->slot);
    r->narrow = malloc(block * sizeof *r->narrow);
    r->draw = malloc(block * sizeof *r->draw);
    r->leaf = malloc(block * sizeof *r->leaf);
    r->index = malloc(block * sizeof *r->index);
    r->epoch = malloc(block * sizeof *r->epoch);
    r->record = malloc(block * sizeof *r->record);
    r->source = malloc(block * sizeof *r->source);
    if (r->epochs && r->from && r->end && r->slot && r->narrow && r->draw && r->leaf && r->index &&
        r->epoch && r->record && r->source)
        return r;
    reader_free(r);
    return NULL;
}

/* ---- Ranges by several threads ---- */

enum {
    KEPT = 64,       /* readers */
    PART = 1 << 16,  /* places between two questions to the caller, at most */
    SLOTS = 1 << 24, /* slots of the blocks that they need, about */
};

struct shuf__mixture_readers {
    pthread_mutex_t lock; /* only tried: a child of fork() may inherit it locked */
    unsigned count;
    struct reader *reader[KEPT];
};

struct shuf__mixture_readers *shuf__mixture_readers_new(void)
{
    struct shuf__mixture_readers *readers = calloc(1, sizeof *readers);
    if (readers)
        pthread_mutex_init(&readers->lock, NULL);
    return readers;
}

void shuf__mixture_readers_free(struct shuf__mixture_readers *readers)
{
    if (!readers)
        return;
    while (readers->count > 0)
        reader_free(readers->reader[--readers->count]);
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}

static struct reader *take_reader(struct shuf__mixture_readers *readers,
                                  const struct shuf__mixture *m)
{
    struct reader *reader = NULL;
    if (pthread_mutex_trylock(&readers->lock) == 0) {
        if (readers->count > 0)
            reader = readers->reader[--readers->count];
        pthread_mutex_unlock(&readers->lock);
    }
    return reader ? reader : reader_new(m);
}

static void give_reader_back(struct shuf__mixture_readers *readers, struct reader *reader)
{
    if (reader && pthread_mutex_trylock(&readers->lock) == 0) {
        if (readers->count < KEPT) {
            readers->reader[readers->count++] = reader;
            reader = NULL;
        }
        pthread_mutex_unlock(&readers->lock);
    }
    reader_free(reader);
}

/* What the threads of a call share. */
struct run {
    const struct shuf__mixture *m;
    const struct shuf__computation *computation;
    uint64_t first, count, stride, part;
    const struct shuf__places *out;
    atomic_uint_fast64_t next; /* part to take */
    atomic_bool cancelled, failed;
};

static struct shuf__places moved(const struct shuf__places *out, uint64_t places)
{
    return (struct shuf__places){
        out->index ? out->index + places : NULL, out->source ? out->source + places : NULL,
        out->epoch ? out->epoch + places : NULL, out->record ? out->record + places : NULL};
}

static void read_parts(struct run *run, struct reader *reader)
{
    while (reader && !atomic_load(&run->failed) &&
           !shuf__is_cancelled(run->computation, &run->cancelled)) {
        const uint64_t done = atomic_fetch_add(&run->next, 1) * run->part;
        if (done >= run->count)
            return;
        const uint64_t left = run->count - done;
        const struct shuf__places out = moved(run->out, done);
        if (!read_places(reader, run->first + done * run->stride,
                         left < run->part ? left : run->part, run->stride, &out))
            break;
    }
    if (!atomic_load(&run->cancelled))
        atomic_store(&run->failed, true);
}

static void run_thread(struct run *run, struct shuf__mixture_readers *readers)
{
    struct reader *reader = take_reader(readers, run->m);
    read_parts(run, reader);
    give_reader_back(readers, reader);
}

/* The places that a thread takes at once. With a wide stride each needs a block of its own. */
static uint64_t part_of(const struct shuf__mixture *m, uint64_t stride)
{
    const uint64_t part = SLOTS / (stride < m->block ? stride : m->block);
    return part < PART ? part : PART;
}

shuf_status shuf__mixture_fill(const struct shuf__mixture *m, struct shuf__mixture_readers *readers,
                               int threads, const struct shuf__computation *computation,
                               uint64_t first, uint64_t count, uint64_t stride,
                               const struct shuf__places *out, struct shuf__error *error)
{
    const uint64_t part = part_of(m, stride);
    struct run run = {m, computation, first, count, stride, part, out, 0, false, false};
    const uint64_t parts = count ? (count - 1) / part + 1 : 0;
    if (parts < (uint64_t)threads)
        threads = parts ? (int)parts : 1;
    if (threads == 1)
        run_thread(&run, readers);
    else {
#pragma omp parallel num_threads(threads)
        run_thread(&run, readers);
    }
    if (atomic_load(&run.failed))
        return shuf__fail(error, SHUF_NO_MEMORY, "mixture: no memory to read it");
    return atomic_load(&run.cancelled) ? shuf__fail_cancelled(error) : SHUF_OK;
}
