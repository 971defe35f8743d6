/* SPDX-License-Identifier: MIT
 *
 * See view.h. Values are read by the library, wherever they are.
 */
#include "view.h"

enum { CHUNK = 1 << 20 };

static shuf_status pass(shuf *daemon, const shuf_lease *lease, shuf_sink sink, void *context)
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

/* Compares `count` values from value `first` on with what was told of them. */
static shuf_status compare(shuf *daemon, const shuf_lease *lease, uint64_t first, unsigned count,
                           const uint64_t *told, bool *right)
{
    unsigned width = lease->result.shape.width;
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0; /* little-endian: fewer bytes fill its low end */
        shuf_status status = shuf_lease_read(daemon, lease, (first + i) * width, width, &value);
        if (status != SHUF_OK)
            return status;
        *right = *right && value == told[i];
    }
    return SHUF_OK;
}

static shuf_status compare_ends(shuf *daemon, const shuf_lease *lease, bool *right)
{
    const shuf_result *r = &lease->result;
    *right = true;
    shuf_status status = compare(daemon, lease, 0, r->heads, r->head, right);
    if (status == SHUF_OK)
        status = compare(daemon, lease, r->shape.rows * r->shape.count - r->tails, r->tails,
                         r->tail, right);
    return status;
}

shuf_status shuf__view_read(shuf *daemon, const struct shuf__order *order, shuf_sink sink,
                            void *context, struct shuf__view *view)
{
    const shuf_lease_options how = {.transports = order->transport};
    shuf_lease *lease = NULL;
    shuf_status status = order->numbers ? shuf_draw_lease(daemon, order->numbers, &how, &lease)
                                        : shuf_lease_take(daemon, order->permutation, &how, &lease);
    if (status != SHUF_OK)
        return status;
    status = compare_ends(daemon, lease, &view->right);
    if (status == SHUF_OK && sink)
        status = pass(daemon, lease, sink, context);
    view->lease = *lease;
    if (status != SHUF_OK)
        return status; /* the handle's end is the lease's: releasing would replace the message */
    return shuf_lease_release(daemon, lease);
}
