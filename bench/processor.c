/* SPDX-License-Identifier: MIT
 *
 * See processor.h.
 */
#include "processor.h"

#include "backend.h"
#include "process.h"

#include <math.h>
#include <stdlib.h>

uint64_t processor_number(const char *option, const char *text, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 1 && value <= most) || value != floor(value))
        die("%s: %s: expected an integer from 1 to %.0f, such as 1e6", option, text, most);
    return (uint64_t)value;
}

void processor_say(struct report *report)
{
    struct shuf__backend *backend;
    struct shuf__error error;
    if (shuf__backend_open("cpu", 0, &backend, &error))
        die("%s", error.text);
    report_fact(report, "device", backend->device);
    report_fact(report, "instruction set", backend->device_id);
    backend->ops->close(backend);
}
