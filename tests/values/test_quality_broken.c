/* SPDX-License-Identifier: MIT
 *
 * The generators `broken-primefold` and `broken-gauss` repeat the bits of former, broken versions.
 * The rows below were recorded from those versions: some values, and a hash of each sample. They
 * never change.
 */
#include "generator.h"
#include "stream.h"
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Seed 7, epoch 3: the first four values, and a hash of all. */
static const struct {
    uint32_t n, first[4];
    uint64_t hash;
} rows[] = {
    {97, {71, 62, 79, 49}, UINT64_C(0xd2e47b73a2ca0eec)},
    {257, {102, 38, 69, 183}, UINT64_C(0x9afcc3d32c53e800)},
    {1000, {502, 57, 789, 123}, UINT64_C(0xa9c40fd648e8a85c)},
    {65536, {50811, 12085, 28271, 52636}, UINT64_C(0xa5bd3acba67fe2e8)},
    {1048576, {234647, 464295, 830981, 1031075}, UINT64_C(0x6aa992828507c6a0)},
};

static void broken_primefold_values_are_fixed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _Alignas(64) unsigned char made[SHUF__GENERATOR_STATE] = {0};
        uint32_t *row = malloc(rows[i].n * sizeof *row);
        uint64_t hash = 0;
        assert_non_null(row);
        shuf__generator_broken_primefold.make(made, rows[i].n, 7, 3, 0);
        shuf__generator_broken_primefold.fill(made, rows[i].n, row);
        assert_memory_equal(row, rows[i].first, sizeof rows[i].first);
        for (uint32_t k = 0; k < rows[i].n; k++)
            hash = hash_word(hash, row[k]);
        assert_true(hash == rows[i].hash);
        free(row);
    }
}

/* Seed 7, stream 3, 1024 values from 5 x 2^40: the first value, the last, and a hash of all. */
static const struct {
    double first, last;
    uint64_t hash;
} streams[SHUF__DTYPES] = {
    [SHUF_F64] = {-0x1.129b433c9a0bbp+0, -0x1.a7186fd0ffba3p-4, UINT64_C(0xf8d40b9f959f33dd)},
    [SHUF_F32] = {-0x1.129b3ap+0, -0x1.a71868p-4, UINT64_C(0xe90c24ad60000000)},
    [SHUF_F16] = {-0x1.128p+0, -0x1.a7p-4, UINT64_C(0x3c5ac00000000000)},
    [SHUF_BF16] = {-0x1.12p+0, -0x1.a8p-4, UINT64_C(0x7bd5a00000000000)},
};

static void broken_gauss_values_are_fixed(void **state)
{
    (void)state;
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        double value[SHUF__SUPERBLOCK];
        uint64_t hash = 0;
        shuf__stream_broken_gauss.fill(7, 3, dtype, UINT64_C(5) << 40, SHUF__SUPERBLOCK, value);
        assert_true(value[0] == streams[dtype].first);
        assert_true(value[SHUF__SUPERBLOCK - 1] == streams[dtype].last);
        for (unsigned k = 0; k < SHUF__SUPERBLOCK; k++) {
            uint64_t bits;
            memcpy(&bits, &value[k], sizeof bits);
            hash = hash_word(hash, bits);
        }
        assert_true(hash == streams[dtype].hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_primefold_values_are_fixed),
        cmocka_unit_test(broken_gauss_values_are_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
