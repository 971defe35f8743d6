/* SPDX-License-Identifier: MIT
 *
 * Mixtures: see orders.cuh. The positions are computed in pieces of whole blocks. Three kinds of
 * launches compute a piece, in scratch memory:
 *
 *     the records of each source, which are consecutive positions of its epochs: the end of an
 *     epoch, whole epochs as rows, and the beginning of an epoch
 *     the orders of the blocks, as rows
 *     the places: a warp finds for each position of its block the source that has the position's
 *     slot, and takes the next record of this source
 */
#include "orders.cuh"

#include "fold_rows.cuh"
#include "permute.cuh"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

namespace shuf
{

namespace
{

constexpr uint64_t piece_most = uint64_t{1} << 26; /* positions */
constexpr uint32_t parts_of_draws = 3;
constexpr uint32_t warps_most = 4; /* of a block of threads */
constexpr uint32_t shared_most = 48 << 10;

/* A step from a node of the tree down to a leaf. */
struct Step {
    uint64_t weight, of_left; /* of the node; of its left child */
    uint64_t part;            /* what the left child gets in addition: whole + part / weight */
    int64_t whole;
    double ratio, more; /* of_left / weight; part / weight */
    uint32_t is_left;
};

/* A source, in the order of the slots. */
struct Leaf {
    uint32_t step, steps;        /* its path */
    uint64_t before;             /* draws in the stage before the piece */
    uint64_t first;              /* the index of its first record */
    uint64_t end[2];             /* of the first two parts, counted from the piece's first draw */
    uint64_t at[parts_of_draws]; /* where the parts begin in the memory of the records */
};

/* The tables in scratch memory. */
struct Tables {
    const Leaf *leaf;
    const Step *step;
    const uint64_t *record;
    const uint32_t *slot;
    uint32_t leaves;
};

/* The positions of a launch, counted from the beginning of the stage. */
struct Piece {
    uint64_t from, end;    /* of the piece, which begins with a block */
    uint64_t first, count; /* those that are stored */
    uint64_t block;
};

/* shuf_mixture_left() for n < 2^50: the estimate is wrong by less than 2. */
__device__ __forceinline__ uint64_t left_of(const Step &s, uint64_t n)
{
    auto q = static_cast<int64_t>(static_cast<double>(n) * s.ratio + s.more);
    const auto w = static_cast<int64_t>(s.weight);
    auto rest = static_cast<int64_t>(n * s.of_left + s.part - static_cast<uint64_t>(q) * s.weight);
    while (rest < 0)
        rest += w, q--;
    while (rest >= w)
        rest -= w, q++;
    q += s.whole + (rest >= w - rest ? 1 : 0);
    return q < 0 ? 0 : static_cast<uint64_t>(q) < n ? static_cast<uint64_t>(q) : n;
}

__device__ __forceinline__ uint64_t share_of(const Tables &t, const Leaf &leaf, uint64_t n)
{
    for (uint32_t i = 0; i < leaf.steps; i++) {
        const Step &s = t.step[leaf.step + i];
        const uint64_t left = left_of(s, n);
        n = s.is_left ? left : n - left;
    }
    return n;
}

/* Sets the first slot of each leaf in the block, and the number of its next draw in the piece. */
__device__ __forceinline__ void share_out(const Tables &t, uint64_t from, uint64_t end,
                                          uint32_t *slot, uint32_t *next)
{
    uint32_t begin = 0;
    for (uint32_t base = 0; base < t.leaves; base += 32) {
        const uint32_t at = base + threadIdx.x % 32;
        uint32_t count = 0;
        if (at < t.leaves) {
            const Leaf &leaf = t.leaf[at];
            const uint64_t drawn = share_of(t, leaf, from);
            count = static_cast<uint32_t>(share_of(t, leaf, end) - drawn);
            next[at] = static_cast<uint32_t>(drawn - leaf.before);
        }
        const WarpPart part(count);
        if (at < t.leaves)
            slot[at] = begin + part.begin;
        begin += part.all;
    }
}

/* The last leaf whose first slot is at most `slot` and that has slots. */
__device__ __forceinline__ uint32_t leaf_of(const uint32_t *slots, uint32_t leaves, uint32_t slot)
{
    uint32_t low = 0, high = leaves;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        const bool is_low = slots[middle] <= slot;
        low = is_low ? middle : low;
        high = is_low ? high : middle;
    }
    return low;
}

__device__ __forceinline__ uint64_t record_of(const Tables &t, const Leaf &leaf, uint64_t draw)
{
    const uint32_t part = (draw >= leaf.end[0] ? 1 : 0) + (draw >= leaf.end[1] ? 1 : 0);
    const uint64_t before = part == 0 ? 0 : leaf.end[part - 1];
    return leaf.first + t.record[leaf.at[part] + draw - before];
}

/* A warp computes a block of the mixture. */
__global__ void __launch_bounds__(32 * warps_most)
    take_places(__grid_constant__ const Tables t, __grid_constant__ const Piece piece,
                uint64_t *index)
{
    extern __shared__ uint32_t shared[];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint64_t number = uint64_t{blockIdx.x} * (blockDim.x / 32) + warp;
    const uint64_t from = piece.from + number * piece.block;
    if (from >= piece.end)
        return;
    const uint64_t end = from + piece.block < piece.end ? from + piece.block : piece.end;
    uint32_t *const slot = shared + 2 * t.leaves * warp, *const next = slot + t.leaves;
    share_out(t, from, end, slot, next);
    __syncwarp();
    for (uint64_t base = from; base < end; base += 32) {
        const uint64_t x = base + lane;
        const bool is_here = x < end;
        const uint32_t leaf =
            is_here ? leaf_of(slot, t.leaves, t.slot[x - piece.from]) : UINT32_MAX - lane;
        const uint32_t same = __match_any_sync(0xffffffff, leaf);
        const uint32_t before = __popc(same & ((1u << lane) - 1));
        uint64_t draw = 0;
        if (is_here)
            draw = next[leaf] + before;
        __syncwarp();
        if (is_here && before == 0)
            next[leaf] += __popc(same);
        __syncwarp();
        if (is_here && x - piece.first < piece.count)
            index[x - piece.first] = record_of(t, t.leaf[leaf], draw);
    }
}

/* ---- The host ---- */

size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

uint64_t piece_of(const shuf__mixture &m, uint64_t count)
{
    const uint64_t most = std::min(piece_most, count + 2 * m.block);
    return (most + m.block - 1) / m.block * m.block;
}

/* The scratch memory. */
struct Layout {
    size_t records, slots, leaves, steps, all;

