/* SPDX-License-Identifier: MIT
 *
 * A GPU against the CPU at sizes where a 32-bit index or count would go wrong:
 * the whole permutation, by fingerprint, in every kind of memory. It takes minutes and 35 GB of
 * host memory, so it is registered for the GPU alone and skipped where either is missing.
 */
#include "support/cmocka_all.h"
#include "support/jobs.h"

#include <stdio.h>
#include <stdlib.h>

enum { SKIPPED = 77 };

static struct shuf__backend *cpu;

static uint64_t run(struct shuf__backend *on, enum shuf__memory kind, const struct shuf__job *job)
{
    struct shuf__error error = {0};
    struct shuf__block block;
    uint64_t ns, fingerprint = 0, values = jobs_values(job);
    uint64_t units = (values * job->width + SHUF__BLOCK_UNIT - 1) / SHUF__BLOCK_UNIT;
    if (on->ops->alloc(on, kind, units * SHUF__BLOCK_UNIT, &block, &error) ||
        shuf__backend_permute(on, job, &block, &ns, &error) ||
        on->ops->fingerprint(on, &block, job->width, values, &fingerprint, &error))
        fail_msg("%s: %s", on->ops->name, error.text);
    on->ops->free(on, &block);
    printf("%s n=%llu width %u: %016llx\n", on->ops->name, (unsigned long long)job->n, job->width,
           (unsigned long long)fingerprint);
    return fingerprint;
}

static void compare(const struct shuf__job *job)
{
    uint64_t expected = run(cpu, SHUF__MEMORY_MEMFD, job);
    while (jobs_next_kind())
        assert_int_equal(run(backend, jobs_kind, job), expected);
}

static void compare_whole(uint64_t n)
{
    struct shuf__job job = jobs_whole(SHUF_ALGORITHM_PHILOX24, n, 7, 0);
    compare(&job);
}

static void past_31_bits(void **state)
{
    (void)state;
    compare_whole((UINT64_C(1) << 31) + 1);
}

static void past_32_bits(void **state)
{
    (void)state;
    compare_whole((UINT64_C(1) << 32) + 1);
}

/* Rows of many tiles over several launches. */
static void batch_of_long_rows(void **state)
{
    (void)state;
    struct shuf__job job = jobs_whole(SHUF_ALGORITHM_PHILOX24, (UINT64_C(1) << 26) + 1, 7, 0);
    job.rows = 40;
    compare(&job);
}

/* A padded shard of each row, whose last value stands at its front. */
static void batch_of_wrapping_shards(void **state)
{
    (void)state;
    struct shuf__job job = jobs_whole(SHUF_ALGORITHM_PHILOX24, (UINT64_C(1) << 32) + 1, 7, 0);
    job.rows = 2;
    job.offset = 999;
    job.stride = 1000;
    job.count = job.n / job.stride + 1;
    compare(&job);
}

static bool has_memory(struct shuf__backend *on, enum shuf__memory kind, uint64_t bytes)
{
    uint64_t available, total;
    struct shuf__error error = {0};
    if (on->ops->memory(on, kind, &available, &total, &error) != SHUF_OK || available < bytes) {
        fprintf(stderr, "%s: less than %llu bytes of memory\n", on->ops->name,
                (unsigned long long)bytes);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(past_31_bits),
        cmocka_unit_test(past_32_bits),
        cmocka_unit_test(batch_of_long_rows),
        cmocka_unit_test(batch_of_wrapping_shards),
    };
    const uint64_t needed = UINT64_C(36) << 30;
    backend = jobs_open(argc == 2 ? argv[1] : "");
    cpu = jobs_open("cpu");
    int result = SKIPPED;
    if (has_memory(backend, backend->ops->own, needed) &&
        has_memory(cpu, SHUF__MEMORY_MEMFD, needed))
        result = cmocka_run_group_tests(tests, NULL, NULL) != 0;
    backend->ops->close(backend);
    cpu->ops->close(cpu);
    return result;
}
