/* SPDX-License-Identifier: MIT
 *
 * See end_stream.h.
 */
#include "end_stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct busy_stream {
    cudaStream_t stream;
    int device;
};

static bool is_busy(cudaStream_t stream)
{
    const bool busy = cudaStreamQuery(stream) == cudaErrorNotReady;
    cudaGetLastError(); /* "not ready" stays there as an error */
    return busy;
}

static void *destroy_when_idle(void *context)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    const struct busy_stream b = *(struct busy_stream *)context;
    free(context);
    cudaSetDevice(b.device);
    while (is_busy(b.stream))
        nanosleep(&pause, NULL);
    cudaStreamDestroy(b.stream);
    return NULL;
}

void shuf__nccl_end_stream(cudaStream_t stream, int device)
{
    pthread_t thread;
    if (!is_busy(stream)) {
        cudaStreamDestroy(stream);
        return;
    }
    struct busy_stream *b = malloc(sizeof *b);
    if (!b)
        return;
    *b = (struct busy_stream){stream, device};
    if (pthread_create(&thread, NULL, destroy_when_idle, b) == 0)
        pthread_detach(thread);
    else
        free(b);
}