    Layout(const shuf__mixture &m, uint64_t count)
    {
        const uint64_t piece = piece_of(m, count);
        size_t most_leaves = 1, most_steps = 1;
        for (size_t s = 0; s < m.stage_count; s++) {
            most_leaves = std::max<size_t>(most_leaves, m.stages[s].tree.leaves);
            most_steps = std::max(most_steps, steps_of(m.stages[s].tree));
        }
        records = 0;
        slots = records + rounded((piece + 2 * parts_of_draws * most_leaves) * sizeof(uint64_t));
        leaves = slots + rounded(piece * sizeof(uint32_t));
        steps = leaves + rounded(most_leaves * sizeof(Leaf));
        all = steps + rounded(most_steps * sizeof(Step));
    }

    static size_t steps_of(const shuf_mixture_tree &tree)
    {
        size_t all = 0;
        for (uint32_t leaf = 0; leaf < tree.leaves; leaf++)
            for (uint32_t at = leaf; at != 2 * tree.leaves - 2; at = tree.node[at].parent)
                all++;
        return all;
    }
};

/* The computation of a piece. */
struct Run {
    const shuf__mixture &m;
    const shuf__stage &stage;
    Layout layout;
    char *scratch;
    cudaStream_t stream;
    std::vector<uint32_t> order; /* of the leaves: that of their slots */
    std::vector<Step> steps;
    std::vector<Leaf> leaves;

