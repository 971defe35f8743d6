/* SPDX-License-Identifier: MIT
 *
 * The plan of a mixture, its single places, and counts of records before a position. A source that
 * ends begins a new stage, in which the others share its weight.
 */
#include "host/mixture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sources ---- */

static shuf_status check_source(const struct shuf__data_set *source, size_t i,
                                struct shuf__error *error)
{
    const shuf_windows *w = &source->windows;
    if (source->records == 0 || source->records > SHUF_MIXTURE_END)
        return shuf__fail(error, SHUF_INVALID,
                          "records %" PRIu64 " of source %zu: expected 1 to 2^62", source->records,
                          i);
    if (!w->chunk != !w->window)
        return shuf__fail(error, SHUF_INVALID,
                          "chunk %" PRIu64 ", window %" PRIu64
                          " of source %zu: expected both at least 1, or both 0",
                          w->chunk, w->window, i);
    return SHUF_OK;
}

/* The key of the epochs of a source, or with purpose number 1 that of the blocks. */
static shuf_key key_of(uint64_t seed, uint64_t number, uint64_t use)
{
    const shuf_philox4x64 counter = {{number, use, SHUF_PURPOSE_MIXTURE, 0}};
    const shuf_philox4x64 words = shuf_philox4x64_10(counter, seed, 0);
    return (shuf_key){{words.word[0], words.word[1]}};
}

static void set_order(struct shuf__data_set *source)
{
    const uint64_t chunk = source->windows.chunk, window = source->windows.window;
    if (window) {
        source->windows = shuf_windows_of(source->records, chunk, window);
        source->windowed = source->windows.windows > 1;
    }
    if (!source->windowed)
        source->shape = shuf_primefold_shape_of(source->records);
}

static shuf_status set_sources(struct shuf__mixture *m, uint64_t seed,
                               const struct shuf__data_set *sources, struct shuf__error *error)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < m->source_count; i++) {
        struct shuf__data_set *source = &m->sources[i];
        *source = sources[i];
        if (check_source(source, i, error))
            return error->status;
        if (source->records > SHUF_MIXTURE_END - all)
            return shuf__fail(error, SHUF_INVALID,
                              "records %" PRIu64 " of source %" PRIu32
                              ": all sources together have more than 2^62",
                              source->records, i);
        source->first = all;
        all += source->records;
        source->key = key_of(seed, i, 0);
        source->windowed = false;
        set_order(source);
        if (source->epochs == 0 ||
            __builtin_mul_overflow(source->records, source->epochs, &source->limit))
            source->limit = UINT64_MAX;
    }
    return SHUF_OK;
}

/* ---- Stages ---- */

#define LACK (INT64_C(1) << 32) /* the unit of what a source lacks */

/* The state of the planning. */
struct planning {
    struct shuf__mixture *m;
    uint64_t *drawn;  /* records of each source before the next stage */
    int64_t *lacks;   /* of each source then: its exact share less `drawn`, in records / 2^32 */
    int64_t *nodes;   /* room for the lacks of a tree */
    uint64_t divisor; /* of the weights of the caller's stage */
    struct leaf {
        uint64_t weight;
        uint32_t number;
    } * leaves; /* of the next tree, to be sorted */
    size_t all_leaves;
};

