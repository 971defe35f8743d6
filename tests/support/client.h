/* SPDX-License-Identifier: MIT
 *
 * A client of the daemon that harness.h shares, for tests of libshuf: its handle, its
 * errors, and a permutation compared as a whole.
 */
#ifndef SHUF__TEST_CLIENT_H
#define SHUF__TEST_CLIENT_H

#include "harness.h"
#include "shuf.h"

/* Connected, or the test has failed. */
shuf *client_open(void);

/* A call gave this status, and a message with these words in it. */
void client_expect(shuf *handle, shuf_status got, shuf_status expected, const char *words);

/* Asks into memory and compares all of it; usable in any thread or process. */
bool client_check(shuf *handle, const shuf_permutation *request);

#endif
