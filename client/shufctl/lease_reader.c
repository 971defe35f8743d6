/* SPDX-License-Identifier: MIT
 *
 * See lease_reader.h. The library reads the values, in host or in device memory.
 */
#include "lease_reader.h"

enum { CHUNK = 1 << 20 };

static shuf_status read_chunks(shuf *daemon, const shuf_lease *lease, shuf_sink sink, void *context)
{
    static char chunk[CHUNK];
    uint64_t all = lease->result.shape.bytes;
    for (uint64_t done = 0; done < all;) {
        size_t size = all - done < sizeof chunk ? (size_t)(all - done) : sizeof chunk;
        shuf_status status = shuf_lease_read(daemon, lease, done, size, chunk);
        if (status != SHUF_OK)
            return status;
        if (!sink(context, chunk, size))
            return SHUF_CANCELLED;
        done += size;
    }
    return SHUF_OK;
}

/* Compares `count` values, from number `first` on, with those of the reply. */
static shuf_status compare_values(shuf *daemon, const shuf_lease *lease, uint64_t first,
                                  unsigned count, const uint64_t *expected, bool *match)
{
    unsigned width = lease->result.shape.width;
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0; /* little-endian: fewer bytes fill its low end */
        shuf_status status = shuf_lease_read(daemon, lease, (first + i) * width, width, &value);
        if (status != SHUF_OK)
            return status;
        *match = *match && value == expected[i];
    }
    return SHUF_OK;
}

static shuf_status compare_ends(shuf *daemon, const shuf_lease *lease, bool *match)
{
    const shuf_result *r = &lease->result;
    *match = true;
    shuf_status status = compare_values(daemon, lease, 0, r->n_first, r->first, match);
    if (status == SHUF_OK)
        status = compare_values(daemon, lease, r->shape.rows * r->shape.count - r->n_last,
                                r->n_last, r->last, match);
    return status;
}

shuf_status shuf__read_by_lease(shuf *daemon, const struct shuf__output_options *options,
                                shuf_sink sink, void *context, struct shuf__lease_reading *reading)
{
    const shuf_lease_options lease_options = {.transports = options->transport};
    shuf_lease *lease = NULL;
    shuf_status status =
        options->numbers ? shuf_draw_lease(daemon, options->numbers, &lease_options, &lease)
                         : shuf_lease_take(daemon, options->permutation, &lease_options, &lease);
    if (status != SHUF_OK)
        return status;
    status = compare_ends(daemon, lease, &reading->ends_match);
    if (status == SHUF_OK && sink)
        status = read_chunks(daemon, lease, sink, context);
    reading->lease = *lease;
    if (status != SHUF_OK)
        return status; /* shuf_close() ends the lease; a release would replace the message */
    return shuf_lease_release(daemon, &lease);
}
