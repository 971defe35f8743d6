/* SPDX-License-Identifier: MIT
 *
 * See stream_cuda_peers.h.
 */
#include "stream_cuda_peers.h"

#include "process.h"
#include "python_peer.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- PyTorch ---- */

static void torch_row(struct report *report, const json_t *row)
{
    char label[64];
    double *ns;
    const uint64_t n = (uint64_t)json_integer_value(json_object_get(row, "n"));
    const uint64_t width = (uint64_t)json_integer_value(json_object_get(row, "width"));
    const size_t samples = python_peer_numbers(row, "ns", &ns);
    snprintf(label, sizeof label, "torch normal_ %s",
             json_string_value(json_object_get(row, "number")));
    report_add(report, label, n, n, "values", n * width, ns, samples);
    free(ns);
}

void torch_rows(struct report *report, const uint64_t *sizes, size_t count)
{
    enum { MOST = 8 };
    char text[MOST][32];
    const char *arguments[MOST + 3] = {"normal", "--n"};
    size_t i;
    json_t *row;
    for (i = 0; i < count && i < MOST; i++) {
        snprintf(text[i], sizeof text[i], "%llu", (unsigned long long)sizes[i]);
        arguments[2 + i] = text[i];
    }
    json_t *reply = python_peer_run(report, "torch_peers.py", arguments);
    if (!reply)
        return;
    report_fact(report, "torch", json_string_value(json_object_get(reply, "torch")));
    json_array_foreach(json_object_get(reply, "rows"), i, row) torch_row(report, row);
    json_decref(reply);
}

/* ---- cuRAND ---- */

/* The library is loaded at run time, so the program also runs on a machine that has a driver and no
 * CUDA toolkit. */

#ifdef BENCH_HAVE_CURAND

#include <curand.h>
#include <dlfcn.h>
#include <string.h>

static struct {
    curandStatus_t (*create)(curandGenerator_t *, curandRngType_t);
    curandStatus_t (*destroy)(curandGenerator_t);
    curandStatus_t (*seed)(curandGenerator_t, unsigned long long);
    curandStatus_t (*order)(curandGenerator_t, curandOrdering_t);
    curandStatus_t (*version)(int *);
    curandStatus_t (*words)(curandGenerator_t, unsigned *, size_t);
    curandStatus_t (*normal)(curandGenerator_t, float *, size_t, float, float);
    curandStatus_t (*normal_double)(curandGenerator_t, double *, size_t, double, double);
    curandStatus_t (*uniform)(curandGenerator_t, float *, size_t);
    curandStatus_t (*uniform_double)(curandGenerator_t, double *, size_t);
} curand;

static curandGenerator_t generator;

static bool load(void)
{
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"curandCreateGenerator", &curand.create},
        {"curandDestroyGenerator", &curand.destroy},
        {"curandSetPseudoRandomGeneratorSeed", &curand.seed},
        {"curandSetGeneratorOrdering", &curand.order},
        {"curandGetVersion", &curand.version},
        {"curandGenerate", &curand.words},
        {"curandGenerateNormal", &curand.normal},
        {"curandGenerateNormalDouble", &curand.normal_double},
        {"curandGenerateUniform", &curand.uniform},
        {"curandGenerateUniformDouble", &curand.uniform_double},
    };
    const char *const paths[] = {BENCH_HAVE_CURAND, "libcurand.so.10",
                                 "/usr/local/cuda/lib64/libcurand.so.10"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && !library; i++)
        library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols && library; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return false;
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    return library != NULL;
}

bool peer_curand_begin(struct report *report, bool dynamic)
{
    char text[32];
    int version = 0;
    if (!load()) {
        report_fact(report, "cuRAND", "not installed");
        return false;
    }
    curand.version(&version);
    snprintf(text, sizeof text, "%d.%d.%d", version / 1000, version % 1000 / 100, version % 100);
    report_fact(report, "cuRAND", text);
    if (curand.create(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS &&
        curand.seed(generator, 7) == CURAND_STATUS_SUCCESS &&
        curand.order(generator, dynamic ? CURAND_ORDERING_PSEUDO_DYNAMIC
                                        : CURAND_ORDERING_PSEUDO_DEFAULT) == CURAND_STATUS_SUCCESS)
        return true;
    report_fact(report, "cuRAND", "cannot create a generator");
    return false;
}

bool peer_curand_draw(enum peer_curand kind, void *memory, size_t n)
{
    switch (kind) {
    case PEER_NORMAL_F64:
        return curand.normal_double(generator, memory, n, 0, 1) == CURAND_STATUS_SUCCESS;
    case PEER_NORMAL_F32:
        return curand.normal(generator, memory, n, 0, 1) == CURAND_STATUS_SUCCESS;
    case PEER_WORDS_U32:
        return curand.words(generator, memory, n) == CURAND_STATUS_SUCCESS;
    case PEER_UNIFORM_F32:
        return curand.uniform(generator, memory, n) == CURAND_STATUS_SUCCESS;
    case PEER_UNIFORM_F64:
        return curand.uniform_double(generator, memory, n) == CURAND_STATUS_SUCCESS;
    }
    return false;
}

void peer_curand_end(void)
{
    curand.destroy(generator);
}

#else

bool peer_curand_begin(struct report *report, bool dynamic)
{
    (void)dynamic;
    report_fact(report, "cuRAND", "not in this build: its header was not installed");
    return false;
}

bool peer_curand_draw(enum peer_curand kind, void *memory, size_t n)
{
    (void)kind;
    (void)memory;
    (void)n;
    return false;
}

void peer_curand_end(void)
{
}

#endif
