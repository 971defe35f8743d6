/* SPDX-License-Identifier: MIT
 *
 * Single places of a mixture, and counts of records before a position.
 */
#include "host/mixture.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Blocks ---- */

/* The last stage that begins at the position or before it. */
static const struct shuf__stage *stage_at(const struct shuf__mixture *m, uint64_t position)
{
    size_t low = 0, high = m->stage_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (m->stages[middle].first <= position)
            low = middle;
        else
            high = middle;
    }
    return &m->stages[low];
}

/* The block that has the position number x of the stage. */
static struct shuf__mixture_block block_of(const struct shuf__mixture *m,
                                           const struct shuf__stage *stage, uint64_t x)
{
    const uint64_t from = x - x % m->block;
    return (struct shuf__mixture_block){stage, from, least(m->block, stage->length - from)};
}

struct shuf__mixture_block shuf__mixture_block(const struct shuf__mixture *m, uint64_t position)
{
    const struct shuf__stage *stage = stage_at(m, position);
    return block_of(m, stage, position - stage->first);
}

static const shuf_primefold_shape *shape_of(const struct shuf__mixture *m,
                                            const struct shuf__mixture_block *block)
{
    return block->slots == m->block ? &m->block_shape : &block->stage->last_block;
}

void shuf__mixture_block_order(const struct shuf__mixture *m,
                               const struct shuf__mixture_block *block,
                               union shuf__bijection *order)
{
    shuf__primefold_make(&order->primefold, shape_of(m, block), m->block_key,
                         block->stage->blocks + block->from / m->block);
}

/* The draws of a node that stand in a block, and the first one of their slots. */
struct share {
    uint64_t from, count, slot;
};

static struct share left_share(const shuf_mixture_tree *tree, uint32_t number,
                               const struct share *share)
{
    const shuf_mixture_node *node = &tree->node[number];
    const uint64_t from = shuf_mixture_left(tree, node, share->from);
    const uint64_t end = shuf_mixture_left(tree, node, share->from + share->count);
    return (struct share){from, end - from, share->slot};
}

static struct share right_share(const struct share *share, const struct share *left)
{
    return (struct share){share->from - left->from, share->count - left->count,
                          left->slot + left->count};
}

static struct share whole_share(const struct shuf__mixture_block *block)
{
    return (struct share){block->from, block->slots, 0};
}

static struct share share_of(const struct shuf__mixture_block *block, uint32_t leaf)
{
    const shuf_mixture_tree *tree = &block->stage->tree;
    uint32_t path[SHUF_MIXTURE_DEPTH];
    unsigned depth = 0;
    for (uint32_t at = leaf; at != 2 * tree->leaves - 2; at = tree->node[at].parent)
        path[depth++] = at;
    struct share share = whole_share(block);
    while (depth-- > 0) {
        const uint32_t parent = tree->node[path[depth]].parent;
        const struct share left = left_share(tree, parent, &share);
        share = path[depth] == tree->node[parent].left ? left : right_share(&share, &left);
    }
    return share;
}

static uint32_t leaf_of_slot(const struct shuf__mixture_block *block, uint64_t slot,
                             struct share *share)
{
    const shuf_mixture_tree *tree = &block->stage->tree;
    uint32_t at = 2 * tree->leaves - 2;
    *share = whole_share(block);
    while (at >= tree->leaves) {
        const struct share left = left_share(tree, at, share);
        const bool is_left = slot < left.slot + left.count;
        *share = is_left ? left : right_share(share, &left);
        at = is_left ? tree->node[at].left : tree->node[at].right;
    }
    return at;
}

/* ---- Slots ---- */

enum { SLOTS = 4096 }; /* that are evaluated at once */

/* The slots of the first positions of a block, part by part. */
struct slots {
    uint64_t first; /* position of slot[0] */
    size_t count;
    uint32_t slot[SLOTS];
};

static void next_slots(const struct shuf__mixture *m, const union shuf__bijection *order,
                       uint64_t end, struct slots *slots)
{
    slots->first += slots->count;
    slots->count = (size_t)least(SLOTS, end - slots->first);
    m->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](order, (uint32_t)slots->first, 1, slots->slot,
                                              slots->count);
}

