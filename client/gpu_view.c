/* SPDX-License-Identifier: MIT
 *
 * See gpu_view.h.
 */
#include "gpu_view.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The library ---- */

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

/* Fails with SHUF_DEVICE; the text has the GPU, the CUDA function and CUDA's text for `result`. */
static shuf_status fail_cuda(const struct shuf__cuda *cuda, const char *gpu, const char *call,
                             int result, struct shuf__error *error)
{
    const char *text = NULL;
    if (cuda->cuGetErrorString(result, &text) != 0 || !text)
        text = "unknown error";
    return shuf__fail(error, SHUF_DEVICE, "device %s: %s: %s", gpu, call, text);
}

/* Calls CUDA. On failure sets the error and jumps to `at`, which releases the resources. */
#define STEP(at, gpu, name, ...)                                      \
    do {                                                              \
        int result_ = (gpu)->cuda->name(__VA_ARGS__);                 \
        if (result_ != 0) {                                           \
            fail_cuda((gpu)->cuda, (gpu)->id, #name, result_, error); \
            goto at;                                                  \
        }                                                             \
    } while (0)

/* ---- GPUs ---- */

/* Writes the part of an id after "GPU-" or "MIG-". */
static void format_uuid(const uint8_t uuid[16], char text[37])
{
    for (int i = 0, at = 0; i < 16; i++)
        at += snprintf(text + at, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                       uuid[i]);
}

static shuf_status find_device(struct shuf__gpu *gpu, struct shuf__error *error)
{
    const char *dash = strchr(gpu->id, '-');
    int count = 0;
    STEP(failed, gpu, cuInit, 0);
    STEP(failed, gpu, cuDeviceGetCount, &count);
    for (int i = 0; i < count; i++) {
        uint8_t uuid[16];
        char text[37];
        STEP(failed, gpu, cuDeviceGet, &gpu->device, i);
        STEP(failed, gpu, cuDeviceGetUuid, uuid, gpu->device);
        format_uuid(uuid, text);
        if (dash && strcmp(dash + 1, text) == 0)
            return SHUF_OK;
    }
    return shuf__fail(error, SHUF_DEVICE,
                      "device %s: not among the %d that this process sees "
                      "(CUDA_VISIBLE_DEVICES); expected one of these",
                      gpu->id, count);
failed:
    return error->status;
}

shuf_status shuf__gpu_find(struct shuf__gpu **gpus, const char *id, struct shuf__gpu **gpu,
                           struct shuf__error *error)
{
    const struct shuf__cuda *cuda;
    for (*gpu = *gpus; *gpu; *gpu = (*gpu)->next)
        if (strcmp((*gpu)->id, id) == 0)
            return SHUF_OK;
    if (shuf__cuda_load(&cuda, error))
        return error->status;
    struct shuf__gpu *new = calloc(1, sizeof *new);
    if (!new)
        return shuf__fail(error, SHUF_NO_MEMORY, "device %s: out of memory", id);
    *new = (struct shuf__gpu){.next = *gpus, .cuda = cuda};
    snprintf(new->id, sizeof new->id, "%s", id);
    if (find_device(new, error)) {
        free(new);
        return error->status;
    }
    *gpu = *gpus = new;
    return SHUF_OK;
}

void shuf__gpus_close(struct shuf__gpu **gpus)
{
    struct shuf__gpu *gpu;
    while ((gpu = *gpus)) {
        *gpus = gpu->next;
        if (gpu->cuda && gpu->primary)
            gpu->cuda->cuDevicePrimaryCtxRelease(gpu->device);
        free(gpu);
    }
}

void shuf__gpus_forget(struct shuf__gpu *gpus)
{
    for (; gpus; gpus = gpus->next)
        gpus->cuda = NULL;
}

/* ---- Contexts ---- */

static shuf_status choose_context(struct shuf__gpu *gpu, void *current, void **context,
                                  struct shuf__error *error)
{
    int device = -1;
    if (current)
        STEP(failed, gpu, cuCtxGetDevice, &device);
    if (current && device == gpu->device) {
        *context = current;
        return SHUF_OK;
    }
    if (!gpu->primary)
        STEP(failed, gpu, cuDevicePrimaryCtxRetain, &gpu->primary, gpu->device);
    *context = gpu->primary;
    return SHUF_OK;
failed:
    return error->status;
}

/* Makes *context current; NULL: chooses a context and sets *context. */
static shuf_status enter_context(struct shuf__gpu *gpu, void **context, bool *pushed,
                                 struct shuf__error *error)
{
    void *current = NULL;
    STEP(failed, gpu, cuCtxGetCurrent, &current);
    if (!*context && choose_context(gpu, current, context, error))
        return error->status;
    *pushed = *context != current;
    if (*pushed)
        STEP(failed, gpu, cuCtxPushCurrent, *context);
    return SHUF_OK;
failed:
    return error->status;
}

static void leave_context(struct shuf__gpu *gpu, bool pushed)
{
    void *popped;
    if (pushed)
        gpu->cuda->cuCtxPopCurrent(&popped);
}

shuf_status shuf__gpu_fits(const struct shuf__gpu_view *view, bool *fits, struct shuf__error *error)
{
    void *current = NULL, *context = NULL;
    *fits = true;
    if (!view->context) /* CUDA_FD maps for all contexts of the device */
        return SHUF_OK;
    STEP(failed, view->gpu, cuCtxGetCurrent, &current);
    if (choose_context(view->gpu, current, &context, error))
        return error->status;
    *fits = context == view->context;
    return SHUF_OK;
failed:
    return error->status;
}

/* ---- Views ---- */

static shuf_status map_allocation(struct shuf__gpu *gpu, uint64_t allocation, bool writable,
                                  struct shuf__gpu_view *view, struct shuf__error *error)
{
    const struct shuf__cuda_access access = {
        .location_type = SHUF__CUDA_LOCATION_DEVICE,
        .location_id = gpu->device,
        .flags = writable ? SHUF__CUDA_ACCESS_READ_WRITE : SHUF__CUDA_ACCESS_READ,
    };
    STEP(failed, gpu, cuMemAddressReserve, &view->address, view->bytes, 0, 0, 0);
    STEP(unreserve, gpu, cuMemMap, view->address, view->bytes, 0, allocation, 0);
    STEP(unmap, gpu, cuMemSetAccess, view->address, view->bytes, &access, 1);
    return SHUF_OK;
unmap:
    gpu->cuda->cuMemUnmap(view->address, view->bytes);
unreserve:
    gpu->cuda->cuMemAddressFree(view->address, view->bytes);
failed:
    return error->status;
}

shuf_status shuf__gpu_map(struct shuf__gpu *gpu, int fd, uint64_t bytes, bool writable,
                          struct shuf__gpu_view *view, struct shuf__error *error)
{
    bool pushed;
    uint64_t allocation;
    void *context = NULL;
    shuf_status status = SHUF_DEVICE;
    *view = (struct shuf__gpu_view){.gpu = gpu, .bytes = bytes};
    if (enter_context(gpu, &context, &pushed, error))
        return error->status;
    STEP(done, gpu, cuMemImportFromShareableHandle, &allocation, (void *)(uintptr_t)fd,
         SHUF__CUDA_HANDLE_FD);
    status = map_allocation(gpu, allocation, writable, view, error);
    gpu->cuda->cuMemRelease(allocation); /* a mapping keeps it */
done:
    leave_context(gpu, pushed);
    return status;
}

shuf_status shuf__gpu_open(struct shuf__gpu *gpu, const uint8_t handle[SHUF__IPC_BYTES],
                           uint64_t bytes, struct shuf__gpu_view *view, struct shuf__error *error)
{
    bool pushed;
    struct shuf__cuda_ipc ipc;
    shuf_status status = SHUF_DEVICE;
    memcpy(ipc.bytes, handle, sizeof ipc.bytes);
    *view = (struct shuf__gpu_view){.gpu = gpu, .bytes = bytes};
    if (enter_context(gpu, &view->context, &pushed, error))
        return error->status;
    STEP(done, gpu, cuIpcOpenMemHandle, &view->address, ipc, SHUF__CUDA_LAZY_PEER);
    status = SHUF_OK;
done:
    leave_context(gpu, pushed);
    return status;
}

/* Ignores a failure: it means that the context has ended, and the mappings with it. */
void shuf__gpu_unmap(struct shuf__gpu_view *view)
{
    struct shuf__gpu *gpu = view->gpu;
    struct shuf__error ignored;
    void *context = view->context;
    bool pushed;
    if (!gpu->cuda || enter_context(gpu, &context, &pushed, &ignored))
        return;
    if (view->context) {
        gpu->cuda->cuIpcCloseMemHandle(view->address);
    } else {
        gpu->cuda->cuMemUnmap(view->address, view->bytes);
        gpu->cuda->cuMemAddressFree(view->address, view->bytes);
    }
    leave_context(gpu, pushed);
}

shuf_status shuf__gpu_read(const struct shuf__gpu_view *view, void *event, uint64_t offset,
                           size_t bytes, void *out, struct shuf__error *error)
{
    struct shuf__gpu *gpu = view->gpu;
    void *context = view->context;
    shuf_status status = SHUF_DEVICE;
    bool pushed;
    if (enter_context(gpu, &context, &pushed, error))
        return error->status;
    if (event)
        STEP(done, gpu, cuEventSynchronize, event);
    STEP(done, gpu, cuMemcpyDtoH, out, view->address + offset, bytes);
    status = SHUF_OK;
done:
    leave_context(gpu, pushed);
    return status;
}

shuf_status shuf__gpu_write(const struct shuf__gpu_view *view, uint64_t offset, size_t bytes,
                            const void *in, struct shuf__error *error)
{
    struct shuf__gpu *gpu = view->gpu;
    void *context = view->context;
    shuf_status status = SHUF_DEVICE;
    bool pushed;
    if (enter_context(gpu, &context, &pushed, error))
        return error->status;
    STEP(done, gpu, cuMemcpyHtoD, view->address + offset, in, bytes);
    /* Other contexts may see the old bytes until this call returns. */
    STEP(done, gpu, cuStreamSynchronize, NULL);
    status = SHUF_OK;
done:
    leave_context(gpu, pushed);
    return status;
}

shuf_status shuf__gpu_event_open(const struct shuf__gpu_view *view,
                                 const uint8_t handle[SHUF__IPC_BYTES], void **event,
                                 struct shuf__error *error)
{
    struct shuf__gpu *gpu = view->gpu;
    struct shuf__cuda_ipc ipc;
    void *context = view->context;
    shuf_status status = SHUF_DEVICE;
    bool pushed;
    memcpy(ipc.bytes, handle, sizeof ipc.bytes);
    if (enter_context(gpu, &context, &pushed, error))
        return error->status;
    STEP(done, gpu, cuIpcOpenEventHandle, event, ipc);
    status = SHUF_OK;
done:
    leave_context(gpu, pushed);
    return status;
}

void shuf__gpu_event_close(const struct shuf__gpu_view *view, void *event)
{
    struct shuf__error ignored;
    void *context = view->context;
    bool pushed;
    if (!view->gpu->cuda || enter_context(view->gpu, &context, &pushed, &ignored))
        return;
    view->gpu->cuda->cuEventDestroy(event);
    leave_context(view->gpu, pushed);
}
