/* SPDX-License-Identifier: MIT
 *
 * The values do not depend on who computes them: with every host_results, a daemon sends the golden
 * values for results in host memory, for copies and for summaries.
 */
#include "support/cmocka_all.h"
#include "support/wire.h"

#include "shuf/fingerprint.h"
#include "shuf/primefold.h"

#include <stdlib.h>

static struct harness h;
static struct wire *w;

/* The values, and their fingerprint. */
static uint32_t *expect(uint64_t n, uint64_t *fingerprint)
{
    const shuf_primefold f = shuf_primefold_make(n, 7, 0);
    uint32_t *values = malloc(n * sizeof *values);
    assert_non_null(values);
    *fingerprint = 0;
    for (uint64_t i = 0; i < n; i++) {
        values[i] = (uint32_t)shuf_primefold_forward(&f, i);
        *fingerprint += shuf_fingerprint_term(i, values[i]);
    }
    return values;
}

static void check_copy(uint64_t n, const uint32_t *expected)
{
    uint32_t *values = malloc(n * sizeof *values);
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    assert_non_null(values);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_read_payload(w, values, n * sizeof *values);
    assert_memory_equal(values, expected, n * sizeof *values);
    free(values);
}

static void check_lease(uint64_t n, const uint32_t *expected)
{
    const Shuf__ResultReply *reply = wire_lease(w, n, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    const uint64_t lease = reply->lease, block = reply->block, bytes = reply->block_bytes;
    const void *values = wire_map(w, bytes);
    assert_memory_equal(values, expected, n * sizeof *expected);
    wire_unmap(values, bytes);
    wire_release(w, lease, block);
}

static void check_summary(uint64_t n, uint64_t fingerprint)
{
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_NONE);
    permute.delivery.fingerprint = true;
    wire_send_result(w, &permute);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->result->fingerprint, fingerprint);
}

static void values_are_equal_everywhere(void **state)
{
    static const char *const places[] = {"auto", "host", "device"};
    static const uint64_t sizes[] = {1, 1000, 5000, 100000, 3000000};
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        const char *extra[] = {"--host-results", places[p], "--cache-time", "0", NULL};
        assert_true(harness_start(&h, harness_backend, extra));
        w = wire_greet(&h);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            uint64_t fingerprint;
            uint32_t *expected = expect(sizes[i], &fingerprint);
            check_summary(sizes[i], fingerprint);
            check_copy(sizes[i], expected);
            check_lease(sizes[i], expected);
            free(expected);
        }
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_equal_everywhere),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
