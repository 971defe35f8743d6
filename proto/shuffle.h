/* SPDX-License-Identifier: MIT
 *
 * What Allocate, Write and Shuffle may ask: by the same rules on both sides, so that
 * the client library refuses in the daemon's words, before anything is sent.
 */
#ifndef SHUF__SHUFFLE_H
#define SHUF__SHUFFLE_H

#include "error.h"
#include "shuf.pb-c.h"
#include "shuf/algorithm.h"

#include <stdint.h>

enum { SHUF__WRITE_MAX = 60 * 1024 }; /* bytes of one Write: they fit a frame, beside all else */

/* n, record, and *bytes, which all the records have; the rest is not looked at. SHUF_INVALID. */
shuf_status shuf__shuffle_check(const Shuf__Shuffle *request, uint64_t *bytes,
                                struct shuf__error *error);

/* That the request's records are within the `has` bytes of its lease. */
shuf_status shuf__shuffle_check_input(const Shuf__Shuffle *request, uint64_t bytes, uint64_t has,
                                      struct shuf__error *error);

/* SHUF_INVALID, or SHUF_NO_MEMORY past 2^63. */
shuf_status shuf__allocate_check(uint64_t bytes, struct shuf__error *error);

/* That a part of `bytes` bytes is within the `has` of that lease. */
shuf_status shuf__write_check(uint64_t lease, uint64_t offset, uint64_t bytes, uint64_t has,
                              struct shuf__error *error);

#endif
