/* SPDX-License-Identifier: MIT
 *
 * Large rows of primefold on the GPU, which are made unwatched and then corrected: what has to be
 * corrected is looked at whole, against the inline C, and the rest at random.
 */
#include "cuda/permute.cuh"

extern "C" {
#include "support/cmocka_all.h"
#include "support/random.h"
}

#include <cstdio>
#include <vector>

namespace
{

void check(cudaError_t e)
{
    if (e != cudaSuccess)
        fail_msg("%s", cudaGetErrorString(e));
}

shuf__job job_of(uint64_t n, uint64_t offset, uint64_t count, uint32_t width)
{
    shuf__job job{};
    job.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    job.n = n;
    job.offset = offset;
    job.count = count;
    job.rows = job.stride = 1;
    job.seed = random_u64();
    job.epoch = random_u64();
    job.width = width;
    return job;
}

/* The position that leads to x after maps 0 to r, before the fold. */
uint64_t position_before(const shuf_primefold &f, unsigned r, uint64_t x)
{
    for (unsigned k = r + 1; k-- > 0;) {
        if (k < r)
            x = shuf_primefold_unfold(&f, k, x);
        const uint64_t minus = k == 0 ? f.shape.p - f.addend : 0;
        x = shuf__multiply_mod((x + minus) % f.shape.p, f.inverse[k], f.shape.p);
    }
    return x;
}

template <typename Value> struct Row {
    shuf__job job;
    shuf_primefold f;
    std::vector<Value> value;

    Row(uint64_t n, uint64_t offset, uint64_t count)
        : job(job_of(n, offset, count, sizeof(Value))),
          f(shuf_primefold_make(n, job.seed, job.epoch)), value(count)
    {
        shuf_primefold_make_inverse(&f);
        Value *device;
        const uint64_t bytes = count * sizeof(Value);
        check(cudaMalloc(&device, bytes));
        check(cudaMemset(device, 0xff, bytes));
        check(shuf::primefold_async(job, device, nullptr, nullptr));
        check(cudaMemcpy(value.data(), device, bytes, cudaMemcpyDeviceToHost));
        check(cudaFree(device));
    }

    bool has(uint64_t position) const
    {
        return position < job.n && position - job.offset < job.count;
    }

    void expect(uint64_t position) const
    {
        const uint64_t expected = shuf_primefold_forward(&f, position);
        if (value[position - job.offset] != expected)
            fail_msg("n %llu, seed %llu, epoch %llu, position %llu: %llu, expected %llu",
                     (unsigned long long)job.n, (unsigned long long)job.seed,
                     (unsigned long long)job.epoch, (unsigned long long)position,
                     (unsigned long long)value[position - job.offset],
                     (unsigned long long)expected);
    }
};

/* All numbers up to 1100 and from `whole` on after every map, some of the values that are walked
 * on, some at random. */
template <typename Value>
void check_row(uint64_t n, uint64_t offset, uint64_t count, bool is_corrected = true)
{
    const Row<Value> row(n, offset, count);
    assert_int_equal(shuf::primefold_is_corrected(row.job), is_corrected);
    const shuf_primefold_shape &s = row.f.shape;
    uint64_t met = 0;
    for (unsigned r = 0; r < s.maps; r++)
        for (uint64_t x = 0; x < s.p; x = x == 1100 && s.whole > x ? s.whole : x + 1) {
            const uint64_t position = position_before(row.f, r, x);
            if (row.has(position)) {
                row.expect(position);
                met++;
            }
        }
    if (count == n)
        assert_in_range(met, 1000 * s.maps, UINT64_MAX);
    for (uint64_t x = s.n; x < s.p; x += 1 + (s.p - s.n) / 5000) {
        const uint64_t position = position_before(row.f, s.maps - 1, x);
        if (row.has(position))
            row.expect(position);
    }
    row.expect(offset);
    row.expect(offset + count - 1);
    for (int i = 0; i < 50000; i++)
        row.expect(offset + random_below(count));
}

void whole(void **)
{
    random_start("whole");
    constexpr uint64_t one = 1;
    for (uint64_t n : {one << 22, (one << 22) + 1, (one << 22) + 1024, (one << 24) + 998,
                       (one << 26) - 5, (one << 26) + 15, (one << 29) + 1, uint64_t{1000000000},
                       (one << 30) - 35, (one << 31) - (one << 23), (one << 31) - (one << 23) + 1})
        check_row<uint32_t>(n, 0, n);
    check_row<uint64_t>((one << 28) + 998, 0, (one << 28) + 998);
}

void slices(void **)
{
    random_start("slices");
    constexpr uint64_t n = 1000000000, large = 1 << 22;
    check_row<uint32_t>(n, 0, large, false); /* there would be more to correct than values */
    check_row<uint32_t>((1u << 30) + 1, 7, large - 1, false);
    check_row<uint32_t>(n, n / 2 + 1, n / 3);
    check_row<uint32_t>(n, n - 200000001, 200000001);
    check_row<uint64_t>((1u << 30) + 1, 12345, large + 1);
    check_row<uint32_t>((1u << 30) + 1, (1u << 30) + 1 - large, large);
}

/* Nothing is lost or doubled by the corrections. */
void each_value_once(void **)
{
    random_start("each_value_once");
    const uint64_t n = (1u << 28) + (1u << 21) - random_below(1000);
    const Row<uint32_t> row(n, 0, n);
    std::vector<bool> seen(n);
    for (uint32_t value : row.value) {
        assert_in_range(value, 0, n - 1);
        assert_false(seen[value]);
        seen[value] = true;
    }
}

} // namespace

int main()
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "no GPU\n");
        return 77;
    }
    const CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(slices),
        cmocka_unit_test(each_value_once),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
