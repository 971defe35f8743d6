/* SPDX-License-Identifier: MIT
 *
 * Where a report comes from: the commit, the date, the command and the device.
 */
#ifndef SHUF__QUALITY_PROVENANCE_H
#define SHUF__QUALITY_PROVENANCE_H

#include <jansson.h>

/* Keeps the command line for the report. Argument 0, a path, becomes "shuf-quality". */
void shuf__provenance_begin(int argc, char **argv);

/* The backend and the device that count. Without this call they are "cpu" and the processor. */
void shuf__provenance_device(const char *backend, const char *device);

/* Adds commit, date, backend, device and command. The command is empty without
 * shuf__provenance_begin(). */
void shuf__provenance_json(json_t *object);

#endif