static int compare_leaves(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool has_records(const struct planning *planning, const uint64_t *weights, uint32_t i)
{
    return weights[i] && planning->drawn[i] < planning->m->sources[i].limit;
}

static shuf_status no_memory(struct shuf__error *error)
{
    return shuf__fail(error, SHUF_NO_MEMORY, "mixture: no memory for its plan");
}

static void free_stage(struct shuf__stage *stage)
{
    free(stage->tree.node);
    free(stage->source);
    free(stage->before);
}

static struct shuf__stage *next_stage(struct shuf__mixture *m)
{
    if (m->stage_count == m->stage_room) {
        const size_t room = 2 * m->stage_room + 4;
        struct shuf__stage *stages = realloc(m->stages, room * sizeof *stages);
        if (!stages)
            return NULL;
        m->stages = stages;
        m->stage_room = room;
    }
    return memset(&m->stages[m->stage_count], 0, sizeof *m->stages);
}

/* Makes the tree of the sources that have records left. */
static shuf_status plant(struct planning *planning, struct shuf__stage *stage, uint32_t leaves,
                         const uint64_t *weights, struct shuf__error *error)
{
    uint32_t *const sorted = malloc(leaves * sizeof *sorted);
    stage->tree.leaves = leaves;
    stage->tree.node = calloc(2 * (size_t)leaves - 1, sizeof *stage->tree.node);
    stage->source = malloc(leaves * sizeof *stage->source);
    stage->before = malloc(leaves * sizeof *stage->before);
    if (!sorted || !stage->tree.node || !stage->source || !stage->before) {
        free(sorted);
        free_stage(stage);
        return no_memory(error);
    }
    uint32_t leaf = 0;
    for (uint32_t i = 0; i < planning->m->source_count; i++)
        if (has_records(planning, weights, i)) {
            stage->source[leaf] = i;
            stage->before[leaf] = planning->drawn[i];
            stage->tree.node[leaf].weight = weights[i] / planning->divisor;
            planning->leaves[leaf] = (struct leaf){stage->tree.node[leaf].weight, leaf};
            leaf++;
        }
    qsort(planning->leaves, leaves, sizeof *planning->leaves, compare_leaves);
    for (leaf = 0; leaf < leaves; leaf++)
        sorted[leaf] = planning->leaves[leaf].number;
    shuf_mixture_plant(&stage->tree, sorted);
    free(sorted);
    for (leaf = 0; leaf < leaves; leaf++)
        planning->nodes[leaf] = planning->lacks[stage->source[leaf]];
    shuf_mixture_carry(&stage->tree, planning->nodes);
    return SHUF_OK;
}

/* The most positions, up to `most`, with which no source passes its limit. */
static uint64_t stage_length(const struct shuf__mixture *m, const struct shuf__stage *stage,
                             uint64_t most)
{
    for (uint32_t leaf = 0; leaf < stage->tree.leaves; leaf++) {
        const uint64_t left = m->sources[stage->source[leaf]].limit - stage->before[leaf];
        if (left < most && shuf_mixture_share(&stage->tree, leaf, most) > left)
            most = shuf_mixture_reach(&stage->tree, leaf, left + 1) - 1;
    }
    return most;
}

/* Adds the draws of a source in a stage, and what they differ from its exact share. */
static void end_source(struct planning *planning, const struct shuf__stage *stage, uint32_t leaf)
{
    const uint64_t draws = shuf_mixture_share(&stage->tree, leaf, stage->length);
    const uint64_t all = stage->tree.node[2 * stage->tree.leaves - 2].weight;
    const shuf__u128 share = (shuf__u128)stage->length * stage->tree.node[leaf].weight;
    const uint64_t whole = (uint64_t)(share / all), rest = (uint64_t)(share % all);
    planning->drawn[stage->source[leaf]] += draws;
    planning->lacks[stage->source[leaf]] +=
        (int64_t)(whole - draws) * LACK + (int64_t)(((shuf__u128)rest << 32) / all);
}

/* The blocks of the stages that are there. */
static uint64_t blocks_before(const struct shuf__mixture *m)
{
    if (m->stage_count == 0)
        return 0;
    const struct shuf__stage *last = &m->stages[m->stage_count - 1];
    return last->blocks + (last->length - 1) / m->block + 1;
}

/* Adds the stage from `first` on, which ends before `end` if a source ends. Leaves m->length as it
 * is if all sources have ended. */
static shuf_status add_stage(struct planning *planning, uint64_t first, uint64_t end,
                             const uint64_t *weights, struct shuf__error *error)
{
    struct shuf__mixture *m = planning->m;
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < m->source_count; i++)
        leaves += has_records(planning, weights, i);
    if (leaves == 0)
        return SHUF_OK;
    planning->all_leaves += leaves;
    if (planning->all_leaves > SHUF__LEAVES_MOST)
        return shuf__fail(
            error, SHUF_INVALID,
            "stages: with those that begin where a source ends, they have more than "
            "2^21 sources together; expected fewer stages, or fewer sources with epochs");
    struct shuf__stage *stage = next_stage(m);
    if (!stage)
        return no_memory(error);
    if (plant(planning, stage, leaves, weights, error))
        return error->status;
    stage->first = first;
    stage->length = stage_length(m, stage, end - first);
    stage->blocks = blocks_before(m);
    if (stage->length % m->block)
        stage->last_block = shuf_primefold_shape_of(stage->length % m->block);
    m->stage_count++;
    m->length = first + stage->length;
    for (uint32_t leaf = 0; leaf < leaves; leaf++)
        end_source(planning, stage, leaf);
    return SHUF_OK;
}