static uint64_t count_slots(const struct slots *slots, const struct share *share)
{
    const uint32_t begin = (uint32_t)share->slot, count = (uint32_t)share->count;
    uint32_t found = 0;
    for (size_t i = 0; i < slots->count; i++)
        found += slots->slot[i] - begin < count;
    return found;
}

/* The number of positions before x in the block that have a slot of the share. */
static uint64_t rank_of(const struct shuf__mixture *m, const union shuf__bijection *order,
                        uint64_t x, const struct share *share)
{
    struct slots slots = {.first = 0};
    uint64_t rank = 0;
    while (slots.first + slots.count < x) {
        next_slots(m, order, x, &slots);
        rank += count_slots(&slots, share);
    }
    return rank;
}

/* The position in the block of the slot number `rank` of the share, which has more. */
static uint64_t position_of_rank(const struct shuf__mixture *m, const union shuf__bijection *order,
                                 uint64_t end, const struct share *share, uint64_t rank)
{
    struct slots slots = {.first = 0};
    for (;;) {
        next_slots(m, order, end, &slots);
        const uint64_t count = count_slots(&slots, share);
        if (rank < count)
            break;
        rank -= count;
    }
    for (size_t i = 0;; i++)
        if (slots.slot[i] - (uint32_t)share->slot < share->count && rank-- == 0)
            return slots.first + i;
}

/* ---- From positions to records ---- */

static uint64_t record_at(const struct shuf__data_set *source, uint64_t epoch, uint64_t i)
{
    if (source->windowed) {
        const shuf_windowed order = shuf_windowed_make(&source->windows, source->key, epoch);
        return shuf_windowed_forward(&order, i);
    }
    const shuf_primefold order = shuf_primefold_make_of(&source->shape, source->key, epoch);
    return shuf_primefold_forward(&order, i);
}

struct shuf__place shuf__mixture_look_up(const struct shuf__mixture *m, uint64_t position)
{
    const struct shuf__mixture_block block = shuf__mixture_block(m, position);
    const uint64_t x = position - block.stage->first - block.from;
    union shuf__bijection order;
    struct share share;
    uint32_t slot;
    shuf__mixture_block_order(m, &block, &order);
    m->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&order, (uint32_t)x, 1, &slot, 1);
    const uint32_t leaf = leaf_of_slot(&block, slot, &share);
    const uint64_t draw = block.stage->before[leaf] + share.from + rank_of(m, &order, x, &share);
    const uint32_t number = block.stage->source[leaf];
    const struct shuf__data_set *source = &m->sources[number];
    const uint64_t epoch = draw / source->records;
    return (struct shuf__place){epoch, record_at(source, epoch, draw % source->records), number};
}

/* ---- From records to positions ---- */

static uint64_t record_position(const struct shuf__data_set *source, uint64_t epoch,
                                uint64_t record)
{
    if (source->windowed) {
        const shuf_windowed order = shuf_windowed_make(&source->windows, source->key, epoch);
        return shuf_windowed_inverse(&order, record);
    }
    shuf_primefold order = shuf_primefold_make_of(&source->shape, source->key, epoch);
    shuf_primefold_make_inverse(&order);
    return shuf_primefold_inverse(&order, record);
}

/* The leaf of a source in a stage that has it. */
static uint32_t leaf_of(const struct shuf__stage *stage, uint32_t source)
{
    uint32_t low = 0, high = stage->tree.leaves;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (stage->source[middle] < source)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A draw of a source: the stage that has it, its leaf there, and its number in the stage. */
struct draw {
    const struct shuf__stage *stage;
    uint32_t leaf;
    uint64_t number;
};

/* The last stage that begins with at most `number` draws of a source, which has stages. */
static const struct shuf__stage *stage_of_draw(const struct shuf__mixture *m, uint32_t source,
                                               uint64_t number, uint32_t *leaf)
{
    const uint32_t *list = m->stage_of + m->first_stage[source];
    uint32_t low = 0, high = m->first_stage[source + 1] - m->first_stage[source];
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        const struct shuf__stage *stage = &m->stages[list[middle]];
        if (stage->before[leaf_of(stage, source)] <= number)
            low = middle;
        else
            high = middle;
    }
    *leaf = leaf_of(&m->stages[list[low]], source);
    return &m->stages[list[low]];
}

