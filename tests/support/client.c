/* SPDX-License-Identifier: MIT
 *
 * See client.h.
 */
#include "support/client.h"

#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/expected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

shuf *client_open_at(const struct harness *h)
{
    shuf *handle;
    if (shuf_connect(&handle, h->socket) != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    return handle;
}

shuf *client_open(void)
{
    return client_open_at(&harness_shared);
}

void client_expect(const shuf *handle, shuf_status got, shuf_status expected, const char *words)
{
    if (got != expected || !strstr(shuf_message(handle), words))
        fail_msg("status %s, expected %s, '%s': %s", shuf_status_name(got),
                 shuf_status_name(expected), words, shuf_message(handle));
}

void client_expect_ok(const shuf *handle, shuf_status got)
{
    client_expect(handle, got, SHUF_OK, "");
}

void client_count_lost(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)done;
    (void)all;
    *(unsigned *)context += event == SHUF_EVENT_LOST;
}

bool client_check(shuf *handle, const shuf_request *request)
{
    shuf_shape shape;
    shuf_result result;
    uint64_t count;
    if (shuf_shape_of(request, &shape, NULL, 0) != SHUF_OK)
        return false;
    uint64_t *values = expected_values(request, &count);
    void *out = malloc(shape.bytes + 1);
    bool right = out && count == shape.rows * shape.count && count * shape.width == shape.bytes &&
                 shuf_copy(handle, request, out, shape.bytes, &result) == SHUF_OK &&
                 expected_equal(values, out, shape.width, count);
    if (!right)
        fprintf(stderr, "n %llu: %s\n", (unsigned long long)request->permutation.n,
                shuf_message(handle));
    free(values);
    free(out);
    return right;
}

/* ---- Metrics. A missing sample fails the test ---- */

static char *read_text(const struct harness *h, shuf_metrics_format format)
{
    shuf *handle;
    char *text;
    assert_int_equal(shuf_connect(&handle, h->socket), SHUF_OK);
    assert_int_equal(shuf_daemon_metrics(handle, format, &text), SHUF_OK);
    shuf_close(handle);
    return text;
}

char *metrics_read(const struct harness *h)
{
    return read_text(h, SHUF_PROMETHEUS);
}

char *metrics_read_openmetrics(const struct harness *h)
{
    return read_text(h, SHUF_OPENMETRICS);
}

double metrics_value(const char *text, const char *sample)
{
    const size_t length = strlen(sample);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, sample, length) == 0 && line[length] == ' ')
            return strtod(line + length, NULL);
    }
    print_message("no sample %s in\n%s", sample, text);
    fail();
    return 0;
}

double metrics_read_value(const struct harness *h, const char *sample)
{
    char *text = metrics_read(h);
    const double value = metrics_value(text, sample);
    free(text);
    return value;
}
