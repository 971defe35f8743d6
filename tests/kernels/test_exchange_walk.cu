/* SPDX-License-Identifier: MIT
 *
 * The kernels of plans for few ranks, compared with the inline C. A plan of a large n would take
 * long on the host, so these tests evaluate some neighbouring positions of each n.
 */
#include "cuda/exchange_walk.cuh"
#include "host/primefold_shape.h"

#include "support/device_tests.cuh"

extern "C" {
#include "support/random.h"
}

#include <algorithm>
#include <numeric>
#include <vector>

namespace
{

using namespace shuf;
using Numbers = std::vector<uint64_t>;

template <typename T> class Device
{
  public:
    explicit Device(size_t count) : count_(count)
    {
        check(cudaMalloc(&memory, (count ? count : 1) * sizeof(T)));
        check(cudaMemset(memory, 0xee, (count ? count : 1) * sizeof(T)));
    }
    ~Device()
    {
        cudaFree(memory);
    }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    void copy_from(const std::vector<T> &values)
    {
        check(cudaMemcpy(memory, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    std::vector<T> values() const
    {
        std::vector<T> values(count_);
        check(cudaMemcpy(values.data(), memory, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }
    T *memory;

  private:
    size_t count_;
};

/* A permutation, its values at some positions, and the ends of the parts of its ranks. */
struct Job {
    shuf__permutation p{};
    shuf_primefold_shape shape;
    walk::Positions positions;
    Numbers value, ends;

    Job(uint64_t n, uint64_t world, Direction direction)
        : shape(shuf__primefold_shape(n)), value(std::min(n, 100000 + random_below(100000)))
    {
        p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
        p.n = n;
        p.seed = random_u64();
        p.epoch = random_below(9);
        positions = {random_below(2) ? random_below(n - value.size() + 1) : n - value.size(),
                     value.size()};
        shuf_primefold f = shuf_primefold_make(n, p.seed, p.epoch);
        shuf_primefold_make_inverse(&f);
        for (uint64_t i = 0; i < value.size(); i++) {
            const uint64_t x = positions.first + i;
            value[i] = direction == Direction::forward ? shuf_primefold_forward(&f, x)
                                                       : shuf_primefold_inverse(&f, x);
        }
        for (uint64_t r = 1; r < world; r++)
            ends.push_back(random_below(n));
        ends.push_back(n);
        std::sort(ends.begin(), ends.end());
    }
    uint64_t first(uint64_t rank) const
    {
        return rank ? ends[rank - 1] : 0;
    }
    bool has(uint64_t rank, uint64_t x) const
    {
        return x >= first(rank) && x < ends[rank];
    }
    template <typename Word> walk::Range<Word> range(uint64_t rank) const
    {
        return {static_cast<Word>(first(rank)), static_cast<Word>(ends[rank] - first(rank))};
    }
};

template <typename Number>
void expect(const char *what, const Job &job, const Numbers &expected, const Device<Number> &device)
{
    const std::vector<Number> values = device.values();
    for (size_t i = 0; i < expected.size(); i++)
        if (values[i] != expected[i])
            fail_msg("%s, n %llu, seed %llu, epoch %llu: number %zu is %llu, expected %llu", what,
                     (unsigned long long)job.p.n, (unsigned long long)job.p.seed,
                     (unsigned long long)job.p.epoch, i, (unsigned long long)values[i],
                     (unsigned long long)expected[i]);
}

template <typename Number, typename Form>
void check_select(const Job &job, const Form &f, typename Form::Word step, uint64_t rank)
{
    const auto range = job.range<typename Form::Word>(rank);
    Numbers expected;
    for (const uint64_t x : job.value)
        if (job.has(rank, x))
            expected.push_back(x - job.first(rank));
    Device<Number> list(expected.size());
    Device<uint64_t> total(3);
    total.copy_from({0, 0, 0});
    uint64_t *before = total.memory;
    /* Two launches, as for an n above tuning::walk_positions. */
    const uint64_t begin = job.positions.first, half = 1 + random_below(job.positions.count - 1);
    for (const walk::Positions part : {walk::Positions{begin, half},
                                       walk::Positions{begin + half, job.positions.count - half}}) {
        const unsigned tiles = blocks_for(part.count, walk::select_tile<Number>);
        size_t bytes = 0;
        walk::TileState state;
        walk::TileState::AllocationSize(static_cast<int>(tiles), bytes);
        Device<char> states(bytes);
        check(state.Init(static_cast<int>(tiles), states.memory, bytes));
        walk::begin_tiles<<<blocks_for(tiles, fold_threads), fold_threads>>>(
            state, static_cast<int>(tiles));
        walk::select_range<<<tiles, fold_threads>>>(f, step, part, range, state, before++,
                                                    list.memory);
        check(cudaDeviceSynchronize());
    }
    assert_int_equal(total.values()[2], expected.size());
    expect("order", job, expected, list);
}

template <typename Number, typename Form>
void check_split(const Job &job, const Form &f, typename Form::Word step)
{
    const auto world = static_cast<uint32_t>(job.ends.size());
    const walk::Positions &part = job.positions;
    walk::Ranges<typename Form::Word> ranges{{}, world};
    Numbers expected;
    for (uint32_t r = 0; r < world; r++) {
        ranges.range[r] = job.range<typename Form::Word>(r);
        for (uint64_t i = 0; i < part.count; i++)
            if (job.has(r, job.value[i]))
                expected.push_back(i);
    }
    assert_int_equal(expected.size(), part.count);
    const unsigned tiles = blocks_for(part.count, walk::split_tile);
    Device<uint64_t> counts(uint64_t{tiles} * walk::warps * world);
    Device<Number> lists(part.count);
    walk::count_ranges<<<tiles, fold_threads>>>(f, step, part, ranges, counts.memory);
    Numbers begins = counts.values();
    std::exclusive_scan(begins.begin(), begins.end(), begins.begin(), uint64_t{0});
    counts.copy_from(begins);
    walk::split_ranges<<<tiles, fold_threads>>>(f, step, part, ranges, counts.memory, lists.memory);
    check(cudaDeviceSynchronize());
    expect("places", job, expected, lists);
}

template <Direction direction> void check_size(uint64_t n)
{
    for (uint64_t world = 1; world <= tuning::split_ranks; world += 1 + random_below(3)) {
        const Job job(n, world, direction);
        const cudaError_t e = with_form<direction>(job.shape, [&](auto of) {
            const auto f = of.make(job.p, job.shape);
            const auto step = walk::step_of(f, job.shape);
            const uint64_t rank = random_below(world);
            if (job.ends[rank] - job.first(rank) < uint64_t{1} << 32)
                check_select<uint32_t>(job, f, step, rank);
            check_select<uint64_t>(job, f, step, rank);
            check_split<uint32_t>(job, f, step);
            check_split<uint64_t>(job, f, step);
            return cudaGetLastError();
        });
        check(e);
    }
}

/* Each form, the bounds between the forms, and sizes next to their prime and far from it. */
constexpr uint64_t sizes[] = {257,
                              5000,
                              65521,
                              100003,
                              (uint64_t{1} << 21) + 1,
                              (uint64_t{1} << 21) + 2000,
                              uint64_t{1} << 30,
                              (uint64_t{1} << 30) + 9999,
                              (uint64_t{1} << 31) - 10000000,
                              (uint64_t{1} << 31) - 1,
                              uint64_t{1} << 31,
                              uint64_t{3000000019},
                              (uint64_t{1} << 32) - (uint64_t{1} << 24),
                              (uint64_t{1} << 32) - (uint64_t{1} << 23),
                              (uint64_t{1} << 32) - 1,
                              uint64_t{1} << 32,
                              (uint64_t{1} << 33) + 77,
                              (uint64_t{1} << 38) - (uint64_t{1} << 33),
                              (uint64_t{1} << 38) + 1,
                              uint64_t{1} << 62};

void forward(void **)
{
    random_start("forward");
    for (const uint64_t n : sizes)
        check_size<Direction::forward>(n);
}

void inverse(void **)
{
    random_start("inverse");
    for (const uint64_t n : sizes)
        check_size<Direction::inverse>(n);
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(forward),
        cmocka_unit_test(inverse),
    };
    return run_device_tests(tests);
}
