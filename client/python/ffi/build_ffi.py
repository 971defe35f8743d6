#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the C source of the extension module shufd._shuf.

    build_ffi.py OUT.c

It uses cffi in API mode: the compiler checks every declaration against shuf.h and shim.h, and each
call releases the GIL. The module uses Python's limited API, so one build works with every Python from
3.10 on.
"""
import pathlib
import re
import sys

import cffi
import cffi.recompiler

SHIM = pathlib.Path(__file__).with_name("shim.h")
INLINE_TYPES = "shuf_stream"  # of libshuf's inline headers, which cffi does not read

# The part of shuf.h that Python uses.
DECLARATIONS = """
typedef int... shuf_status;
typedef int... shuf_dtype;

#define SHUF_OK ...
#define SHUF_DEVICE ...
#define SHUF_NO_DAEMON ...
#define SHUF_VIEW_SLICE ...
#define SHUF_VIEW_SHARD ...
#define SHUF_GAUSS ...
#define SHUF_UNIFORM ...
#define SHUF_EXPONENTIAL ...
#define SHUF_BERNOULLI ...
#define SHUF_INTEGERS ...
#define SHUF_INLINE ...
#define SHUF_MEMFD ...
#define SHUF_CUDA_FD ...
#define SHUF_CUDA_IPC ...
#define SHUF_PERMUTATION ...
#define SHUF_NUMBERS ...
#define SHUF_RANKS ...
#define SHUF_RECORDS ...
#define SHUF_BUFFER ...
#define SHUF_OWN ...
#define SHUF_ALL ...

typedef struct shuf_mixture shuf_mixture;
void shuf_mixture_free(shuf_mixture *mixture);
uint64_t shuf_mixture_length(const shuf_mixture *mixture);
typedef struct shuf_chunks shuf_chunks;
void shuf_chunks_free(shuf_chunks *chunks);
uint64_t shuf_chunks_length(const shuf_chunks *chunks);
typedef struct shuf_weights shuf_weights;
void shuf_weights_free(shuf_weights *weights);

const char *shuf_status_name(shuf_status status);
const char *shuf_version(void);
const char *shuf_transport_name(int transport);

#define SHUFPY_CLOSED ...

typedef struct {
    const char *algorithm;
    uint64_t n, seed, epoch, epochs;
    const char *key;
    uint64_t chunk, window;
    int view;
    uint64_t offset, count, stride, rank, world, step;
    bool drop_last;
    int dtype;
    bool fingerprint;
    ...;
} shuf_permutation;

typedef struct { uint64_t rows, count; int dtype; uint64_t bytes; ...; } shuf_shape;
typedef struct {
    shuf_shape shape;
    char algorithm[32];
    char backend[16];
    char device[128];
    uint64_t device_ns, fingerprint;
    ...;
} shuf_result;

typedef struct {
    int distribution;
    uint64_t seed, stream, offset, count;
    const char *key;
    double mean, std;
    uint64_t bound;
    int dtype, method;
    ...;
} shuf_numbers;

struct shuf_lease;
typedef struct {
    const char *algorithm, *key;
    uint64_t n, record, seed, epoch;
    bool inverse;
    const struct shuf_lease *input;
    ...;
} shuf_records;
typedef struct {
    const char *algorithm, *key;
    uint64_t n, seed, epoch;
    bool inverse;
    uint64_t rank, world;
    const uint64_t *input, *output;
    uint64_t part;
    ...;
} shuf_ranks;
typedef struct {
    int kind;
    union {
        shuf_permutation permutation;
        shuf_numbers numbers;
        shuf_ranks ranks;
        shuf_records records;
        uint64_t bytes;
    };
    ...;
} shuf_request;
shuf_status shuf_shape_of(const shuf_request *request, shuf_shape *shape, char *message, size_t size);
typedef struct { unsigned transports; bool event; ...; } shuf_lease_options;
typedef struct shuf_lease {
    const void *data;
    shuf_result result;
    int transport;
    char device_id[64];
    bool shared;
    uint64_t id, block, block_bytes;
    void *buffer;
    ...;
} shuf_lease;

typedef struct {
    char version[32], backend[16], device[128], device_id[64], gpu_fault[512];
    uint64_t pid, uptime_ms, clients, client_limit, memory_used, memory_limit, host_used, host_limit;
    uint64_t host_idle, device_idle, blocks, leases, queued, hits, computed;
    ...;
} shuf_daemon;

typedef struct { uint64_t results, host_bytes, device_bytes; ...; } shuf_dropped;

typedef struct {
    uint64_t id, pid;
    uint32_t uid;
    int transport;
    bool prefetch, ready;
    uint64_t age_ms, block_bytes, rows, count;
    shuf_request request;
    ...;
} shuf_lease_entry;
typedef bool (*shuf_lease_visitor)(void *context, const shuf_lease_entry *entry);

extern "Python+C" void shufpy_dlpack_owner_free(void *owner);
extern "Python+C" bool shufpy_run_signal_handlers(void);
extern "Python" bool shufpy_visit_lease(void *context, const shuf_lease_entry *entry);
"""


def declarations_of_shim():
    """shim.h for cffi: without comments, preprocessor lines and the fields of INLINE_TYPES, because
    the compiler knows these fields."""
    text = re.sub(r"/\*.*?\*/", "", SHIM.read_text(), flags=re.DOTALL)
    text = re.sub(rf"^(#.*|\s+({INLINE_TYPES}) .*)$", "", text, flags=re.MULTILINE)
    return re.sub(r"^}", "    ...;\n}", text, flags=re.MULTILINE)


def main():
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    ffi.cdef(declarations_of_shim())
    # As emit_c_code(), which before cffi 1.17 needs setuptools beside Python 3.12.
    cffi.recompiler.make_c_source(ffi, "shufd._shuf", '#include "shim.h"', sys.argv[1])


if __name__ == "__main__":
    main()
