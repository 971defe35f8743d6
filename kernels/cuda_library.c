/* SPDX-License-Identifier: MIT
 *
 * Chooses and loads the library with the code for GPUs. Builds by several major versions of CUDA
 * may be installed. The version of the driver and the installed files decide, nothing else, so the
 * daemon and the programs with libshuf load the same one.
 */
#include "cuda_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const struct shuf__cuda_library *loaded;
static struct shuf__error fault;

/* ---- The driver ---- */

/* The version of CUDA that the driver runs, such as 12040 for 12.4. 0: there is no driver. */
static int cuda_of_driver(void)
{
    int version = 0;
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*const get)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuDriverGetVersion") : NULL;
    return get && get(&version) == 0 ? version : 0;
}

/* Fails with the version of the driver, and that of CUDA that it runs. */
static void refuse(int cuda, const char *rest)
{
    char version[32] = "";
    FILE *const file = fopen("/sys/module/nvidia/version", "re");
    if (file && fscanf(file, "%30s", version) == 1)
        strcat(version, " ");
    if (file)
        fclose(file);
    if (cuda == 0)
        shuf__fail(&fault, SHUF_DEVICE, "backend cuda: no NVIDIA driver (libcuda.so.1)%s", rest);
    else
        shuf__fail(&fault, SHUF_DEVICE, "backend cuda: the NVIDIA driver %sruns CUDA %d.%d%s",
                   version, cuda / 1000, cuda % 1000 / 10, rest);
}

/* ---- The library ---- */

/* The dynamic linker looks for the library where it looks for all libraries of the program: in the
 * RUNPATH of this code (cmake/Cuda.cmake), and in the folders of ld.so. */
static void *open_library(int major, char name[32])
{
    snprintf(name, 32, "libshuf-cuda%d.so.0", major);
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* Opens the newest library for this driver. A build by CUDA 12.x runs with each driver for
 * CUDA 12.0 or later. */
static void *open_newest(int cuda, char name[32])
{
    const int newest = cuda / 1000 < SHUF__CUDA_NEWEST ? cuda / 1000 : SHUF__CUDA_NEWEST;
    char rest[320];
    void *handle = open_library(newest, name);
    if (handle)
        return handle;
    snprintf(rest, sizeof rest, ", and %.240s; install shufd-cuda%d of shufd " SHUF_VERSION_TEXT,
             dlerror(), newest);
    for (int major = newest - 1; !handle && major >= SHUF__CUDA_OLDEST; major--)
        handle = open_library(major, name);
    if (!handle)
        refuse(cuda, rest);
    return handle;
}

static void *open_for_driver(char name[32])
{
    char rest[64];
    const int cuda = cuda_of_driver();
    if (cuda >= SHUF__CUDA_OLDEST * 1000)
        return open_newest(cuda, name);
    snprintf(rest, sizeof rest, "; expected one for CUDA %d.0 or later", SHUF__CUDA_OLDEST);
    refuse(cuda, rest);
    return NULL;
}

static bool has_sizes_of_this_build(const struct shuf__cuda_library *library)
{
    return library->sizes[0] == shuf__cuda_sizes[0] &&
           memcmp(library->sizes, shuf__cuda_sizes, sizeof shuf__cuda_sizes) == 0;
}

static void load(void)
{
    char name[32];
    void *const handle = open_for_driver(name);
    if (!handle)
        return;
    const struct shuf__cuda_library *const library = dlsym(handle, "shuf__cuda");
    const char *const version = library && library->version ? library->version : "unknown";
    if (strcmp(version, SHUF_VERSION_TEXT) != 0)
        shuf__fail(&fault, SHUF_DEVICE,
                   "backend cuda: %s is of shufd %.32s, this program of " SHUF_VERSION_TEXT
                   "; install both from one build",
                   name, version);
    else if (!has_sizes_of_this_build(library))
        shuf__fail(&fault, SHUF_DEVICE,
                   "backend cuda: %s and this program are of different builds of shufd %s; "
                   "install both from one build",
                   name, version);
    else
        loaded = library;
}

const struct shuf__cuda_library *shuf__cuda_library(struct shuf__error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!loaded)
        *error = fault;
    return loaded;
}
