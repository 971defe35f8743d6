/* SPDX-License-Identifier: MIT
 *
 * The parts of bench_stream_cuda.
 */
#ifndef SHUF__BENCH_STREAM_CUDA_H
#define SHUF__BENCH_STREAM_CUDA_H

#include "report.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* torch's normal_() into memory that is there, in a process of its own; each size in turn. */
void torch_rows(struct report *report, const uint64_t *sizes, size_t count);

/* cuRAND's generator Philox4_32_10, by its host interface, found at run time. */
enum peer_curand {
    PEER_NORMAL_F64,
    PEER_NORMAL_F32,
    PEER_WORDS_U32,
    PEER_UNIFORM_F32,
    PEER_UNIFORM_F64,
};

/* `dynamic`: in the order that suits the device best, instead of the one by default. False, and a
 * line in the report, where it is not there. */
bool peer_curand_begin(struct report *report, bool dynamic);

/* n values to device memory, on the default stream; false when it fails. */
bool peer_curand_draw(enum peer_curand kind, void *memory, size_t n);

void peer_curand_end(void);

#ifdef __cplusplus
}
#endif

#endif
