/* SPDX-License-Identifier: MIT
 *
 * Large rows of primefold on the GPU, and large inverse shuffles. The GPU uses shortcuts that are
 * wrong for a few inputs, and then corrects these. The test compares all such inputs with the
 * inline C, and a random part of the others.
 */
#include "cuda/shuffle.cuh"

#include "support/device_tests.cuh"

extern "C" {
#include "support/random.h"
}

#include <vector>

namespace
{

shuf__permutation permutation_of(uint64_t n, uint64_t offset, uint64_t count)
{
    shuf__permutation p{};
    p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    p.n = n;
    p.offset = offset;
    p.count = count;
    p.rows = p.stride = 1;
    p.seed = random_u64();
    p.epoch = random_u64();
    return p;
}

/* Returns the position whose value is x after maps 0 to r, before fold r. */
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
    shuf__permutation p;
    shuf_primefold f;
    std::vector<Value> value;

    Row(uint64_t n, uint64_t offset, uint64_t count)
        : p(permutation_of(n, offset, count)), f(shuf_primefold_make(n, p.seed, p.epoch)),
          value(count)
    {
        shuf_primefold_make_inverse(&f);
        Value *device;
        const uint64_t bytes = count * sizeof(Value);
        check(cudaMalloc(&device, bytes));
        check(cudaMemset(device, 0xff, bytes));
        check(shuf::primefold_async(p, sizeof(Value), device, nullptr, nullptr));
        check(cudaMemcpy(value.data(), device, bytes, cudaMemcpyDeviceToHost));
        check(cudaFree(device));
    }

    bool has(uint64_t position) const
    {
        return position < p.n && position - p.offset < p.count;
    }

    void expect(uint64_t position) const
    {
        const uint64_t expected = shuf_primefold_forward(&f, position);
        if (value[position - p.offset] != expected)
            fail_msg("n %llu, seed %llu, epoch %llu, position %llu: %llu, expected %llu",
                     (unsigned long long)p.n, (unsigned long long)p.seed,
                     (unsigned long long)p.epoch, (unsigned long long)position,
                     (unsigned long long)value[position - p.offset], (unsigned long long)expected);
    }
};

/* Compares the positions whose value before some fold is at most 1100, or at least `whole`. Also
 * compares some positions with cycle walking, and random positions. */
