/* SPDX-License-Identifier: MIT
 *
 * A libcuda.so.1 of the CUDA version in $FAKE_CUDA (12040 is 12.4) that finds no GPU.
 */
#include <stdlib.h>
#include <string.h>

/* The run time of CUDA finds the functions by their names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS, NO_DEVICE = 100 };

static int fail(void)
{
    return NO_DEVICE;
}

static int get_version(int *version)
{
    const char *text = getenv("FAKE_CUDA");
    *version = text ? atoi(text) : 0;
    return SUCCESS;
}

EXPORT int cuDriverGetVersion(int *version)
{
    return get_version(version);
}

EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return NO_DEVICE;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version,
                               unsigned long long flags, int *found)
{
    int (*result)() = fail;
    (void)version;
    (void)flags;
    if (strcmp(name, "cuDriverGetVersion") == 0)
        result = get_version;
    else if (strcmp(name, "cuGetProcAddress") == 0)
        result = cuGetProcAddress_v2;
    memcpy(function, &result, sizeof result);
    if (found)
        *found = SUCCESS;
    return SUCCESS;
}

EXPORT int cuGetProcAddress(const char *name, void **function, int version,
                            unsigned long long flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
