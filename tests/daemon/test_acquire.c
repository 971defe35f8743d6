/* SPDX-License-Identifier: MIT
 *
 * A search for memory asks the kernel which idle blocks are mapped. It does not ask about thousands
 * of blocks again for each request that is refused.
 */
#include "memory/allocations.h"

static bool ask(const struct shuf__allocation *allocation);
#define shuf__allocation_is_unmapped ask
#include "memory/acquire.c"
#undef shuf__allocation_is_unmapped

#include "support/cmocka_all.h"

enum { BLOCKS = 1000, BYTES = 4096 };

static struct shuf__allocations allocations;
static struct shuf__pool pool;
static struct shuf__allocation blocks[BLOCKS];
static unsigned asked;
static uint64_t question_ns; /* CPU time of one question */
static bool is_mapped[BLOCKS];

static bool ask(const struct shuf__allocation *allocation)
{
    const uint64_t begin = shuf__reading_thread_ns();
    while (shuf__reading_thread_ns() - begin < question_ns)
        ;
    asked++;
    return !is_mapped[allocation - blocks];
}

/* ---- A full budget of idle blocks ---- */

static int start(void **state)
{
    struct shuf__budget *budget = &allocations.budgets[SHUF__SIDE_HOST];
    (void)state;
    shuf__accounts_init(&allocations.accounts);
    pool = (struct shuf__pool){.allocations = &allocations};
    for (int side = 0; side < SHUF__SIDES; side++)
        TAILQ_INIT(&pool.lru[side]);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = (struct shuf__allocation){
            .all = &allocations, .bytes = BYTES, .kind = SHUF__MEMORY_MEMFD, .contents = blocks};
        TAILQ_INSERT_TAIL(&pool.lru[SHUF__SIDE_HOST], &blocks[i], in_lru);
        is_mapped[i] = true;
    }
    budget->used = budget->limit = (uint64_t)BLOCKS * BYTES;
    allocations.count = BLOCKS;
    allocations.max_count = 2 * BLOCKS;
    asked = 0;
    question_ns = 0;
    return 0;
}

static struct shuf__need need_of_blocks(uint64_t count)
{
    return (struct shuf__need){
        .uid = SHUF__UID_DAEMON, .kind = SHUF__MEMORY_MEMFD, .size = count * BYTES};
}

/* Whether so many more blocks would fit. */
static bool search_for(uint64_t count)
{
    const struct shuf__need need = need_of_blocks(count);
    struct shuf__freed freed = {0};
    return could_evict(&pool, &need, true, &freed);
}

static bool search(void)
{
    return search_for(1);
}

/* ---- Tests ---- */

/* A walk takes 100 ms, so the next one would be allowed 20 s later. */
static void slow_walks_do_not_ask_about_mapped_blocks_again(void **state)
{
    (void)state;
    question_ns = 100000;
    assert_false(search());
    assert_int_equal(asked, BLOCKS);
    for (int i = 0; i < 10; i++)
        assert_false(search());
    assert_int_equal(asked, BLOCKS);
}

static void slow_walks_do_not_ask_about_unmapped_blocks_again(void **state)
{
    (void)state;
    question_ns = 100000;
    for (int i = 0; i < BLOCKS / 2; i++)
        is_mapped[i] = false;
    for (int i = 0; i < 10; i++)
        assert_false(search_for(BLOCKS / 2 + 1));
    assert_int_equal(asked, BLOCKS);
}

/* All idle blocks together are too small, so the kernel is not asked at all. */
static void hopeless_requests_ask_nothing(void **state)
{
    (void)state;
    const struct shuf__need all = need_of_blocks(BLOCKS), more = need_of_blocks(BLOCKS + 1);
    allocations.budgets[SHUF__SIDE_HOST].limit += 10 * BYTES;
    allocations.budgets[SHUF__SIDE_HOST].used += 10 * BYTES;
    pool.idle_count[SHUF__SIDE_HOST] = BLOCKS;
    pool.idle_bytes[SHUF__SIDE_HOST] = (uint64_t)BLOCKS * BYTES;
    assert_true(may_suffice(&pool, &all));
    assert_false(may_suffice(&pool, &more));
    assert_int_equal(asked, 0);
}

static void a_reported_block_is_asked_about(void **state)
{
    (void)state;
    question_ns = 100000;
    assert_false(search());
    is_mapped[BLOCKS / 2] = false;
    blocks[BLOCKS / 2].found = SHUF__FOUND_NOTHING;
    assert_true(search());
    assert_int_equal(asked, BLOCKS + 1);
}

static void quick_walks_ask_each_time(void **state)
{
    (void)state;
    assert_false(search());
    pool.mapped_reading = (struct shuf__reading){0}; /* however slow this machine is */
    is_mapped[BLOCKS - 1] = false;
    assert_true(search());
    assert_int_equal(asked, 2 * BLOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(slow_walks_do_not_ask_about_mapped_blocks_again, start),
        cmocka_unit_test_setup(slow_walks_do_not_ask_about_unmapped_blocks_again, start),
        cmocka_unit_test_setup(hopeless_requests_ask_nothing, start),
        cmocka_unit_test_setup(a_reported_block_is_asked_about, start),
        cmocka_unit_test_setup(quick_walks_ask_each_time, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
