/* SPDX-License-Identifier: MIT
 *
 * The interfaces of NumPy and DLPack, see shim.h.
 */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

/* ---- Draws with replacement ---- */

void shufpy_scale(const uint64_t *bits, size_t count, uint64_t n, uint64_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = shuf__mulhi64(bits[i], n);
}

/* ---- NumPy's bit generator ---- */

/* numpy/random/bitgen.h: part of NumPy's stable interface. */
struct bitgen {
    void *state;
    uint64_t (*next_uint64)(void *);
    uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    uint64_t (*next_raw)(void *);
};

static uint64_t next_uint64(void *state)
{
    shufpy_draw *draw = state;
    const uint64_t pair = draw->offset / 2;
    if (pair != draw->pair) {
        const shuf_philox4x32 words = shuf_stream_words(&draw->stream, pair, SHUF_UNIFORM_ROUNDS);
        draw->word[0] = (uint64_t)words.word[1] << 32 | words.word[0];
        draw->word[1] = (uint64_t)words.word[3] << 32 | words.word[2];
        draw->pair = pair;
    }
    return draw->word[draw->offset++ % 2];
}

static uint32_t next_uint32(void *state)
{
    shufpy_draw *draw = state;
    if (draw->has_half) {
        draw->has_half = false;
        return draw->half;
    }
    const uint64_t value = next_uint64(draw);
    draw->half = (uint32_t)(value >> 32);
    draw->has_half = true;
    return (uint32_t)value;
}

static double next_double(void *state)
{
    return shuf_uniform_f64_of(next_uint64(state));
}

void shufpy_draw_make(shufpy_draw *draw, int source, uint64_t seed, uint64_t stream,
                      uint64_t offset)
{
    static const uint64_t blocks[] = {SHUF_STREAM_UNIFORM, SHUF_STREAM_REPLACEMENT,
                                      SHUF_STREAM_RECORD};
    *draw = (shufpy_draw){
        .stream = shuf_stream_make(shuf_key_of_seed(seed), stream, blocks[source]),
        .seed = seed,
        .number = stream,
        .offset = offset,
        .pair = UINT64_MAX,
    };
}

void shufpy_bitgen_fill(void *bitgen, shufpy_draw *draw)
{
    *(struct bitgen *)bitgen =
        (struct bitgen){draw, next_uint64, next_uint32, next_double, next_uint64};
}

/* ---- DLPack ---- */

/* The structures, as https://dmlc.github.io/dlpack defines them. All consumers take the old one.
 * The one of version 1.0 can also say that memory is read-only. */

enum { DEVICE_CUDA = 2, FLAG_READ_ONLY = 1 };

typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tensor_view;

struct plain {
    tensor_view tensor;
    void *context;
    void (*deleter)(struct plain *);
};

struct versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned *);
    uint64_t flags;
    tensor_view tensor;
};

/* `context` of either points to its block. */
struct block {
    union {
        struct plain plain;
        struct versioned versioned;
    };
    int64_t shape[8];
    void *owner;
};

/* Defined by cffi: drops a reference of Python. Takes the GIL. */
void shufpy_dlpack_owner_free(void *owner);

static void free_block(struct block *block)
{
    shufpy_dlpack_owner_free(block->owner);
    free(block);
}

static void delete_plain(struct plain *managed)
{
    free_block(managed->context);
}

static void delete_versioned(struct versioned *managed)
{
    free_block(managed->context);
}

static tensor_view view_of(const shufpy_tensor *tensor, struct block *block)
{
    return (tensor_view){
        .data = tensor->data,
        .device_type = DEVICE_CUDA,
        .device_id = tensor->device,
        .dimensions = tensor->dimensions,
        .code = tensor->code,
        .bits = tensor->bits,
        .lanes = 1,
        .shape = block->shape,
    };
}

void *shufpy_dlpack_make(const shufpy_tensor *tensor, bool versioned)
{
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->owner = tensor->owner;
    memcpy(block->shape, tensor->shape, sizeof block->shape);
    if (versioned)
        block->versioned = (struct versioned){
            1, 0, block, delete_versioned, FLAG_READ_ONLY, view_of(tensor, block)};
    else
        block->plain = (struct plain){view_of(tensor, block), block, delete_plain};
    return block;
}

void shufpy_dlpack_free(void *managed, bool versioned)
{
    free_block(versioned ? ((struct versioned *)managed)->context
                         : ((struct plain *)managed)->context);
}
