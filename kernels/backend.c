/* SPDX-License-Identifier: MIT
 *
 * The list of backends, best first. No other file decides whether the build has a backend.
 */
#include "backend.h"

#include <string.h>

static const struct shuf__backend_ops *const backends[] = {
#ifdef SHUF_HAVE_CUDA
    &shuf__cuda_ops,
#endif
    &shuf__cpu_ops,
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

const struct shuf__backend_ops *shuf__backend_at(unsigned index)
{
    return index < BACKENDS ? backends[index] : NULL;
}

static shuf_status open_first(unsigned threads, struct shuf__backend **backend,
                              struct shuf__error *error)
{
    error->text[0] = '\0';
    for (unsigned i = 0; i < BACKENDS; i++)
        if (backends[i]->open(NULL, threads, backend, error) == SHUF_OK)
            return SHUF_OK;
    return error->status;
}

/* Sets *device to the text after the colon of `spec`, or to NULL. */
static shuf_status find(const char *spec, const struct shuf__backend_ops **ops, const char **device,
                        struct shuf__error *error)
{
    const char *colon = strchr(spec, ':');
    size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
    *device = colon ? colon + 1 : NULL;
    for (unsigned i = 0; i < BACKENDS; i++) {
        *ops = backends[i];
        if (strlen((*ops)->name) == length && memcmp((*ops)->name, spec, length) == 0)
            return SHUF_OK;
    }
    if (length == 4 && memcmp("cuda", spec, length) == 0)
        return shuf__fail(error, SHUF_DEVICE,
                          "backend %.64s: this build has no CUDA backend; expected cpu or auto",
                          spec);
    return shuf__fail(error, SHUF_INVALID, "backend %.64s: expected auto, cpu or cuda", spec);
}

shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error)
{
    const struct shuf__backend_ops *ops;
    const char *device;
    if (strcmp(spec, "auto") == 0)
        return open_first(threads, backend, error);
    return find(spec, &ops, &device, error) ? error->status
                                            : ops->open(device, threads, backend, error);
}

shuf_status shuf__backend_check(const char *spec, struct shuf__error *error)
{
    const struct shuf__backend_ops *ops;
    const char *device;
    if (strcmp(spec, "auto") == 0)
        return SHUF_OK;
    if (find(spec, &ops, &device, error))
        return error->status;
    return ops->check_name ? ops->check_name(device, error) : SHUF_OK;
}
