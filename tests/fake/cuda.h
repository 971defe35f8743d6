/* SPDX-License-Identifier: MIT
 *
 * A libcuda.so.1 without a GPU, for tests of leases. Device memory is host memory, and the fake
 * counts everything that is acquired until it is released.
 */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include <stdint.h>

enum { FAKE_GPUS = 2 };
#define FAKE_ID_0 "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
#define FAKE_ID_1 "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"

struct fake_context {
    int gpu;
};

/* The target of a fake cudaIpcMemHandle_t or cudaIpcEventHandle_t. */
struct fake_memory {
    uint8_t *bytes;
    uint64_t size;
    struct fake_context *opened_in;
};

struct fake_event {
    int waits;
};

struct fake_cuda {
    const char *fails;             /* the name of the call that fails, or NULL */
    struct fake_context *stack[8]; /* contexts, the current one last */
    int depth;
    struct fake_context primary[FAKE_GPUS];
    /* Counts of the acquired objects: */
    int primaries[FAKE_GPUS], allocations, reserved, mapped, opened, events;
};

struct fake_cuda *fake_cuda(void);

#endif