    uint64_t *records() const
    {
        return reinterpret_cast<uint64_t *>(scratch + layout.records);
    }
};

/* The leaves from the left to the right. */
void order_leaves(Run &run)
{
    const shuf_mixture_tree &tree = run.stage.tree;
    std::vector<uint32_t> stack{2 * tree.leaves - 2};
    while (!stack.empty()) {
        const uint32_t at = stack.back();
        stack.pop_back();
        if (at < tree.leaves) {
            run.order.push_back(at);
            continue;
        }
        stack.push_back(tree.node[at].right);
        stack.push_back(tree.node[at].left);
    }
}

void add_path(Run &run, uint32_t leaf, Leaf *entry)
{
    const shuf_mixture_tree &tree = run.stage.tree;
    entry->step = static_cast<uint32_t>(run.steps.size());
    for (uint32_t at = leaf; at != 2 * tree.leaves - 2; at = tree.node[at].parent) {
        const shuf_mixture_node &parent = tree.node[tree.node[at].parent];
        const uint64_t of_left = tree.node[parent.left].weight;
        const auto weight = static_cast<double>(parent.weight);
        run.steps.push_back({parent.weight, of_left, parent.part, parent.whole,
                             static_cast<double>(of_left) / weight,
                             static_cast<double>(parent.part) / weight,
                             parent.left == at ? 1u : 0u});
    }
    std::reverse(run.steps.begin() + entry->step, run.steps.end());
    entry->steps = static_cast<uint32_t>(run.steps.size()) - entry->step;
}

/* A part of the draws of a source: `rows` epochs with the positions offset to offset + count - 1.
 */
cudaError_t draw(const Run &run, const shuf__data_set &source, uint64_t epoch, uint64_t rows,
                 uint64_t offset, uint64_t count, uint64_t at)
{
    shuf__permutation p{};
    if (rows * count == 0)
        return cudaSuccess;
    p.n = source.records;
    p.seed = source.key.word[0];
    p.seed_high = source.key.word[1];
    p.epoch = epoch;
    p.rows = rows;
    p.offset = offset;
    p.count = count;
    p.stride = 1;
    p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    return primefold_async(p, sizeof(uint64_t), run.records() + at, nullptr, run.stream);
}

/* Queues the records of a leaf in the piece. *room is the next free place, an even number. */
cudaError_t draw_leaf(Run &run, uint32_t leaf, const Piece &piece, uint64_t *room)
{
    const shuf__data_set &source = run.m.sources[run.stage.source[leaf]];
    Leaf entry{};
    add_path(run, leaf, &entry);
    entry.before = shuf_mixture_share(&run.stage.tree, leaf, piece.from);
    entry.first = source.first;
    const uint64_t draws = shuf_mixture_share(&run.stage.tree, leaf, piece.end) - entry.before;
    const uint64_t from = run.stage.before[leaf] + entry.before, n = source.records;
    const uint64_t epoch = from / n, offset = from % n;
    const uint64_t head = offset ? std::min(draws, n - offset) : 0, rows = (draws - head) / n;
    const uint64_t tail = draws - head - rows * n, next = epoch + (offset ? 1 : 0);
    const uint64_t counts[parts_of_draws] = {head, rows * n, tail};
    for (uint32_t part = 0; part < parts_of_draws; part++) {
        entry.at[part] = *room;
        *room += (counts[part] + 1) / 2 * 2;
    }
    entry.end[0] = head;
    entry.end[1] = head + rows * n;
    run.leaves.push_back(entry);
    cudaError_t e = draw(run, source, epoch, 1, offset, head, entry.at[0]);
    if (e == cudaSuccess)
        e = draw(run, source, next, rows, 0, n, entry.at[1]);
    return e == cudaSuccess ? draw(run, source, next + rows, 1, 0, tail, entry.at[2]) : e;
}

/* Queues the orders of blocks of `slots` positions. */
cudaError_t order_blocks(const Run &run, uint64_t slots, uint64_t number, uint64_t rows,
                         uint32_t *out)
{
    shuf__permutation p{};
    if (rows == 0 || slots == 0)
        return cudaSuccess;
    p.n = p.count = slots;
    p.seed = run.m.block_key.word[0];
    p.seed_high = run.m.block_key.word[1];
    p.epoch = run.stage.blocks + number;
    p.rows = rows;
    p.stride = 1;
    p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    return primefold_async(p, sizeof(uint32_t), out, nullptr, run.stream);
}

cudaError_t order_all_blocks(const Run &run, const Piece &piece, uint32_t *slots, uint32_t *last)
{
    const uint64_t whole = (piece.end - piece.from) / piece.block;
    const uint64_t number = piece.from / piece.block;
    const cudaError_t e = order_blocks(run, piece.block, number, whole, slots);
    return e == cudaSuccess
               ? order_blocks(run, (piece.end - piece.from) % piece.block, number + whole, 1, last)
               : e;
}

cudaError_t run_piece(Run &run, const Piece &piece, uint64_t *index)
{
    const Tables tables = {
        reinterpret_cast<const Leaf *>(run.scratch + run.layout.leaves),
        reinterpret_cast<const Step *>(run.scratch + run.layout.steps), run.records(),
        reinterpret_cast<const uint32_t *>(run.scratch + run.layout.slots), run.stage.tree.leaves};
    auto *const slots = reinterpret_cast<uint32_t *>(run.scratch + run.layout.slots);
    uint64_t room = 0;
    order_leaves(run);
    for (const uint32_t leaf : run.order) {
        const cudaError_t e = draw_leaf(run, leaf, piece, &room);
        if (e != cudaSuccess)
            return e;
    }
    cudaError_t e = order_all_blocks(run, piece, slots,
                                     slots + (piece.end - piece.from) / piece.block * piece.block);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(run.scratch + run.layout.leaves, run.leaves.data(),
                            run.leaves.size() * sizeof(Leaf), cudaMemcpyHostToDevice, run.stream);
    if (e == cudaSuccess && !run.steps.empty())
        e = cudaMemcpyAsync(run.scratch + run.layout.steps, run.steps.data(),
                            run.steps.size() * sizeof(Step), cudaMemcpyHostToDevice, run.stream);
    if (e != cudaSuccess)
        return e;
    const uint32_t bytes = 2 * sizeof(uint32_t) * tables.leaves;
    const uint32_t warps = std::min(warps_most, shared_most / bytes);
    const uint64_t blocks = (piece.end - piece.from - 1) / piece.block + 1;
    take_places<<<blocks_for(blocks, warps), 32 * warps, bytes * warps, run.stream>>>(tables, piece,
                                                                                      index);
    return cudaGetLastError();
}

} // namespace

size_t mixture_bytes(const shuf__mixture *m, uint64_t count)
{
    return Layout(*m, count).all;
}

cudaError_t mixture_async(const shuf__mixture &m, uint64_t first, uint64_t count, uint64_t *index,
                          void *scratch, cudaStream_t stream)
try {
    for (uint64_t done = 0, part; done < count; done += part) {
        const struct shuf__mixture_block begin = shuf__mixture_block(&m, first + done);
        const shuf__stage &stage = *begin.stage;
        Piece piece{};
        piece.from = begin.from;
        piece.end = std::min(stage.length, begin.from + piece_of(m, count));
        piece.first = first + done - stage.first;
        part = piece.count = std::min(count - done, piece.end - piece.first);
        piece.end = std::min(piece.end, (piece.first + part + m.block - 1) / m.block * m.block);
        piece.block = m.block;
        Run run{m, stage, Layout(m, count), static_cast<char *>(scratch), stream, {}, {}, {}};
        const cudaError_t e = run_piece(run, piece, index + done);
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
} catch (const std::bad_alloc &) {
    return cudaErrorMemoryAllocation;
}

} // namespace shuf
