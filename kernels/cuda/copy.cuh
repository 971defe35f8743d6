/* SPDX-License-Identifier: MIT
 *
 * From device to host memory, through two pinned pieces in turns: while the
 * device fills one, the host empties the other. The driver copies to memory that
 * is not pinned at a fraction of that speed.
 */
#ifndef SHUF__CUDA_COPY_CUH
#define SHUF__CUDA_COPY_CUH

#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

struct Bounce {
    char *pieces;          /* pinned */
    char *there;           /* the same, where the device sees it */
    cudaEvent_t filled[2]; /* of either piece */
};

constexpr uint64_t bounce_piece = 4 << 20;

cudaError_t bounce_make(Bounce *bounce);
void bounce_free(Bounce *bounce);

struct Copy {
    const char *from; /* device memory */
    char *to;
    uint64_t bytes;
    uint64_t issued, taken; /* bytes that are on their way or have come; that have come */
};

inline bool is_complete(const Copy &copy)
{
    return copy.taken == copy.bytes;
}

/* Takes the next piece, if it comes before `until`; *taken says so. `threads`: of the host. */
cudaError_t copy_piece(Bounce &bounce, Copy *copy, int threads, cudaStream_t stream, uint64_t until,
                       bool *taken);

/* The host's clock, as now_ns() gives it; `forever` is a time that never comes. */
constexpr uint64_t forever = UINT64_MAX;
uint64_t now_ns();
uint64_t deadline(uint64_t timeout_ns);

/* How long a thread waits without going to sleep: most work is over sooner, and to be woken takes
 * tens of microseconds. */
constexpr uint64_t spin_ns = 50000;

/* Waits for the event, which is best made with cudaEventBlockingSync, until then at most. It is
 * requested once in any case. */
cudaError_t await(cudaEvent_t event, uint64_t until, bool *happened);

} // namespace shuf

#endif
