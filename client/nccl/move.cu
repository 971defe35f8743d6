/* SPDX-License-Identifier: MIT
 *
 * See move.h. The threads move words, the widest that divide the record and both addresses.
 */
#include "move.h"

#include <algorithm>

namespace
{

constexpr unsigned threads = 256, words_of_thread = 4;
constexpr uint64_t most_blocks = 1 << 20;

using Move = struct shuf__nccl_move;

template <typename Number> __device__ __forceinline__ uint64_t find(const void *list, uint64_t at)
{
    return list ? static_cast<const Number *>(list)[at] : at;
}

/* Count is the type that counts the words of a slice: dividing 64-bit numbers takes long. */
template <typename Word, typename Number, typename Count>
__global__ void __launch_bounds__(threads) move_words(const Move m, const Count units)
{
    const shuf__nccl_segment segment = m.segments[blockIdx.y];
    const uint64_t begin = shuf__nccl_slice(segment.count, m.round, m.rounds);
    const uint64_t from = segment.from + (m.in_list ? begin : 0);
    const uint64_t to = segment.to + (m.out_list ? begin : 0);
    const Count words =
        static_cast<Count>(shuf__nccl_slice_count(segment.count, m.round, m.rounds) * units);
    const Word *const in = static_cast<const Word *>(m.in);
    Word *const out = static_cast<Word *>(m.out);
    const Count step = static_cast<Count>(gridDim.x) * threads;
    for (Count t = static_cast<Count>(blockIdx.x) * threads + threadIdx.x; t < words; t += step) {
        const Count k = units == 1 ? t : t / units;
        const Count part = t - k * units;
        const uint64_t source = find<Number>(m.in_list, from + k);
        const uint64_t target = find<Number>(m.out_list, to + k);
        out[target * units + part] = in[source * units + part];
    }
}

template <typename Word, typename Number> cudaError_t launch(const Move &m, cudaStream_t stream)
{
    const uint64_t units = m.record / sizeof(Word), words = m.most * units;
    const uint64_t blocks = words / (threads * words_of_thread) + 1;
    const dim3 grid(static_cast<unsigned>(std::min(blocks, most_blocks)), m.segment_count);
    if (words < UINT64_C(1) << 31)
        move_words<Word, Number, uint32_t>
            <<<grid, threads, 0, stream>>>(m, static_cast<uint32_t>(units));
    else
        move_words<Word, Number, uint64_t><<<grid, threads, 0, stream>>>(m, units);
    return cudaGetLastError();
}

template <typename Word> cudaError_t launch_word(const Move &m, cudaStream_t stream)
{
    return m.width == 4 ? launch<Word, uint32_t>(m, stream) : launch<Word, uint64_t>(m, stream);
}

} // namespace

cudaError_t shuf__nccl_move(const struct shuf__nccl_move *move, cudaStream_t stream)
{
    const uint64_t odd = reinterpret_cast<uintptr_t>(move->in) |
                         reinterpret_cast<uintptr_t>(move->out) | move->record | sizeof(uint4);
    if (move->most == 0)
        return cudaSuccess;
    switch (odd & (~odd + 1)) {
    case 1:
        return launch_word<uint8_t>(*move, stream);
    case 2:
        return launch_word<uint16_t>(*move, stream);
    case 4:
        return launch_word<uint32_t>(*move, stream);
    case 8:
        return launch_word<uint64_t>(*move, stream);
    default:
        return launch_word<uint4>(*move, stream);
    }
}
