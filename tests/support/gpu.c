/* SPDX-License-Identifier: MIT
 *
 * See gpu.h.
 */
#include "gpu.h"

#include "cmocka_all.h"
#include "libcuda.h"

void gpu_read(const void *device, size_t bytes, void *out)
{
    int first;
    void *context, *same;
    struct shuf__error error;
    const struct shuf__cuda *cuda;
    assert_int_equal(shuf__cuda_load(&cuda, &error), SHUF_OK);
    assert_int_equal(cuda->cuDeviceGet(&first, 0), 0);
    assert_int_equal(cuda->cuDevicePrimaryCtxRetain(&context, first), 0);
    assert_int_equal(cuda->cuCtxPushCurrent(context), 0);
    assert_int_equal(cuda->cuMemcpyDtoH(out, (uintptr_t)device, bytes), 0);
    assert_int_equal(cuda->cuCtxPopCurrent(&same), 0);
    assert_int_equal(cuda->cuDevicePrimaryCtxRelease(first), 0);
}
