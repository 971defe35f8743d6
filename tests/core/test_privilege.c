/* SPDX-License-Identifier: MIT
 *
 * The overflow ids are read once. Other users may set many locks on their files, and each close()
 * of a file searches its locks.
 */
#include "identity.h"

#include "support/cmocka_all.h"

#include <stdio.h>
#include <unistd.h>

/* The reads of files that this process has made. */
static unsigned long count_reads(void)
{
    unsigned long reads = 0;
    FILE *file = fopen("/proc/self/io", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "rchar: %*u wchar: %*u syscr: %lu", &reads), 1);
    fclose(file);
    return reads;
}

static void ids_are_read_once(void **state)
{
    enum { CALLS = 1000, OWN_READS = 4 };
    (void)state;
    assert_false(shuf__uid_is_overflow(0) || shuf__gid_is_overflow(0));
    const unsigned long before = count_reads();
    for (unsigned i = 0; i < CALLS; i++)
        assert_false(shuf__uid_is_overflow(i) || shuf__gid_is_overflow(i));
    assert_true(count_reads() - before <= OWN_READS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids_are_read_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
