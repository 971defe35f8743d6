/* SPDX-License-Identifier: MIT
 *
 * The part of XLA's foreign function interface that xla.c uses: the layout in memory of
 * xla/ffi/api/c_api.h, which jaxlib has. Here it is written down again, so that a build of the
 * package needs no JAX. test_jax.py compares both, if JAX is installed.
 *
 * These structures are the same in versions 0.1 (jaxlib 0.5.0) to 0.5 (jaxlib 0.12). A newer minor
 * version only adds to them; XLA writes the size that it knows into the first field of each.
 */
#ifndef SHUFPY_XLA_FFI_H
#define SHUFPY_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum {
    XLA_MAJOR = 0, /* of the interface; another one has other structures */
    XLA_MINOR = 1, /* the oldest */
    XLA_METADATA = 1,
    XLA_BUFFER = 1,          /* the type of each argument and result */
    XLA_ATTRIBUTE_ARRAY = 1, /* types of attributes */
    XLA_ATTRIBUTE_TEXT = 4,
};

/* Types of values. */
enum {
    XLA_S64 = 5,
    XLA_U32 = 8,
    XLA_U64 = 9,
    XLA_F16 = 10,
    XLA_F32 = 11,
    XLA_F64 = 12,
    XLA_BF16 = 16
};

/* Codes of errors. */
enum { XLA_INVALID_ARGUMENT = 3, XLA_RESOURCE_EXHAUSTED = 8, XLA_INTERNAL = 13 };

typedef struct xla_error xla_error;     /* NULL: no error. XLA frees it */
typedef struct xla_context xla_context; /* of one call */

typedef struct xla_extension {
    size_t size;
    int type;
    struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
    size_t size;
    xla_extension *extension;
    int major, minor;
} xla_version;

/* XLA calls a handler with this extension to learn its version. */
typedef struct xla_metadata {
    size_t size;
    xla_version version; /* out */
    uint32_t traits;     /* out */
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_new_error {
    size_t size;
    xla_extension *extension;
    const char *message;
    int code;
} xla_new_error;

typedef struct xla_get_stream {
    size_t size;
    xla_extension *extension;
    xla_context *context;
    void *stream; /* out: a CUstream */
} xla_get_stream;

typedef struct xla_api {
    size_t size;
    xla_extension *extension;
    xla_version version;
    const void *internal;
    xla_error *(*create_error)(xla_new_error *arguments);
    void *get_message, *destroy_error, *register_handler;
    xla_error *(*get_stream)(xla_get_stream *arguments);
} xla_api;

typedef struct xla_buffer {
    size_t size;
    xla_extension *extension;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims;
} xla_buffer;

typedef struct xla_array {
    int dtype;
    size_t count;
    void *data;
} xla_array;

typedef struct xla_text {
    const char *start;
    size_t length;
} xla_text;

/* Arguments or results of a call. */
typedef struct xla_buffers {
    size_t size;
    xla_extension *extension;
    int64_t count;
    int *types;
    void **values;
} xla_buffers;

typedef struct xla_attributes {
    size_t size;
    xla_extension *extension;
    int64_t count;
    int *types;
    xla_text **names;
    void **values;
} xla_attributes;

typedef struct xla_call {
    size_t size;
    xla_extension *extension;
    const xla_api *api;
    xla_context *context;
    int stage;
    xla_buffers arguments, results;
    xla_attributes attributes;
} xla_call;

#endif
