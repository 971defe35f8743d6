/* SPDX-License-Identifier: MIT
 *
 * See transport.h; and the names.
 */
#include "transport.h"

static const struct {
    shuf_transport transport;
    const char *name;
} transports[SHUF__TRANSPORTS] = {
    {SHUF_INLINE, "inline"},
    {SHUF_MEMFD, "memfd"},
    {SHUF_CUDA_FD, "cuda-fd"},
    {SHUF_CUDA_IPC, "cuda-ipc"},
};

_Static_assert((int)SHUF_INLINE == (int)SHUF__TRANSPORT__TRANSPORT_INLINE &&
                   (int)SHUF_MEMFD == (int)SHUF__TRANSPORT__TRANSPORT_MEMFD &&
                   (int)SHUF_CUDA_FD == (int)SHUF__TRANSPORT__TRANSPORT_CUDA_FD &&
                   (int)SHUF_CUDA_IPC == (int)SHUF__TRANSPORT__TRANSPORT_CUDA_IPC,
               "the public transports are the wire's");

const char *shuf_transport_name(shuf_transport transport)
{
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++)
        if (transports[i].transport == transport)
            return transports[i].name;
    return "none";
}

bool shuf__transport_in(unsigned set, Shuf__Transport transport)
{
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++)
        if ((int)transports[i].transport == (int)transport)
            return set & 1U << transport;
    return false;
}

shuf_status shuf__transport_list(unsigned set, Shuf__Transport list[SHUF__TRANSPORTS],
                                 size_t *count, struct shuf__error *error)
{
    unsigned rest = set;
    *count = 0;
    for (size_t i = 0; i < SHUF__TRANSPORTS; i++) {
        unsigned bit = 1U << transports[i].transport;
        if (!(set & bit))
            continue;
        list[(*count)++] = (Shuf__Transport)transports[i].transport;
        rest &= ~bit;
    }
    if (*count > 0 && rest == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "transports 0x%x: expected a sum of 1 << INLINE, MEMFD, CUDA_FD or CUDA_IPC",
                      set);
}
