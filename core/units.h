/* SPDX-License-Identifier: MIT
 *
 * Quantities as short texts for people, with three or four digits and a unit.
 */
#ifndef SHUF__UNITS_H
#define SHUF__UNITS_H

#include <stdint.h>

enum { SHUF__UNITS_TEXT = 32 };

/* "1.234 ms", "4 min 39 s", "3 h 5 min", "2 d 4 h"; "4.00 GB"; "95.1 M values/s" ("-" when the time
 * is 0). */
const char *shuf__units_time(char text[SHUF__UNITS_TEXT], uint64_t ns);
const char *shuf__units_bytes(char text[SHUF__UNITS_TEXT], uint64_t bytes);
/* Memory of the daemon, in binary units like its settings and errors: a limit of 1Gi is printed as
 * "1 GiB". */
const char *shuf__units_memory(char text[SHUF__UNITS_TEXT], uint64_t bytes);
const char *shuf__units_rate(char text[SHUF__UNITS_TEXT], uint64_t values, uint64_t ns);

#endif