static bool find_draw(const struct shuf__mixture *m, uint32_t source, uint64_t number,
                      struct draw *draw)
{
    uint32_t leaf;
    if (m->first_stage[source] == m->first_stage[source + 1])
        return false;
    const struct shuf__stage *stage = stage_of_draw(m, source, number, &leaf);
    *draw = (struct draw){stage, leaf, number - stage->before[leaf]};
    return draw->number < shuf_mixture_share(&stage->tree, leaf, stage->length);
}

static uint64_t position_of_draw(const struct shuf__mixture *m, const struct draw *draw)
{
    const uint64_t reach = shuf_mixture_reach(&draw->stage->tree, draw->leaf, draw->number + 1);
    const struct shuf__mixture_block block = block_of(m, draw->stage, reach - 1);
    const struct share share = share_of(&block, draw->leaf);
    union shuf__bijection order;
    shuf__mixture_block_order(m, &block, &order);
    return draw->stage->first + block.from +
           position_of_rank(m, &order, block.slots, &share, draw->number - share.from);
}

uint64_t shuf__mixture_position(const struct shuf__mixture *m, const struct shuf__place *place)
{
    const struct shuf__data_set *source = &m->sources[place->source];
    uint64_t before;
    struct draw draw;
    if (__builtin_mul_overflow(place->epoch, source->records, &before) || before > SHUF_MIXTURE_END)
        return UINT64_MAX;
    const uint64_t number = before + record_position(source, place->epoch, place->record);
    return find_draw(m, place->source, number, &draw) ? position_of_draw(m, &draw) : UINT64_MAX;
}

/* ---- Counts ---- */

/* Adds the records at the first x positions of a block, and before it in its stage. */
static void count_block(const struct shuf__mixture *m, const struct shuf__mixture_block *block,
                        uint64_t x, uint64_t *counts)
{
    const struct shuf__stage *stage = block->stage;
    struct slots slots = {.first = 0};
    union shuf__bijection order;
    for (uint32_t leaf = 0; leaf < stage->tree.leaves; leaf++)
        counts[stage->source[leaf]] += shuf_mixture_share(&stage->tree, leaf, block->from);
    shuf__mixture_block_order(m, block, &order);
    while (slots.first + slots.count < x) {
        next_slots(m, &order, x, &slots);
        for (uint32_t leaf = 0; leaf < stage->tree.leaves; leaf++) {
            const struct share share = share_of(block, leaf);
            counts[stage->source[leaf]] += count_slots(&slots, &share);
        }
    }
}

void shuf__mixture_counts(const struct shuf__mixture *m, uint64_t position, uint64_t *counts)
{
    memset(counts, 0, m->source_count * sizeof *counts);
    for (size_t s = 0; s < m->stage_count && m->stages[s].first < position; s++) {
        const struct shuf__stage *stage = &m->stages[s];
        const uint64_t end = position - stage->first;
        if (end < stage->length) {
            const struct shuf__mixture_block block = block_of(m, stage, end);
            count_block(m, &block, end - block.from, counts);
            continue;
        }
        for (uint32_t leaf = 0; leaf < stage->tree.leaves; leaf++)
            counts[stage->source[leaf]] += shuf_mixture_share(&stage->tree, leaf, stage->length);
    }
}

void shuf__mixture_exhausted(const struct shuf__mixture *m, uint64_t *positions)
{
    for (uint32_t i = 0; i < m->source_count; i++) {
        struct draw draw;
        positions[i] = find_draw(m, i, m->sources[i].records - 1, &draw)
                           ? position_of_draw(m, &draw) + 1
                           : UINT64_MAX;
    }
}
