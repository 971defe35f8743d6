/* SPDX-License-Identifier: MIT
 *
 * See transport_set.h.
 */
#include "transport_set.h"

static const struct {
    shuf_transport transport;
    Shuf__Transport wire;
    const char *name;
} transports[SHUF__TRANSPORTS] = {
    {SHUF_INLINE, SHUF__TRANSPORT__TRANSPORT_INLINE, "inline"},
    {SHUF_MEMFD, SHUF__TRANSPORT__TRANSPORT_MEMFD, "memfd"},
    {SHUF_CUDA_FD, SHUF__TRANSPORT__TRANSPORT_CUDA_FD, "cuda-fd"},
    {SHUF_CUDA_IPC, SHUF__TRANSPORT__TRANSPORT_CUDA_IPC, "cuda-ipc"},
};

const char *shuf_transport_name(shuf_transport transport)
{
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++)
        if (transports[i].transport == transport)
            return transports[i].name;
    return "none";
}

shuf_transport shuf__transport_of_wire(Shuf__Transport wire)
{
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++)
        if (transports[i].wire == wire)
            return transports[i].transport;
    return (shuf_transport)0;
}

bool shuf__transport_in(unsigned set, Shuf__Transport wire)
{
    return set & shuf__transport_of_wire(wire);
}

shuf_status shuf__transport_list(unsigned set, Shuf__Transport list[SHUF__TRANSPORTS],
                                 size_t *count, struct shuf__error *error)
{
    unsigned rest = set;
    *count = 0;
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++) {
        if (!(set & transports[i].transport))
            continue;
        list[(*count)++] = transports[i].wire;
        rest &= ~(unsigned)transports[i].transport;
    }
    if (*count > 0 && rest == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "transports 0x%x: expected one or more of SHUF_INLINE, SHUF_MEMFD, "
                      "SHUF_CUDA_FD and SHUF_CUDA_IPC",
                      set);
}
