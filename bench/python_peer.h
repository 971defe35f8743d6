/* SPDX-License-Identifier: MIT
 *
 * A peer in Python: a script of bench/peers that prints one JSON object.
 */
#ifndef SHUF__BENCH_PYTHON_PEER_H
#define SHUF__BENCH_PYTHON_PEER_H

#include "report.h"

#include <jansson.h>

/* Runs the script with the arguments (ended by NULL). Returns its object, which the caller frees by
 * json_decref(). Returns NULL if the peer is not installed; the report then says so. */
json_t *python_peer_run(struct report *report, const char *script, const char *const *arguments);

/* A member that is a list of numbers. Returns their number, and a copy that the caller frees. */
size_t python_peer_numbers(const json_t *object, const char *member, double **numbers);

#endif
