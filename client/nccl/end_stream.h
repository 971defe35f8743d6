/* SPDX-License-Identifier: MIT
 *
 * The end of the stream on which NCCL works. If another rank has ended, this work waits until
 * ncclCommAbort(). Against its documentation, cudaStreamDestroy() then waits for the work too, and
 * meanwhile blocks the CUDA calls of all threads, and so ncclCommAbort() itself.
 */
#ifndef SHUF__NCCL_END_STREAM_H
#define SHUF__NCCL_END_STREAM_H

#include <cuda_runtime.h>

/* Destroys a stream of the device, at once if it is idle, else on another thread when its work has
 * ended. Returns without waiting. If no thread can be created, the stream remains. */
void shuf__nccl_end_stream(cudaStream_t stream, int device);

#endif
