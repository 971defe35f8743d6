/* SPDX-License-Identifier: MIT
 *
 * See expected.h. Compaction keeps the order of the inputs, so either end follows from the inputs
 * at that end.
 */
#include "expected.h"

#include "shuf/philox24.h"

void expected_head(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *values)
{
    shuf_philox24 cipher = shuf_philox24_make(n, seed, epoch);
    for (uint64_t x = 0, kept = 0; kept < count; x++) {
        uint64_t value = shuf_philox24_forward(&cipher, x);
        if (value < n)
            values[kept++] = value;
    }
}

void expected_tail(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *values)
{
    shuf_philox24 cipher = shuf_philox24_make(n, seed, epoch);
    for (uint64_t x = UINT64_C(1) << shuf_domain_bits(n); count > 0;) {
        uint64_t value = shuf_philox24_forward(&cipher, --x);
        if (value < n)
            values[--count] = value;
    }
}

bool is_expected(const uint32_t *values, uint64_t n, uint64_t seed, uint64_t epoch)
{
    shuf_philox24 cipher = shuf_philox24_make(n, seed, epoch);
    for (uint64_t x = 0, place = 0; place < n; x++) {
        uint64_t value = shuf_philox24_forward(&cipher, x);
        if (value < n && value != values[place++])
            return false;
    }
    return true;
}
