/* SPDX-License-Identifier: MIT
 *
 * A client reports blocks as unmapped: right for each list of ids, and a report takes few steps
 * beside many mappings. Counts of mapped blocks ask the kernel about few of them.
 */
#include <search.h>

typedef int comparison(const void *, const void *);

static comparison *compare_uncounted;
static unsigned steps; /* mappings that a search looks at */

static int compare_counted(const void *a, const void *b)
{
    steps++;
    return compare_uncounted(a, b);
}

#define tfind(key, root, compare) \
    (compare_uncounted = (compare), (tfind)(key, root, compare_counted))
#include "memory/allocations.h"

static unsigned asked; /* blocks that the kernel is asked about */

static bool is_unmapped(const struct shuf__allocation *allocation)
{
    (void)allocation;
    asked++;
    return false;
}

#define shuf__allocation_is_unmapped is_unmapped
#include "memory/client_process.c"
#undef shuf__allocation_is_unmapped
#undef tfind

#include "support/cmocka_all.h"

enum { UID = 61000, MAPPINGS = 10000, IDS = 256, DEPTH = 28 };

static uv_loop_t loop;
static struct shuf__allocations allocations;
static struct shuf__process_watches watches;
static struct shuf__client client;
static struct shuf__allocation blocks[MAPPINGS];

/* ---- A client with mappings ---- */

static void map_again(struct shuf__allocation *block)
{
    bool fresh;
    struct shuf__error error;
    assert_int_equal(shuf__client_add_mapping(&client, block, &fresh, &error), SHUF_OK);
    assert_true(fresh);
}

static int start(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    shuf__accounts_init(&allocations.accounts);
    shuf__ids_init(&allocations.ids);
    shuf__process_watches_init(&watches, &loop, &allocations);
    client = (struct shuf__client){.all = &watches, .socket = -1, .uid = UID};
    client.process = shuf__process_of(&watches.processes, 0, UID);
    assert_non_null(client.process);
    for (uint64_t i = 0; i < MAPPINGS; i++) {
        blocks[i] = (struct shuf__allocation){.id = shuf__ids_next(&allocations.ids),
                                              .number = allocations.ids.last,
                                              .kind = SHUF__MEMORY_MEMFD};
        blocks[i].block.kind = SHUF__MEMORY_MEMFD;
        map_again(&blocks[i]);
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    shuf__client_detach(&client);
    assert_null(shuf__account_find(&allocations.accounts, UID));
    return uv_loop_close(&loop);
}

static uint64_t mappings(void)
{
    return shuf__account_find(&allocations.accounts, UID)->mappings;
}

static void report(const uint64_t *ids, size_t count)
{
    steps = 0;
    shuf__client_unmapped(&client, ids, count);
}

/* ---- Tests ---- */

static void unknown_ids_take_few_steps(void **state)
{
    uint64_t ids[IDS];
    (void)state;
    for (uint64_t i = 0; i < IDS; i++)
        ids[i] = shuf__ids_of(&allocations.ids, 2 * MAPPINGS + i);
    report(ids, IDS);
    assert_in_range(steps, IDS, IDS * DEPTH);
    assert_int_equal(mappings(), MAPPINGS);
}

static void known_ids_end_their_mappings(void **state)
{
    const uint64_t ids[] = {blocks[9000].id, 0, blocks[0].id, blocks[5].id, blocks[9000].id};
    (void)state;
    blocks[5].found = SHUF__FOUND_MAPPED;
    report(ids, 5);
    assert_int_equal(blocks[5].found, SHUF__FOUND_NOTHING);
    assert_int_equal(mappings(), MAPPINGS - 3);
    map_again(&blocks[0]);
    map_again(&blocks[5]);
    map_again(&blocks[9000]);
    report(ids, 0);
    assert_int_equal(mappings(), MAPPINGS);
}

static void many_pending_blocks_count_without_a_question(void **state)
{
    struct shuf__account *account = shuf__account_find(&allocations.accounts, UID);
    const struct shuf__reading never = {0};
    (void)state;
    for (unsigned i = 0; i < MAPPINGS; i++) {
        blocks[i].all = &allocations;
        blocks[i].account = account;
        blocks[i].bytes = 1;
        blocks[i].pending_free = true;
        LIST_INSERT_HEAD(&allocations.list, &blocks[i], link);
        allocations.pending_free_count++;
        if (i + 1 != MANY && i + 1 != MAPPINGS)
            continue;
        allocations.mapped_reading = never;
        asked = 0;
        shuf__mapped_bytes_read(&allocations);
        assert_int_equal(asked, i + 1 == MANY ? MANY : 0);
        assert_int_equal(account->mapped[SHUF__SIDE_HOST], i + 1);
    }
    for (unsigned i = 0; i < MAPPINGS; i++)
        blocks[i].pending_free = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_ids_take_few_steps),
        cmocka_unit_test(known_ids_end_their_mappings),
        cmocka_unit_test(many_pending_blocks_count_without_a_question),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
