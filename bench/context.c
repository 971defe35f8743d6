/* SPDX-License-Identifier: MIT
 *
 * See context.h. The prototypes are those of cuda.h, whose layout they share since CUDA 4.0.
 */
#include "context.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *devices);
    int (*get)(int *device, int ordinal);
    int (*uuid)(unsigned char uuid[16], int device);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
};

static const char *load(struct driver *driver)
{
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"cuInit", &driver->init},
        {"cuDeviceGetCount", &driver->count},
        {"cuDeviceGet", &driver->get},
        {"cuDeviceGetUuid", &driver->uuid},
        {"cuDevicePrimaryCtxRetain", &driver->retain},
        {"cuCtxSetCurrent", &driver->set_current},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "libcuda.so.1 is not installed";
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return "libcuda.so.1 lacks a function";
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    return NULL;
}

/* "GPU-01234567-89ab-cdef-0123-456789abcdef", as the daemon names it. */
static void name_of(const unsigned char uuid[16], char name[64])
{
    int used = snprintf(name, 64, "GPU");
    for (int i = 0; i < 16; i++)
        used += snprintf(name + used, 64 - (size_t)used, "%s%02x",
                         i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

const char *context_hold(const char *device_id)
{
    struct driver driver;
    int devices, device;
    const char *why = load(&driver);
    if (why)
        return why;
    if (driver.init(0) != 0 || driver.count(&devices) != 0)
        return "cannot initialise libcuda";
    for (int i = 0; i < devices; i++) {
        unsigned char uuid[16];
        char name[64];
        void *context;
        if (driver.get(&device, i) != 0 || driver.uuid(uuid, device) != 0)
            return "cannot read the UUID of a GPU";
        name_of(uuid, name);
        if (strcmp(name, device_id) != 0)
            continue;
        if (driver.retain(&context, device) != 0 || driver.set_current(context) != 0)
            return "cannot create a context on the GPU";
        return NULL;
    }
    return "the daemon's GPU is not visible to this process";
}
