/* SPDX-License-Identifier: MIT
 *
 * See copy_memory.h.
 */
#include "copy_memory.h"

#include "interrupt.h"

#include <string.h>

enum { STEP = 64 << 20 }; /* bytes: memcpy() is fastest with many at once */

shuf_status shuf__copy_memory(shuf *handle, void *out, const void *in, size_t bytes)
{
    size_t some;
    for (size_t done = 0; done < bytes; done += some) {
        if (done > 0 && shuf__is_interrupted(0))
            return shuf__fail_interrupted(handle->connection.address.sun_path, &handle->error);
        some = bytes - done < STEP ? bytes - done : STEP;
        memcpy((char *)out + done, (const char *)in + done, some);
    }
    return SHUF_OK;
}
