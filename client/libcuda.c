/* SPDX-License-Identifier: MIT
 *
 * See libcuda.h.
 */
#include "libcuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct {
    pthread_once_t once;
    struct shuf__cuda functions;
    struct shuf__error error;
} loaded = {.once = PTHREAD_ONCE_INIT};

static shuf_status find_symbol(void *library, const char *symbol, void *function)
{
    void *address = dlsym(library, symbol);
    if (!address)
        return shuf__fail(&loaded.error, SHUF_DEVICE,
                          "libcuda.so.1: it lacks %s; expected the library of CUDA 11.4 or later",
                          symbol);
    memcpy(function, &address,
           sizeof address); /* C cannot convert between object and function pointers */
    return SHUF_OK;
}

static void load_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        shuf__fail(&loaded.error, SHUF_DEVICE, "%s", why ? why : "libcuda.so.1: cannot be loaded");
        return;
    }
#define X(name, version, arguments)                                           \
    if (find_symbol(library, #name #version, (void *)&loaded.functions.name)) \
        return;
    SHUF__CUDA_MAP(X)
#undef X
}

shuf_status shuf__cuda_load(const struct shuf__cuda **cuda, struct shuf__error *error)
{
    pthread_once(&loaded.once, load_library);
    if (loaded.error.status != SHUF_OK)
        *error = loaded.error;
    *cuda = &loaded.functions;
    return loaded.error.status;
}

shuf_status shuf__cuda_fail(const struct shuf__cuda *cuda, const char *gpu, const char *call,
                            int result, struct shuf__error *error)
{
    const char *text = NULL;
    if (cuda->cuGetErrorString(result, &text) != 0 || !text)
        text = "unknown error";
    return shuf__fail(error, SHUF_DEVICE, "device %s: %s: %s", gpu, call, text);
}
