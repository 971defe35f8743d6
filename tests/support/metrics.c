/* SPDX-License-Identifier: MIT
 *
 * See metrics.h.
 */
#include "support/metrics.h"

#include "shuf.h"
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
