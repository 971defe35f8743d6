/* SPDX-License-Identifier: MIT
 *
 * The handlers by which XLA calls libshuf for shufd.jax: one for host memory, and one for CUDA
 * memory in XLA's stream. They run in threads of XLA, without Python's global lock.
 *
 * A call has one result: a row of values for each place. A place is the seed and the epoch of a
 * permutation, or the seed, the stream and the offset of numbers; each number is two words of 32
 * bits, the lower one first. The places are the attribute "words", or else the only argument, which
 * may have a value for each element of a batch. The attributes "form" and "law" have the rest of
 * the request (_jax_random.py).
 */
#include "shim.h"
#include "xla_ffi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { FORM_N, FORM_DISTRIBUTION, FORM_DTYPE, FORM_METHOD, FORM_COUNT, FORM_FIELDS };
enum { LAW_MEAN, LAW_STD, LAW_FIELDS };

/* A result of a call. */
typedef struct rows {
    char *memory;
    size_t bytes; /* of a row */
} rows;

typedef struct fill {
    shuf_request request;
    char algorithm[16];
    unsigned numbers; /* of a place */
    const uint32_t *words;
    size_t places;
    rows out, workspace;
} fill;

/* ---- Version ---- */

static _Atomic(int) known_minor; /* 0: XLA accepts no handler */

bool shufpy_xla_set_version(int major, int minor)
{
    const bool is_known = major == XLA_MAJOR && minor >= XLA_MINOR;
    known_minor = is_known ? minor : 0;
    return is_known;
}

/* XLA asks a handler for its version before it accepts the handler. Some versions of XLA accept
 * only their own one, so the answer is theirs: xla_ffi.h is true for all of them. */
static bool answer_metadata(const xla_call *call)
{
    const xla_extension *extension = call->extension;
    if (!extension || extension->type != XLA_METADATA)
        return false;
    xla_metadata *metadata = ((const xla_metadata_extension *)extension)->metadata;
    if (metadata->size >= offsetof(xla_metadata, traits) + sizeof metadata->traits) {
        metadata->version.major = XLA_MAJOR;
        metadata->version.minor = known_minor;
        metadata->traits = 0;
    }
    return true;
}

/* ---- Errors ---- */

static xla_error *fail(const xla_call *call, int code, const char *message)
{
    xla_new_error error = {sizeof error, NULL, message, code};
    return call->api->create_error(&error);
}

static xla_error *fail_by_status(const xla_call *call, shuf_status status)
{
    const int code = status == SHUF_INVALID     ? XLA_INVALID_ARGUMENT
                     : status == SHUF_NO_MEMORY ? XLA_RESOURCE_EXHAUSTED
                                                : XLA_INTERNAL;
    return fail(call, code, shuf_message(NULL));
}

/* ---- Calls ---- */

static size_t width_of(int dtype)
{
    switch (dtype) {
    case XLA_F16:
    case XLA_BF16:
        return 2;
    case XLA_U32:
    case XLA_F32:
        return 4;
    case XLA_S64:
    case XLA_U64:
    case XLA_F64:
        return 8;
    default:
        return 0;
    }
}

static size_t count_of(const xla_buffer *buffer)
{
    size_t count = 1;
    for (int64_t i = 0; i < buffer->rank; i++)
        count *= (size_t)buffer->dims[i];
    return count;
}

static const void *find(const xla_attributes *attributes, const char *name, int type)
{
    for (int64_t i = 0; i < attributes->count; i++) {
        const xla_text *of = attributes->names[i];
        if (of->length == strlen(name) && memcmp(of->start, name, of->length) == 0)
            return attributes->types[i] == type ? attributes->values[i] : NULL;
    }
    return NULL;
}

/* NULL, unless the array has `count` values of the type. */
static const void *find_values(const xla_call *call, const char *name, int dtype, size_t count)
{
    const xla_array *array = find(&call->attributes, name, XLA_ATTRIBUTE_ARRAY);
    return array && array->dtype == dtype && array->count == count ? array->data : NULL;
}

static bool read_algorithm(const xla_call *call, fill *f)
{
    const xla_text *text = find(&call->attributes, "algorithm", XLA_ATTRIBUTE_TEXT);
    if (!text || text->length >= sizeof f->algorithm)
        return false;
    memcpy(f->algorithm, text->start, text->length);
    f->algorithm[text->length] = '\0';
    return true;
}

static bool read_request(const xla_call *call, fill *f)
{
    const uint64_t *form = find_values(call, "form", XLA_U64, FORM_FIELDS);
    const double *law = find_values(call, "law", XLA_F64, LAW_FIELDS);
    if (!form || !law || !read_algorithm(call, f))
        return false;
    f->numbers = form[FORM_N] ? 2 : 3;
    if (form[FORM_N])
        f->request = (shuf_request){.permutation = {.algorithm = f->algorithm,
                                                    .n = form[FORM_N],
                                                    .dtype = (shuf_dtype)form[FORM_DTYPE]}};
    else
        f->request = (shuf_request){
            SHUF_NUMBERS, .numbers = {.distribution = (shuf_distribution)form[FORM_DISTRIBUTION],
                                      .count = form[FORM_COUNT],
                                      .mean = law[LAW_MEAN],
                                      .std = law[LAW_STD],
                                      .dtype = (shuf_dtype)form[FORM_DTYPE],
                                      .method = (shuf_method)form[FORM_METHOD]}};
    return true;
}

