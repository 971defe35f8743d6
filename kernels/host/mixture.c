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
                               struct shuf__primefold *order)
{
    shuf__primefold_make(order, shape_of(m, block), m->block_key,
                         block->stage->first + block->from);
}

static shuf_primefold plain_order(const struct shuf__mixture *m,
                                  const struct shuf__mixture_block *block)
{
    return shuf_primefold_make_of(shape_of(m, block), m->block_key,
                                  block->stage->first + block->from);
}

/* ---- From positions to records ---- */

/* The draws from..from + count - 1 of a node stand in a block. */
struct share {
    uint64_t from, count;
};

static struct share left_share(const shuf_mixture_tree *tree, uint32_t number,
                               const struct share *share)
{
    const shuf_mixture_node *node = &tree->node[number];
    const uint64_t of_left = tree->node[node->left].weight;
    const uint64_t from = shuf_mixture_left(node->weight, of_left, share->from);
    const uint64_t end = shuf_mixture_left(node->weight, of_left, share->from + share->count);
    return (struct share){from, end - from};
}

/* Finds the leaf of a slot. Turns *slot into the number of its draw in the stage. */
static uint32_t leaf_of_slot(const struct shuf__mixture_block *block, uint64_t *slot)
{
    const shuf_mixture_tree *tree = &block->stage->tree;
    struct share share = {block->from, block->slots};
    uint32_t at = 2 * tree->leaves - 2;
    while (at >= tree->leaves) {
        const struct share left = left_share(tree, at, &share);
        if (*slot < left.count) {
            share = left;
            at = tree->node[at].left;
            continue;
        }
        *slot -= left.count;
        share = (struct share){share.from - left.from, share.count - left.count};
        at = tree->node[at].right;
    }
    *slot += share.from;
    return at;
}

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
    const shuf_primefold order = plain_order(m, &block);
    uint64_t slot = shuf_primefold_forward(&order, position - block.stage->first - block.from);
    const uint32_t leaf = leaf_of_slot(&block, &slot);
    const uint64_t draw = block.stage->before[leaf] + slot;
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

/* The leaf of a source in a stage, or UINT32_MAX. */
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
    return low < stage->tree.leaves && stage->source[low] == source ? low : UINT32_MAX;
}

/* The slot in the block of draw number `draw` of a leaf in the stage, which stands in the block. */
static uint64_t slot_of(const struct shuf__mixture_block *block, uint32_t leaf, uint64_t draw)
{
    const shuf_mixture_tree *tree = &block->stage->tree;
    uint32_t path[SHUF_MIXTURE_DEPTH];
    unsigned depth = 0;
    for (uint32_t at = leaf; at != 2 * tree->leaves - 2; at = tree->node[at].parent)
        path[depth++] = at;
    struct share share = {block->from, block->slots};
    uint64_t slot = 0;
    while (depth-- > 0) {
        const uint32_t parent = tree->node[path[depth]].parent;
        const struct share left = left_share(tree, parent, &share);
        const bool is_left = path[depth] == tree->node[parent].left;
        slot += is_left ? 0 : left.count;
        share = is_left ? left : (struct share){share.from - left.from, share.count - left.count};
    }
    return slot + draw - share.from;
}

/* A draw of a source: the stage that has it, its leaf there, and its number in the stage. */
struct draw {
    const struct shuf__stage *stage;
    uint32_t leaf;
    uint64_t number;
};

static bool find_draw(const struct shuf__mixture *m, uint32_t source, uint64_t number,
                      struct draw *draw)
{
    for (size_t s = 0; s < m->stage_count; s++) {
        const struct shuf__stage *stage = &m->stages[s];
        const uint32_t leaf = leaf_of(stage, source);
        if (leaf == UINT32_MAX || number < stage->before[leaf] ||
            number - stage->before[leaf] >= shuf_mixture_share(&stage->tree, leaf, stage->length))
            continue;
        *draw = (struct draw){stage, leaf, number - stage->before[leaf]};
        return true;
    }
    return false;
}

static struct shuf__mixture_block block_of_draw(const struct shuf__mixture *m,
                                                const struct draw *draw)
{
    const uint64_t reach = shuf_mixture_reach(&draw->stage->tree, draw->leaf, draw->number + 1);
    return block_of(m, draw->stage, reach - 1);
}

uint64_t shuf__mixture_position(const struct shuf__mixture *m, const struct shuf__place *place)
{
    const struct shuf__data_set *source = &m->sources[place->source];
    uint64_t before;
    struct draw draw;
    if (__builtin_mul_overflow(place->epoch, source->records, &before) || before > SHUF_MIXTURE_END)
        return UINT64_MAX;
    const uint64_t number = before + record_position(source, place->epoch, place->record);
    if (!find_draw(m, place->source, number, &draw))
        return UINT64_MAX;
    const struct shuf__mixture_block block = block_of_draw(m, &draw);
    shuf_primefold order = plain_order(m, &block);
    shuf_primefold_make_inverse(&order);
    return block.stage->first + block.from +
           shuf_primefold_inverse(&order, slot_of(&block, draw.leaf, draw.number));
}

/* ---- Counts ---- */

void shuf__mixture_counts(const struct shuf__mixture *m, uint64_t position, uint64_t *counts)
{
    memset(counts, 0, m->source_count * sizeof *counts);
    for (size_t s = 0; s < m->stage_count && m->stages[s].first < position; s++) {
        const struct shuf__stage *stage = &m->stages[s];
        const uint64_t end = least(position - stage->first, stage->length);
        const uint64_t whole = end == stage->length ? end : end - end % m->block;
        for (uint32_t leaf = 0; leaf < stage->tree.leaves; leaf++)
            counts[stage->source[leaf]] += shuf_mixture_share(&stage->tree, leaf, whole);
        if (whole == end)
            continue;
        const struct shuf__mixture_block block = block_of(m, stage, whole);
        const shuf_primefold order = plain_order(m, &block);
        for (uint64_t x = 0; x < end - whole; x++) {
            uint64_t slot = shuf_primefold_forward(&order, x);
            counts[stage->source[leaf_of_slot(&block, &slot)]]++;
        }
    }
}

/* The number of positions after which the first epoch of a source is complete. Its last record
 * stands in the block of its last draw, at the last position of those of the epoch. */
static uint64_t exhausted_at(const struct shuf__mixture *m, uint32_t source)
{
    struct draw draw;
    if (!find_draw(m, source, m->sources[source].records - 1, &draw))
        return UINT64_MAX;
    const struct shuf__mixture_block block = block_of_draw(m, &draw);
    const uint64_t first = shuf_mixture_share(&draw.stage->tree, draw.leaf, block.from);
    shuf_primefold order = plain_order(m, &block);
    shuf_primefold_make_inverse(&order);
    uint64_t slot = slot_of(&block, draw.leaf, first), last = 0;
    for (uint64_t number = first; number <= draw.number; number++) {
        const uint64_t x = shuf_primefold_inverse(&order, slot++);
        last = x > last ? x : last;
    }
    return block.stage->first + block.from + last + 1;
}

void shuf__mixture_exhausted(const struct shuf__mixture *m, uint64_t *positions)
{
    for (uint32_t i = 0; i < m->source_count; i++)
        positions[i] = exhausted_at(m, i);
}
