/* SPDX-License-Identifier: MIT
 *
 * The order of an epoch in the memory of a GPU, queued in a CUDA stream: no daemon has to run.
 * Needs libshuf-cuda.
 */
#include <cuda_runtime_api.h>
#include <err.h>
#include <shuf.h>
#include <stdio.h>

int main(void)
{
    const shuf_request request = {
        .permutation = {.algorithm = "philox24", .n = 1000000, .seed = 7, .epoch = 3}};
    const size_t bytes = 1000000 * sizeof(uint32_t);
    size_t room; /* of the workspace: 0 for primefold without windows, and for numbers */
    void *order, *workspace;
    uint32_t first;
    cudaStream_t stream;
    if (shuf_cuda_workspace(&request, &room) != SHUF_OK)
        errx(1, "%s", shuf_message(NULL));
    if (cudaStreamCreate(&stream) || cudaMalloc(&order, bytes) || cudaMalloc(&workspace, room))
        errx(1, "%s", cudaGetErrorString(cudaGetLastError()));
    if (shuf_cuda_fill(&request, order, bytes, workspace, room, stream) != SHUF_OK)
        errx(1, "%s",
             shuf_message(NULL)); /* else the kernels of the program follow in the stream */
    if (cudaMemcpyAsync(&first, order, sizeof first, cudaMemcpyDeviceToHost, stream) ||
        cudaStreamSynchronize(stream))
        errx(1, "%s", cudaGetErrorString(cudaGetLastError()));
    printf("the first sample is %u\n", first);
}