static shuf_status check_weights(const struct shuf__mixture *m, const struct shuf__weights *stage,
                                 size_t number, struct shuf__error *error)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->source_count; i++) {
        if (stage->weights[i] >= SHUF_MIXTURE_WEIGHTS - sum)
            return shuf__fail(error, SHUF_INVALID,
                              "weight %" PRIu64 " of source %" PRIu32
                              " in stage %zu: the sum is 2^61 or more",
                              stage->weights[i], i, number);
        sum += stage->weights[i];
    }
    return sum ? SHUF_OK
               : shuf__fail(error, SHUF_INVALID,
                            "weights of stage %zu: all are 0, expected one above 0", number);
}

static shuf_status check_stages(const struct shuf__mixture *m, const struct shuf__weights *stages,
                                size_t count, struct shuf__error *error)
{
    if (count == 0)
        return shuf__fail(error, SHUF_INVALID, "stages: expected at least one, from position 0");
    for (size_t s = 0; s < count; s++) {
        if (s == 0 && stages[s].first != 0)
            return shuf__fail(error, SHUF_INVALID, "first %" PRIu64 " of stage 0: expected 0",
                              stages[s].first);
        if (s > 0 && stages[s].first <= stages[s - 1].first)
            return shuf__fail(error, SHUF_INVALID,
                              "first %" PRIu64 " of stage %zu: expected more than %" PRIu64
                              ", that of the stage before",
                              stages[s].first, s, stages[s - 1].first);
        if (stages[s].first >= SHUF_MIXTURE_END)
            return shuf__fail(error, SHUF_INVALID,
                              "first %" PRIu64 " of stage %zu: expected less than 2^62",
                              stages[s].first, s);
        if (check_weights(m, &stages[s], s, error))
            return error->status;
    }
    return SHUF_OK;
}

/* The greatest common divisor of the weights. At least one is above 0. */
static uint64_t common_divisor(const uint64_t *weights, uint32_t count)
{
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t a = weights[i], rest; a; a = rest) {
            rest = divisor % a;
            divisor = a;
        }
    return divisor;
}

static shuf_status plan(struct planning *planning, const struct shuf__weights *stages, size_t count,
                        struct shuf__error *error)
{
    struct shuf__mixture *m = planning->m;
    for (size_t s = 0; s < count; s++) {
        const uint64_t end = s + 1 < count ? stages[s + 1].first : SHUF_MIXTURE_END;
        if (m->length < stages[s].first)
            return shuf__fail(error, SHUF_INVALID,
                              "first %" PRIu64 " of stage %zu: all sources of the stage before end "
                              "at position %" PRIu64,
                              stages[s].first, s, m->length);
        planning->divisor = common_divisor(stages[s].weights, m->source_count);
        for (uint64_t before = UINT64_MAX; m->length < end && m->length != before;) {
            before = m->length;
            if (add_stage(planning, before, end, stages[s].weights, error))
                return error->status;
        }
        if (m->length == stages[s].first)
            return shuf__fail(error, SHUF_INVALID,
                              "weights of stage %zu: all sources with a weight have ended", s);
    }
    return SHUF_OK;
}

