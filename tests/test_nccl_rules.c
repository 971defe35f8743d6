/* SPDX-License-Identifier: MIT
 *
 * The rules of libshuf-nccl that need neither NCCL nor a GPU: the slices of rounds, their number,
 * and the checks of the reports.
 */
#include "agreement.h"
#include "rounds.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <string.h>

/* The slices of all rounds cover all records, and the first is the longest. */
static void slices_cover(void **state)
{
    (void)state;
    random_start("slices_cover");
    for (int i = 0; i < 1000; i++) {
        const uint64_t count = random_size(UINT64_C(1) << 62), rounds = random_size(100);
        uint64_t end = 0;
        for (uint64_t round = 0; round < rounds; round++) {
            const uint64_t records = shuf__nccl_slice_count(count, round, rounds);
            assert_int_equal(shuf__nccl_slice(count, round, rounds), end);
            assert_true(records <= shuf__nccl_slice_count(count, 0, rounds));
            end += records;
        }
        assert_int_equal(end, count);
    }
}

static uint64_t count_rounds(const uint64_t counts[3], uint64_t record, uint64_t budget)
{
    struct shuf__nccl_segment leaving[3] = {{counts[0], 0, 0}, {counts[1], 0, 0}};
    struct shuf__nccl_segment coming[3] = {{counts[2], 0, 0}};
    return shuf__nccl_count_rounds(leaving, coming, 3, record, budget);
}

static void rounds_fit(void **state)
{
    (void)state;
    const uint64_t counts[3] = {1000, 500, 700}, none[3] = {0};
    assert_int_equal(count_rounds(none, 8, 1), 2);
    assert_int_equal(count_rounds(counts, 8, 1 << 20), 2);
    assert_int_equal(count_rounds(counts, 8, 2 * 8 * 1100), 2); /* 500 + 250 + 350 */
    assert_int_equal(count_rounds(counts, 8, 2 * 8 * 1099), 3); /* 334 + 167 + 234 */
    assert_int_equal(count_rounds(counts, 8, 2 * 8 * 3), 1000);
    assert_int_equal(count_rounds(counts, 8, 1), 1000); /* one record of each, though too many */
}

/* ---- Reports ------------------------------------------------------------------- */

static const shuf_nccl_request request = {.seed = 7, .record = 8, .input = 2, .output = 2};

static void describe_all(struct shuf__nccl_report reports[3])
{
    static char in[16], out[16];
    for (int r = 0; r < 3; r++)
        shuf__nccl_describe(&request, in, out, &reports[r]);
}

static void expect(const struct shuf__nccl_report reports[3], const char *text)
{
    struct shuf__error error = {.status = SHUF_OK};
    shuf__nccl_check_arguments(reports, 3, &error);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, text[0] ? SHUF_INVALID : SHUF_OK);
}

static void reports_agree(void **state)
{
    (void)state;
    struct shuf__nccl_report reports[3];
    describe_all(reports);
    expect(reports, "");
    assert_int_equal(shuf__nccl_sum_inputs(reports, 3), 6);
    reports[1].rounds = 9;
    assert_int_equal(shuf__nccl_most_rounds(reports, 3), 9);
}

/* Another version is reported before anything else, because its other fields may differ. */
static void reports_differ(void **state)
{
    (void)state;
    struct shuf__nccl_report reports[3];
    describe_all(reports);
    reports[2].seed = 8;
    expect(reports, "rank 2: seed 8: expected 7, as on rank 0");
    reports[1].status = SHUF_INVALID;
    strcpy(reports[1].error, "record 0: expected at least 1 byte");
    expect(reports, "rank 1: record 0: expected at least 1 byte");
    reports[2].version = 2;
    expect(reports, "rank 2: version 2: expected 1, as on rank 0");
}

static void sizes_differ(void **state)
{
    (void)state;
    struct shuf__nccl_report reports[3];
    describe_all(reports);
    reports[1].output = 3;
    expect(reports, "output: sizes with the sum 7, expected 6, the sum of the inputs");
    reports[0].input = reports[1].input = UINT64_C(1) << 63;
    expect(reports, "rank 1: the sizes up to this rank have a sum above 2^64");
}

/* A long message is cut, and stays a string. */
static void failures_are_cut(void **state)
{
    (void)state;
    struct shuf__nccl_report report = {.version = 1};
    struct shuf__error error = {.status = SHUF_DEVICE};
    memset(error.text, 'x', sizeof error.text - 1);
    shuf__nccl_report_failure(&error, &report);
    assert_int_equal(report.status, SHUF_DEVICE);
    assert_int_equal(strlen(report.error), sizeof report.error - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_cover),  cmocka_unit_test(rounds_fit),
        cmocka_unit_test(reports_agree), cmocka_unit_test(reports_differ),
        cmocka_unit_test(sizes_differ),  cmocka_unit_test(failures_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
