/* SPDX-License-Identifier: MIT
 *
 * DLPack's structures, as https://dmlc.github.io/dlpack defines them. All consumers take the old
 * structure. The one of version 1.0 can also say that memory is read-only.
 */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

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
