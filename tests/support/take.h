/* SPDX-License-Identifier: MIT
 *
 * Leases of buffers and of shuffles.
 */
#ifndef SHUF__TEST_TAKE_H
#define SHUF__TEST_TAKE_H

#include "shuf.h"

static inline shuf_status take_buffer(shuf *handle, uint64_t bytes,
                                      const shuf_lease_options *options, shuf_lease **lease)
{
    const shuf_request request = {SHUF_BUFFER, .bytes = bytes};
    return shuf_lease_take(handle, &request, options, lease);
}

static inline shuf_status take_shuffle(shuf *handle, const shuf_records *records,
                                       const shuf_lease *input, const shuf_lease_options *options,
                                       shuf_lease **lease)
{
    shuf_request request = {SHUF_RECORDS, .records = *records};
    request.records.input = input;
    return shuf_lease_take(handle, &request, options, lease);
}

#endif
