/* SPDX-License-Identifier: MIT
 *
 * See gpu.h.
 */
#include "gpu.h"

#include "cmocka_all.h"
#include "gpu_view.h"

#include <dlfcn.h>
#include <string.h>

static const struct shuf__cuda *enter(int *device)
{
    void *context;
    struct shuf__error error;
    const struct shuf__cuda *cuda;
    assert_int_equal(shuf__cuda_load(&cuda, &error), SHUF_OK);
    assert_int_equal(cuda->cuInit(0), 0);
    assert_int_equal(cuda->cuDeviceGet(device, 0), 0);
    assert_int_equal(cuda->cuDevicePrimaryCtxRetain(&context, *device), 0);
    assert_int_equal(cuda->cuCtxPushCurrent(context), 0);
    return cuda;
}

static void leave(const struct shuf__cuda *cuda, int device)
{
    void *same;
    assert_int_equal(cuda->cuCtxPopCurrent(&same), 0);
    assert_int_equal(cuda->cuDevicePrimaryCtxRelease(device), 0);
}

bool gpu_exists(void)
{
    int count = 0;
    struct shuf__error error;
    const struct shuf__cuda *cuda;
    return shuf__cuda_load(&cuda, &error) == SHUF_OK && cuda->cuInit(0) == 0 &&
           cuda->cuDeviceGetCount(&count) == 0 && count > 0;
}

void gpu_read(const void *device, size_t bytes, void *out)
{
    int first;
    const struct shuf__cuda *cuda = enter(&first);
    assert_int_equal(cuda->cuMemcpyDtoH(out, (uintptr_t)device, bytes), 0);
    leave(cuda, first);
}

void gpu_write(void *device, size_t bytes, const void *in)
{
    int first;
    const struct shuf__cuda *cuda = enter(&first);
    assert_int_equal(cuda->cuMemcpyHtoD((uintptr_t)device, in, bytes), 0);
    leave(cuda, first);
}

/* A function of libcuda that libshuf does not need. */
static void find(const char *symbol, void *function)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *const address = dlsym(library, symbol);
    assert_non_null(address);
    memcpy(function, &address, sizeof address);
}

/* The context stays retained until gpu_free(): without it the memory would go too. */
void *gpu_alloc(size_t bytes)
{
    int first, (*alloc)(uint64_t *, size_t);
    uint64_t address = 0;
    void *same;
    const struct shuf__cuda *cuda = enter(&first);
    find("cuMemAlloc_v2", &alloc);
    assert_int_equal(alloc(&address, bytes), 0);
    assert_int_equal(cuda->cuCtxPopCurrent(&same), 0);
    return (void *)address;
}

void gpu_free(void *device)
{
    int first, (*release)(uint64_t);
    if (!device)
        return;
    const struct shuf__cuda *cuda = enter(&first);
    find("cuMemFree_v2", &release);
    assert_int_equal(release((uintptr_t)device), 0);
    leave(cuda, first);
    assert_int_equal(cuda->cuDevicePrimaryCtxRelease(first), 0);
}
