/* SPDX-License-Identifier: MIT
 *
 * torch, for stream_cuda.h.
 */
#include "process.h"
#include "python_peer.h"
#include "stream_cuda.h"

#include <stdio.h>
#include <stdlib.h>

static void torch_row(struct report *report, const json_t *row)
{
    char label[64];
    double *ns;
    const uint64_t n = (uint64_t)json_integer_value(json_object_get(row, "n"));
    const uint64_t width = (uint64_t)json_integer_value(json_object_get(row, "width"));
    const size_t samples = python_peer_numbers(row, "ns", &ns);
    snprintf(label, sizeof label, "torch normal_ %s",
             json_string_value(json_object_get(row, "number")));
    report_add(report, label, n, n, "values", n * width, ns, samples);
    free(ns);
}

void torch_rows(struct report *report, const uint64_t *sizes, size_t count)
{
    enum { MOST = 8 };
    char text[MOST][32];
    const char *arguments[MOST + 2] = {"--n"};
    size_t i;
    json_t *row;
    for (i = 0; i < count && i < MOST; i++) {
        snprintf(text[i], sizeof text[i], "%llu", (unsigned long long)sizes[i]);
        arguments[1 + i] = text[i];
    }
    json_t *reply = python_peer_run(report, "torch_normal.py", arguments);
    if (!reply)
        return;
    report_fact(report, "torch", json_string_value(json_object_get(reply, "torch")));
    json_array_foreach(json_object_get(reply, "rows"), i, row) torch_row(report, row);
    json_decref(reply);
}
