/* SPDX-License-Identifier: MIT
 *
 * The common part of the CPU benchmarks: the processor, and options that are integers.
 */
#ifndef SHUF__BENCH_PROCESSOR_H
#define SHUF__BENCH_PROCESSOR_H

#include "report.h"

#include <stdint.h>

/* An integer from 1 to `most`, such as 1000000 or 1e6. Ends the process with one line if it is
 * not. */
uint64_t processor_number(const char *option, const char *text, double most);

/* Adds the processor's name and the backend's instruction set to the report, as facts. */
void processor_say(struct report *report);

#endif
