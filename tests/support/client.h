/* SPDX-License-Identifier: MIT
 *
 * A client of the daemon of harness.h, for tests of libshuf: its handle, its errors, and the
 * comparison of a whole permutation.
 */
#ifndef SHUF__TEST_CLIENT_H
#define SHUF__TEST_CLIENT_H

#include "shuf.h"
#include "support/harness.h"

/* Connects; fails the test if it cannot. */
shuf *client_open(void);

/* Expects that a call gave this status, and a message with these words. */
void client_expect(shuf *handle, shuf_status got, shuf_status expected, const char *words);

/* Requests the permutation into memory and compares all of it. Any thread or process may call
 * it. */
bool client_check(shuf *handle, const shuf_request *request);

#endif
