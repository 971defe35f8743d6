/* SPDX-License-Identifier: MIT
 *
 * Functions that the parts of fault_client share. See client.c.
 */
#ifndef FAULT_CLIENT_H
#define FAULT_CLIENT_H

#include "shuf.h"
#include "shuf/primefold.h"

#include <stdbool.h>
#include <stdint.h>

enum { N = 1000, SEED = 7, RECORD = 8 };

/* Ends the program with the exit status of a wrong value. */
_Noreturn void wrong(const char *what);

/* Whether a call succeeded. Prints the status and the message of a failed one, and notes it for the
 * exit status. */
bool succeeded(shuf *h, shuf_status status, const char *what);

/* The permutation of most requests: [0, N) with SEED, as u32. */
extern const shuf_request permutation;
void check_values(const uint32_t *values, uint32_t n, const char *what);
void check_permutation(const uint32_t *values, const char *what);

/* Records of N numbers, and a check of them after their shuffle. */
extern const shuf_records records;
void fill_records(uint64_t in[N]);
void check_shuffled(const uint64_t *out, const char *what);

/* Calls that copy results or ask the daemon. */
void copy_results(shuf *h);
void use_key(shuf *h);

/* Calls that lease results. */
void lease_results(shuf *h);
void lease_from_device(shuf *h);

#endif
