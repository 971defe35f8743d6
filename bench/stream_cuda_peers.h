/* SPDX-License-Identifier: MIT
 *
 * The peers of bench_stream_cuda.
 */
#ifndef SHUF__BENCH_STREAM_CUDA_PEERS_H
#define SHUF__BENCH_STREAM_CUDA_PEERS_H

#include "report.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* torch's normal_() into existing memory, in a separate process, for each size. */
void torch_rows(struct report *report, const uint64_t *sizes, size_t count);

/* cuRAND's generator Philox4_32_10 by its host interface. The library is found at run time. */
enum peer_curand {
    PEER_NORMAL_F64,
    PEER_NORMAL_F32,
    PEER_WORDS_U32,
    PEER_UNIFORM_F32,
    PEER_UNIFORM_F64,
};

/* `dynamic`: the order that is fastest on the device, instead of the default order. Returns false,
 * with a line in the report, if cuRAND is not installed. */
bool peer_curand_begin(struct report *report, bool dynamic);

/* Writes n values to device memory, on the default stream. False if it fails. */
bool peer_curand_draw(enum peer_curand kind, void *memory, size_t n);

void peer_curand_end(void);

#ifdef __cplusplus
}
#endif

#endif