template <typename Value>
void check_row(uint64_t n, uint64_t offset, uint64_t count, bool is_corrected = true)
{
    const Row<Value> row(n, offset, count);
    assert_int_equal(shuf::primefold_is_corrected(row.p), is_corrected);
    const shuf_primefold_shape &s = row.f.shape;
    uint64_t compared = 0;
    for (unsigned r = 0; r < s.maps; r++)
        for (uint64_t x = 0; x < s.p; x = x == 1100 && s.whole > x ? s.whole : x + 1) {
            const uint64_t position = position_before(row.f, r, x);
            if (row.has(position)) {
                row.expect(position);
                compared++;
            }
        }
    if (count == n)
        assert_in_range(compared, 1000 * s.maps, UINT64_MAX);
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

void whole_rows_match(void **)
{
    random_start("whole_rows_match");
    constexpr uint64_t one = 1;
    for (uint64_t n : {one << 22, (one << 22) + 1, (one << 22) + 1024, (one << 24) + 998,
                       (one << 26) - 5, (one << 26) + 15, (one << 29) + 1, uint64_t{1000000000},
                       (one << 30) - 35, (one << 31) - (one << 23), (one << 31) - (one << 23) + 1})
        check_row<uint32_t>(n, 0, n);
    check_row<uint64_t>((one << 28) + 998, 0, (one << 28) + 998);
}

void slices_match(void **)
{
    random_start("slices_match");
    constexpr uint64_t n = 1000000000, large = 1 << 22;
    /* Too many values of such a short slice would need a correction, so there is none. */
    check_row<uint32_t>(n, 0, large, false);
    check_row<uint32_t>((1u << 30) + 1, 7, large - 1, false);
    check_row<uint32_t>(n, n / 2 + 1, n / 3);
    check_row<uint32_t>(n, n - 200000001, 200000001);
    check_row<uint64_t>((1u << 30) + 1, 12345, large + 1);
    check_row<uint32_t>((1u << 30) + 1, (1u << 30) + 1 - large, large);
}

/* Every value occurs once after the corrections. */
void every_value_occurs_once(void **)
{
    random_start("every_value_occurs_once");
    const uint64_t n = (1u << 28) + (1u << 21) - random_below(1000);
    const Row<uint32_t> row(n, 0, n);
    std::vector<bool> seen(n);
    for (uint32_t value : row.value) {
        assert_in_range(value, 0, n - 1);
        assert_false(seen[value]);
        seen[value] = true;
    }
}

/* ---- Shuffles ---- */

__global__ void count_up(uint32_t *out, uint64_t count)
{
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        out[i] = static_cast<uint32_t>(i);
}

/* The inverse of a row: ascending numbers as records, moved by an inverse shuffle. */
struct Inverse {
    shuf__computation computation{};
    shuf__permutation p;
    shuf_primefold f;
    std::vector<uint32_t> position;

    Inverse(uint64_t n, bool with_windows)
        : p(permutation_of(n, 0, n)), f(shuf_primefold_make(n, p.seed, p.epoch)), position(n)
    {
        shuf__shuffle &s = computation.request.shuffle;
        computation.request.kind = SHUF__SHUFFLE;
        s.permutation = p;
        s.record = sizeof(uint32_t);
        s.inverse = true;
        shuf_primefold_make_inverse(&f);
        const uint64_t bytes = n * sizeof(uint32_t), best_bytes = shuf::shuffle_best_bytes(s);
        assert_int_not_equal(best_bytes, 0);
        uint32_t *in, *out;
        void *windows = nullptr, *list;
        check(cudaMalloc(&in, bytes));
        check(cudaMalloc(&out, bytes));
        check(cudaMalloc(&list, shuf::shuffle_list_bytes));
        if (with_windows)
            check(cudaMalloc(&windows, best_bytes));
        check(cudaMemset(out, 0xff, bytes));
        count_up<<<1024, 256>>>(in, n);
        bool cancelled;
        check(shuf::shuffle_async({}, computation, in, out, windows, list, nullptr, &cancelled));
        assert_false(cancelled);
        check(cudaMemcpy(position.data(), out, bytes, cudaMemcpyDeviceToHost));
        for (void *memory : {static_cast<void *>(in), static_cast<void *>(out), list, windows})
            check(cudaFree(memory));
    }

    void expect(uint64_t value) const
    {
        const uint64_t expected = shuf_primefold_inverse(&f, value);
        if (position[value] != expected)
            fail_msg("n %llu, seed %llu, epoch %llu, value %llu: position %llu, expected %llu",
                     (unsigned long long)p.n, (unsigned long long)p.seed,
                     (unsigned long long)p.epoch, (unsigned long long)value,
                     (unsigned long long)position[value], (unsigned long long)expected);
    }
};

/* Compares the values for which an inverse multiplication gives at most 1100 or at least `whole`.
 * No fold changes a number of at least `whole`. Also compares values with cycle walking, and random
 * values. */
void check_inverse(uint64_t n, bool with_windows)
{
    const Inverse row(n, with_windows);
    const shuf_primefold &f = row.f;
    const shuf_primefold_shape &s = f.shape;
    const uint64_t minus_addend = shuf__multiply_mod(s.p - f.addend, f.inverse[0], s.p);
    const auto expect_value_at = [&](uint64_t position) {
        row.expect(shuf_primefold_forward(&f, position));
    };
    for (uint64_t x = 0; x < s.p; x = x == 1100 ? s.whole : x + 1) {
        expect_value_at((x + minus_addend) % s.p);
        for (unsigned r = 1; r < s.maps; r++)
            expect_value_at(position_before(f, r - 1, shuf_primefold_unfold(&f, r - 1, x)));
    }
    for (uint64_t x = s.n; x < s.p; x += 1 + (s.p - s.n) / 5000)
        expect_value_at(x);
    for (int i = 0; i < 50000; i++)
        row.expect(random_below(n));
}

void inverse_shuffles_match(void **)
{
    random_start("inverse_shuffles_match");
    constexpr uint64_t one = 1;
    for (uint64_t n : {(one << 26) + 15, (one << 30) + 1, (one << 31) - (one << 23)}) {
        check_inverse(n, true);
        check_inverse(n, false);
    }
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(whole_rows_match),
        cmocka_unit_test(slices_match),
        cmocka_unit_test(every_value_occurs_once),
        cmocka_unit_test(inverse_shuffles_match),
    };
    return run_device_tests(tests);
}
