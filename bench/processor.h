/* SPDX-License-Identifier: MIT
 *
 * What the benchmarks of the CPU backend have in common: the processor, and options that are whole
 * numbers.
 */
#ifndef SHUF__BENCH_PROCESSOR_H
#define SHUF__BENCH_PROCESSOR_H

#include "report.h"

#include <stdint.h>

/* From 1 to `most`, also written 1e6; ends the process with one line where it is not. */
uint64_t processor_number(const char *option, const char *text, double most);

/* Its name and the instruction set that the backend chooses, as facts of the report. */
void processor_say(struct report *report);

#endif
