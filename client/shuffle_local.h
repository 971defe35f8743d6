/* SPDX-License-Identifier: MIT
 *
 * A shuffle in this process: the daemon computes only the permutation, and needs no memory for the
 * records.
 */
#ifndef SHUF__SHUFFLE_LOCAL_H
#define SHUF__SHUFFLE_LOCAL_H

#include "handle.h"

/* Moves all records from `in` to `out`. The arguments are checked. *result as of a shuffle by the
 * daemon. */
shuf_status shuf__shuffle_local(shuf *handle, const shuf_records *records, const void *in,
                                void *out, shuf_result *result);

/* The same, but passes the records to `sink` in order. Not with records->inverse. */
shuf_status shuf__shuffle_local_each(shuf *handle, const shuf_records *records, const void *in,
                                     shuf_sink sink, void *context, shuf_result *result);

#endif
