/* SPDX-License-Identifier: MIT
 *
 * Jobs that end on the loop, without a lane, and jobs that wait for memory.
 */
#include "memory/allocations.h"

#include "support/cmocka_all.h"

#include <malloc.h>
#include <string.h>
#include <time.h>

enum { JOBS = 5 };

static struct {
    unsigned done[JOBS];
    struct shuf__engine_job job[JOBS];
} all;

static void ignore(void *context)
{
    (void)context;
}

static void ignore_failure(void *context, const struct shuf__error *error)
{
    (void)context;
    (void)error;
}

static enum shuf__begin fail_begin(struct shuf__engine_job *job)
{
    (void)job;
    return SHUF__BEGIN_FAILED;
}

static bool has_room;

static enum shuf__begin begin_in_room(struct shuf__engine_job *job)
{
    (void)job;
    return has_room ? SHUF__BEGIN_FAILED : SHUF__BEGIN_LATER;
}

/* Takes longer than the loop gives to the ends of jobs at a time. */
static void note_end(struct shuf__engine_job *job)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    all.done[job - all.job]++;
}

static struct shuf__engine *start(uv_loop_t *loop)
{
    const struct shuf__engine_options options = {.backend = "cpu:scalar",
                                                 .threads = 1,
                                                 .queue = JOBS,
                                                 .idle = ignore,
                                                 .device_failed = ignore_failure};
    struct shuf__engine *engine;
    struct shuf__error error = {0};
    assert_int_equal(uv_loop_init(loop), 0);
    assert_int_equal(shuf__engine_start(&engine, loop, &options, &error), SHUF_OK);
    return engine;
}

static void stop(struct shuf__engine *engine, uv_loop_t *loop)
{
    shuf__engine_stop(engine);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

static unsigned ended(void)
{
    unsigned count = 0;
    for (int i = 0; i < JOBS; i++)
        count += all.done[i];
    return count;
}

/* The user of a job has no other jobs and is forgotten while the job waits for its `done`. */
static void job_that_failed_to_begin_can_be_cancelled(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct shuf__error error = {0};
    struct shuf__engine *engine = start(&loop);
    for (int i = 0; i < JOBS; i++) {
        all.job[i] = (struct shuf__engine_job){.uid = 7, .begin = fail_begin, .done = note_end};
        assert_int_equal(shuf__engine_submit(engine, &all.job[i], &error), SHUF_OK);
    }
    while (ended() == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_true(ended() < JOBS);
    shuf__engine_cancel(&all.job[JOBS - 1]);
    while (ended() < JOBS)
        uv_run(&loop, UV_RUN_ONCE);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(all.done[i], 1);
    stop(engine, &loop);
}

static void turn_for_a_while(uv_loop_t *loop)
{
    for (int i = 0; i < 100; i++) {
        uv_run(loop, UV_RUN_NOWAIT);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* A job found too few descriptors. A reload gives it more, and no block is being freed. */
static void job_begins_again_when_the_limit_of_blocks_rises(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct shuf__error error = {0};
    struct shuf__engine *engine = start(&loop);
    struct shuf__allocations allocations = {.engine = engine};
    memset(all.done, 0, sizeof all.done);
    all.job[0] = (struct shuf__engine_job){.uid = 7, .begin = begin_in_room, .done = note_end};
    assert_int_equal(shuf__engine_submit(engine, &all.job[0], &error), SHUF_OK);
    turn_for_a_while(&loop);
    has_room = true;
    assert_int_equal(ended(), 0);
    shuf__allocations_limit_count(&allocations, 1);
    assert_int_equal(allocations.max_count, 1);
    turn_for_a_while(&loop);
    assert_int_equal(ended(), 1);
    stop(engine, &loop);
}

int main(void)
{
    mallopt(M_PERTURB, 0x55); /* freed memory is no valid object */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_that_failed_to_begin_can_be_cancelled),
        cmocka_unit_test(job_begins_again_when_the_limit_of_blocks_rises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
