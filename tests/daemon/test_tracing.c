/* SPDX-License-Identifier: MIT
 *
 * The trace of a daemon: the ranges of NVTX, which a fake tool receives, and the probes in the
 * program's ELF notes.
 */
#include "support/shufd.h"
#include "support/wire.h"

#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- ranges ---- */

#ifdef NVTX_TOOL

static unsigned count_of(const char *text, const char *line)
{
    unsigned count = 0;
    for (; (text = strstr(text, line)) != NULL; text++)
        count++;
    return count;
}

static void nvtx_ranges_match_requests(void **state)
{
    (void)state;
    struct harness h;
    char path[] = "/tmp/shuf-ranges-XXXXXX", text[8192];
    struct shuf__result_message large = wire_permutation(3000000, SHUF__TRANSPORT__TRANSPORT_NONE);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    setenv("NVTX_INJECTION64_PATH", NVTX_TOOL, 1);
    setenv("SHUF_TEST_RANGES", path, 1);
    assert_true(harness_start(&h, harness_backend, NULL));
    unsetenv("NVTX_INJECTION64_PATH");
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &large);
    wire_expect(w, SHUF_OK, "");
    wire_check_alive(w); /* this result is small and needs no new memory */
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
    shufd_read(path, text, sizeof text);
    unlink(path);
    assert_true(count_of(text, "shufd: compute\n") >= 1);
    assert_true(count_of(text, "shufd: free\n") >= 1);
    assert_int_equal(count_of(text, "shufd: "), count_of(text, ".\n"));
}

#endif

/* ---- probes ---- */

#ifdef SHUF_HAVE_SDT

static void usdt_probes_are_present(void **state)
{
    (void)state;
    static const char *const names[] = {"request_received", "request_cancelled", "reply_sent",
                                        "job_begin", "job_end"};
    char line[256];
    unsigned found = 0;
    FILE *notes = popen("readelf -n " SHUFD_PATH, "re");
    assert_non_null(notes);
    for (bool is_own = false; fgets(line, sizeof line, notes);) {
        if (strstr(line, "Provider: "))
            is_own = strstr(line, "Provider: shufd\n") != NULL;
        for (unsigned i = 0; is_own && i < sizeof names / sizeof *names; i++) {
            char name[64];
            snprintf(name, sizeof name, " Name: %s\n", names[i]);
            found |= (unsigned)(strstr(line, name) != NULL) << i;
        }
    }
    assert_int_equal(pclose(notes), 0);
    assert_int_equal(found, (1u << sizeof names / sizeof *names) - 1);
}

#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#ifdef NVTX_TOOL
        cmocka_unit_test(nvtx_ranges_match_requests),
#endif
#ifdef SHUF_HAVE_SDT
        cmocka_unit_test(usdt_probes_are_present),
#endif
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
