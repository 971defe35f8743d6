/* SPDX-License-Identifier: MIT
 *
 * A peer that lives in Python: a script of bench/peers, which prints one JSON object.
 */
#ifndef SHUF__BENCH_PYTHON_PEER_H
#define SHUF__BENCH_PYTHON_PEER_H

#include "report.h"

#include <jansson.h>

/* Runs the script with the arguments (ended by NULL). NULL when the peer is not there, which the
 * report then says; else the object, to be freed by json_decref(). */
json_t *python_peer_run(struct report *report, const char *script, const char *const *arguments);

/* A member that is a list of numbers: how many, and a copy to be freed. */
size_t python_peer_numbers(const json_t *object, const char *member, double **numbers);

#endif
