/* SPDX-License-Identifier: MIT
 *
 * A libnvidia-ml.so.1 with $FAKE_GPUS GPUs. With FAKE_MIG=1 they are in MIG mode.
 */
#include <stdlib.h>

/* The CUDA backend finds the functions by their names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS };

static unsigned number(const char *name)
{
    const char *const text = getenv(name);
    return text ? (unsigned)atoi(text) : 0;
}

EXPORT int nvmlInit_v2(void)
{
    return SUCCESS;
}

EXPORT int nvmlShutdown(void)
{
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = number("FAKE_GPUS");
    return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu)
{
    (void)index;
    *gpu = NULL;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMigMode(void *gpu, unsigned *now, unsigned *later)
{
    (void)gpu;
    *now = *later = number("FAKE_MIG");
    return SUCCESS;
}
