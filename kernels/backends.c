/* SPDX-License-Identifier: MIT
 *
 * The list of backends, best first, and the loader of the library of the CUDA backend.
 */
#include "backend.h"

#include "cuda_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* ---- libshuf-cuda.so ---- */

#define LIBRARY "libshuf-cuda.so.0"

static const struct shuf__cuda_library *loaded;
static struct shuf__error fault;

static bool has_sizes_of_this_build(const struct shuf__cuda_library *library)
{
    return library->sizes[0] == shuf__cuda_sizes[0] &&
           memcmp(library->sizes, shuf__cuda_sizes, sizeof shuf__cuda_sizes) == 0;
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
    const char *const version = library && library->version ? library->version : "unknown";
    if (strcmp(version, SHUF_VERSION_TEXT) != 0)
        shuf__fail(&fault, SHUF_DEVICE,
                   "backend cuda: " LIBRARY " is of shufd %.32s, this program of %s; install both "
                   "from one build",
                   version, SHUF_VERSION_TEXT);
    else if (!has_sizes_of_this_build(library))
        shuf__fail(&fault, SHUF_DEVICE,
                   "backend cuda: " LIBRARY
                   " and this program are of different builds of shufd %s; "
                   "install both from one build",
                   version);
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

/* ---- The list ---- */

static const struct shuf__backend_ops *cuda_ops(struct shuf__error *error)
{
    const struct shuf__cuda_library *library = shuf__cuda_library(error);
    return library ? library->ops : NULL;
}

static const struct shuf__backend_ops *cpu_ops(struct shuf__error *error)
{
    (void)error;
    return &shuf__cpu_ops;
}

static shuf_status check_any(const char *device, struct shuf__error *error)
{
    (void)device;
    (void)error;
    return SHUF_OK;
}

struct kind {
    const char *name;
    const struct shuf__backend_ops *(*load)(struct shuf__error *error); /* NULL: see *error */
    /* Checks the text after the colon without touching a device. */
    shuf_status (*check)(const char *device, struct shuf__error *error);
};

static const struct kind kinds[] = {
    {"cuda", cuda_ops, check_any},
    {"cpu", cpu_ops, shuf__cpu_check_name},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static shuf_status open_kind(const struct kind *kind, const char *device, unsigned threads,
                             struct shuf__backend **backend, struct shuf__error *error)
{
    const struct shuf__backend_ops *ops = kind->load(error);
    return ops ? ops->open(device, threads, backend, error) : error->status;
}

static shuf_status open_first(unsigned threads, struct shuf__backend **backend,
                              struct shuf__error *error)
{
    error->text[0] = '\0';
    for (unsigned i = 0; i < KINDS; i++)
        if (open_kind(&kinds[i], NULL, threads, backend, error) == SHUF_OK)
            return SHUF_OK;
    return error->status;
}

/* Sets *device to the text after the colon of `spec`, or to NULL. */
static const struct kind *find(const char *spec, const char **device, struct shuf__error *error)
{
    const char *colon = strchr(spec, ':');
    size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
    *device = colon ? colon + 1 : NULL;
    for (unsigned i = 0; i < KINDS; i++)
        if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, spec, length) == 0)
            return &kinds[i];
    shuf__fail(error, SHUF_INVALID, "backend %.64s: expected auto, cpu or cuda", spec);
    return NULL;
}

shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error)
{
    const char *device;
    if (strcmp(spec, "auto") == 0)
        return open_first(threads, backend, error);
    const struct kind *kind = find(spec, &device, error);
    return kind ? open_kind(kind, device, threads, backend, error) : error->status;
}

shuf_status shuf__backend_check(const char *spec, struct shuf__error *error)
{
    const char *device;
    if (strcmp(spec, "auto") == 0)
        return SHUF_OK;
    const struct kind *kind = find(spec, &device, error);
    return kind ? kind->check(device, error) : error->status;
}
