/* SPDX-License-Identifier: MIT
 *
 * Finds the GPU that this process uses, without initialising or loading CUDA.
 */
#ifndef SHUF__CURRENT_GPU_H
#define SHUF__CURRENT_GPU_H

#include <stdbool.h>

enum { SHUF__GPU_ID = 48, SHUF__GPU_WHY = 96 };

/* The answer of one source. */
struct shuf__gpu_hint {
    char id[SHUF__GPU_ID];   /* "GPU-<uuid>", or the first characters of one; "": unknown */
    char why[SHUF__GPU_WHY]; /* for a message: the source and its value */
    bool names_gpu;          /* also if its id is unknown */
};

/* The GPU of the current CUDA context of this thread. */
void shuf__gpu_of_context(struct shuf__gpu_hint *hint);

/* The first GPU of CUDA_VISIBLE_DEVICES, which is the process's device 0. An index counts only with
 * CUDA_DEVICE_ORDER=PCI_BUS_ID, or if there is one GPU. CUDA's indices then have the order of
 * /proc. CUDA's default order is by speed, and only the driver knows it. */
void shuf__gpu_of_environment(struct shuf__gpu_hint *hint);

#endif