/* Lists the stages of each source. */
static shuf_status list_stages(struct shuf__mixture *m, size_t leaves, struct shuf__error *error)
{
    m->first_stage = calloc((size_t)m->source_count + 2, sizeof *m->first_stage);
    m->stage_of = malloc((leaves + 1) * sizeof *m->stage_of);
    if (!m->first_stage || !m->stage_of)
        return no_memory(error);
    uint32_t *const next = m->first_stage + 1; /* becomes the beginning of each list */
    for (size_t s = 0; s < m->stage_count; s++)
        for (uint32_t leaf = 0; leaf < m->stages[s].tree.leaves; leaf++)
            next[m->stages[s].source[leaf] + 1]++;
    for (uint32_t i = 0; i < m->source_count; i++)
        next[i + 1] += next[i];
    for (size_t s = 0; s < m->stage_count; s++)
        for (uint32_t leaf = 0; leaf < m->stages[s].tree.leaves; leaf++)
            m->stage_of[next[m->stages[s].source[leaf]]++] = (uint32_t)s;
    return SHUF_OK;
}

static shuf_status make_stages(struct shuf__mixture *m, const struct shuf__weights *stages,
                               size_t count, struct shuf__error *error)
{
    struct planning planning = {.m = m};
    if (check_stages(m, stages, count, error))
        return error->status;
    planning.drawn = calloc(m->source_count, sizeof *planning.drawn);
    planning.leaves = malloc(m->source_count * sizeof *planning.leaves);
    planning.lacks = calloc(m->source_count, sizeof *planning.lacks);
    planning.nodes = calloc(2 * (size_t)m->source_count, sizeof *planning.nodes);
    if (!planning.drawn || !planning.leaves || !planning.lacks || !planning.nodes)
        no_memory(error);
    else if (!plan(&planning, stages, count, error))
        list_stages(m, planning.all_leaves, error);
    free(planning.drawn);
    free(planning.leaves);
    free(planning.lacks);
    free(planning.nodes);
    return error->status;
}

/* ---- The whole plan ---- */

static shuf_status check_sizes(size_t sources, uint64_t block, struct shuf__error *error)
{
    if (sources == 0 || sources > SHUF__SOURCES_MOST)
        return shuf__fail(error, SHUF_INVALID, "sources: %zu of them, expected 1 to %d", sources,
                          SHUF__SOURCES_MOST);
    if (block < sources || block > SHUF__BLOCK_MOST)
        return shuf__fail(error, SHUF_INVALID,
                          "block %" PRIu64 ": expected from %zu, the number of sources, to 2^20",
                          block, sources);
    return SHUF_OK;
}

shuf_status shuf__mixture_make(struct shuf__mixture *m, const struct shuf__simd_ops *simd,
                               uint64_t seed, uint64_t block, const struct shuf__data_set *sources,
                               size_t source_count, const struct shuf__weights *stages,
                               size_t stage_count, struct shuf__error *error)
{
    *m = (struct shuf__mixture){.simd = simd, .block = block ? block : SHUF__BLOCK_DEFAULT};
    if (check_sizes(source_count, m->block, error))
        return error->status;
    m->source_count = (uint32_t)source_count;
    m->block_key = key_of(seed, 0, 1);
    m->block_shape = shuf_primefold_shape_of(m->block);
    m->sources = calloc(source_count, sizeof *m->sources);
    if (!m->sources)
        return no_memory(error);
    if (set_sources(m, seed, sources, error) || make_stages(m, stages, stage_count, error))
        shuf__mixture_free(m);
    return error->status;
}

void shuf__mixture_free(struct shuf__mixture *m)
{
    for (size_t s = 0; s < m->stage_count; s++)
        free_stage(&m->stages[s]);
    free(m->stages);
    free(m->sources);
    free(m->first_stage);
    free(m->stage_of);
    *m = (struct shuf__mixture){0};
}

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