static bool read_places(const xla_call *call, fill *f)
{
    size_t count;
    if (call->arguments.count == 0) {
        count = 2 * f->numbers;
        f->words = find_values(call, "words", XLA_U32, count);
        if (!f->words)
            return false;
    } else {
        const xla_buffer *words = call->arguments.values[0];
        if (call->arguments.count != 1 || call->arguments.types[0] != XLA_BUFFER ||
            words->dtype != XLA_U32)
            return false;
        f->words = words->data;
        count = count_of(words);
    }
    f->places = count / (2 * f->numbers);
    return count % (2 * f->numbers) == 0;
}

static bool read_result(const xla_call *call, int64_t i, size_t places, rows *result)
{
    if (call->results.types[i] != XLA_BUFFER)
        return false;
    const xla_buffer *buffer = call->results.values[i];
    const size_t width = width_of(buffer->dtype), bytes = count_of(buffer) * width;
    *result = (rows){buffer->data, places ? bytes / places : 0};
    return width > 0 && result->bytes * places == bytes;
}

static bool read_results(const xla_call *call, fill *f)
{
    const int64_t count = call->results.count;
    return (count == 1 || count == 2) && read_result(call, 0, f->places, &f->out) &&
           (count == 1 || read_result(call, 1, f->places, &f->workspace));
}

static bool read_call(const xla_call *call, fill *f)
{
    *f = (fill){0};
    return call->size >= sizeof *call && read_request(call, f) && read_places(call, f) &&
           read_results(call, f);
}

static xla_error *refuse_call(const xla_call *call)
{
    return fail(call, XLA_INVALID_ARGUMENT,
                "shufd: the call has other arguments than those of shufd.jax of this version");
}

static uint64_t number(const uint32_t *words, unsigned i)
{
    return words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

static shuf_request request_at(const fill *f, const uint32_t *words)
{
    shuf_request request = f->request;
    if (request.kind == SHUF_NUMBERS) {
        request.numbers.seed = number(words, 0);
        request.numbers.stream = number(words, 1);
        request.numbers.offset = number(words, 2);
    } else {
        request.permutation.seed = number(words, 0);
        request.permutation.epoch = number(words, 1);
    }
    return request;
}

/* ---- Host memory ---- */

void *shufpy_xla_fill_host(void *frame)
{
    const xla_call *call = frame;
    shuf_status status = SHUF_OK;
    fill f;
    if (answer_metadata(call))
        return NULL;
    if (!read_call(call, &f))
        return refuse_call(call);
    for (size_t i = 0; i < f.places && status == SHUF_OK; i++) {
        const shuf_request request = request_at(&f, f.words + 2 * f.numbers * i);
        status = shuf_host_fill(&request, 1, f.out.memory + f.out.bytes * i, f.out.bytes);
    }
    return status == SHUF_OK ? NULL : fail_by_status(call, status);
}

/* ---- Device memory ---- */

/* Waits for the stream, because the words may be results of work in it. XLA has loaded the library
 * of the driver. */
static bool read_device(uint32_t *words, const void *device, size_t bytes, void *stream)
{
    int (*copy)(void *to, uintptr_t from, size_t bytes, void *stream) = NULL;
    int (*wait)(void *stream) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&copy = dlsym(library, "cuMemcpyDtoHAsync_v2");
    *(void **)&wait = dlsym(library, "cuStreamSynchronize");
    const bool is_read =
        copy && wait && copy(words, (uintptr_t)device, bytes, stream) == 0 && wait(stream) == 0;
    dlclose(library);
    return is_read;
}

/* All rows use the workspace of the first one, because the stream computes one after another. */
static xla_error *fill_device(const xla_call *call, const fill *f, void *stream)
{
    const rows *out = &f->out, *workspace = &f->workspace;
    shuf_status status = SHUF_OK;
    for (size_t i = 0; i < f->places && status == SHUF_OK; i++) {
        const shuf_request request = request_at(f, f->words + 2 * f->numbers * i);
        status = shuf_cuda_fill(&request, out->memory + out->bytes * i, out->bytes,
                                workspace->memory, workspace->bytes, stream);
    }
    return status == SHUF_OK ? NULL : fail_by_status(call, status);
}

static xla_error *fill_at_device(const xla_call *call, fill *f, void *stream)
{
    const size_t bytes = 2 * sizeof(uint32_t) * f->numbers * f->places;
    uint32_t *words = malloc(bytes);
    if (!words)
        return fail(call, XLA_RESOURCE_EXHAUSTED, "shufd: no memory for the numbers of a batch");
    if (!read_device(words, f->words, bytes, stream)) {
        free(words);
        return fail(call, XLA_INTERNAL,
                    "shufd: the seed cannot be read from the memory of the GPU");
    }
    f->words = words;
    xla_error *error = fill_device(call, f, stream);
    free(words);
    return error;
}

void *shufpy_xla_fill_cuda(void *frame)
{
    const xla_call *call = frame;
    fill f;
    if (answer_metadata(call))
        return NULL;
    if (!read_call(call, &f))
        return refuse_call(call);
    xla_get_stream get = {sizeof get, NULL, call->context, NULL};
    xla_error *error = call->api->get_stream(&get);
    if (error)
        return error;
    return call->arguments.count && f.places ? fill_at_device(call, &f, get.stream)
                                             : fill_device(call, &f, get.stream);
}
