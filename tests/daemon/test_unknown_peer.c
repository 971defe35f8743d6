/* SPDX-License-Identifier: MIT
 *
 * Connections whose user the kernel does not tell. Such a client would have no limits, or the
 * rights of another user.
 */
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <stdlib.h>

static void client_of_unknown_user_is_refused(void **state)
{
    struct harness h;
    const char *library = getenv("SHUF_NO_PEER");
    (void)state;
    assert_non_null(library);
    assert_int_equal(setenv("LD_PRELOAD", library, 1), 0);
    const bool started = harness_start(&h, "cpu", NULL);
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    assert_true(started);
    struct wire *w = wire_open(&h);
    wire_expect(w, SHUF_IO,
                "the user of the connection cannot be read: No buffer space available; try again");
    wire_close(w);
    assert_true(harness_stop(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_of_unknown_user_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
