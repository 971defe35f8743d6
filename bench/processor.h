/* SPDX-License-Identifier: MIT
 *
 * The common part of the CPU benchmarks: the processor, and options that are integers.
 */
#ifndef SHUF__BENCH_PROCESSOR_H
#define SHUF__BENCH_PROCESSOR_H

#include "backend.h"
#include "process.h"
#include "report.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* An integer from 1 to `most`, such as 1000000 or 1e6. Ends the process with one line if it is
 * not. */
static inline uint64_t processor_number(const char *option, const char *text, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 1 && value <= most) || value != floor(value))
        die("%s: %s: expected an integer from 1 to %.0f, such as 1e6", option, text, most);
    return (uint64_t)value;
}

/* Adds the processor's name and the backend's instruction set to the report, as facts. */
static inline void processor_say(struct report *report)
{
    struct shuf__backend *backend;
    struct shuf__error error;
    if (shuf__backend_open("cpu", 0, &backend, &error))
        die("%s", error.text);
    report_fact(report, "device", backend->device);
    report_fact(report, "instruction set", backend->device_id);
    backend->ops->close(backend);
}

#endif
