/* SPDX-License-Identifier: MIT
 *
 * Copies from device to host memory, through two pieces of pinned memory. While the device fills
 * one piece, the host empties the other. Without these pieces the driver would copy to memory that
 * is not pinned, which is several times slower.
 */
#ifndef SHUF__CUDA_COPY_CUH
#define SHUF__CUDA_COPY_CUH

#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

struct Bounce {
    char *pieces;          /* pinned */
    char *there;           /* the address of `pieces` on the device */
    cudaEvent_t filled[2]; /* one for each piece */
};

constexpr uint64_t bounce_piece = 4 << 20;

cudaError_t bounce_make(Bounce *bounce);
void bounce_free(Bounce *bounce);

struct Copy {
    const char *from; /* device memory */
    char *to;
    uint64_t bytes;
    uint64_t issued, taken; /* bytes that are queued so far; bytes that are in `to` so far */
};

inline bool is_complete(const Copy &copy)
{
    return copy.taken == copy.bytes;
}

/* Waits for the next piece until the time `until`. If the piece arrives, the call copies it with
 * `threads` threads of the host, and sets *taken. */
cudaError_t copy_piece(Bounce &bounce, Copy *copy, int threads, cudaStream_t stream, uint64_t until,
                       bool *taken);

/* Times of now_ns(), the host's clock. `forever` is a time that never comes. */
constexpr uint64_t forever = UINT64_MAX;
uint64_t now_ns();
uint64_t deadline(uint64_t timeout_ns);

/* A waiting thread polls for so long, and then sleeps. Most work ends sooner, and waking a thread
 * takes tens of microseconds. */
constexpr uint64_t spin_ns = 50000;

/* Waits for the event until the time `until`, and queries it at least once. The event must be
 * created with cudaEventBlockingSync; otherwise the thread would not sleep. */
cudaError_t await(cudaEvent_t event, uint64_t until, bool *happened);

} // namespace shuf

#endif
