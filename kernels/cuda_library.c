/* SPDX-License-Identifier: MIT
 *
 * See cuda_library.h.
 */
#include "cuda_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LIBRARY "libshuf-cuda.so.0"

static const struct shuf__cuda_library *loaded;
static struct shuf__error fault;

static bool is_of_this_build(const struct shuf__cuda_library *library)
{
    const size_t sizes[SHUF__CUDA_STRUCTS] = SHUF__CUDA_SIZES;
    return library->version && strcmp(library->version, SHUF_VERSION_TEXT) == 0 &&
           memcmp(library->sizes, sizes, sizeof sizes) == 0;
}

/* The dynamic linker looks for the library where it looks for all libraries of the program: in the
 * RUNPATH of this code (cmake/Cuda.cmake), and in the folders of ld.so. */
static void load(void)
{
    void *const handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        shuf__fail(&fault, SHUF_DEVICE, "backend cuda: %.300s; install " LIBRARY " of shufd %s",
                   dlerror(), SHUF_VERSION_TEXT);
        return;
    }
    const struct shuf__cuda_library *const library = dlsym(handle, "shuf__cuda");
    if (library && is_of_this_build(library))
        loaded = library;
    else
        shuf__fail(&fault, SHUF_DEVICE,
                   "backend cuda: " LIBRARY " is of shufd %.32s, this program of %s; install both "
                   "from one build",
                   library && library->version ? library->version : "unknown", SHUF_VERSION_TEXT);
}

const struct shuf__cuda_library *shuf__cuda_library(struct shuf__error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!loaded)
        *error = fault;
    return loaded;
}
