/* SPDX-License-Identifier: MIT
 *
 * The list of backends, best first.
 */
#include "backend.h"

#include "cuda_library.h"

#include <string.h>

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
