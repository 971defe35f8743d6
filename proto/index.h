/* SPDX-License-Identifier: MIT
 *
 * What an Index request may ask: by the same rules on both sides, so that the
 * client library refuses in the daemon's words, before anything is sent.
 */
#ifndef SHUF__INDEX_H
#define SHUF__INDEX_H

#include "error.h"
#include "message.h"

#include <stddef.h>
#include <stdint.h>

/* Positions in one request. They and their reply fit a frame, beside everything else in it. */
enum { SHUF__INDEX_MAX = 8000 };

/* n, and that every at[i] is below it. */
shuf_status shuf__index_check(uint64_t n, const uint64_t *at, size_t count,
                              struct shuf__error *error);

/* The same of a request, and how many it has. The algorithm's name is not looked at. */
shuf_status shuf__index_check_request(const Shuf__Index *request, struct shuf__error *error);

#endif
