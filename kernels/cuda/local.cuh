/* SPDX-License-Identifier: MIT
 *
 * The shared part of the functions of cuda_library.h: checks of the caller's memory, and errors.
 * The functions for weights are in local_weights.cu.
 */
#ifndef SHUF__CUDA_LOCAL_CUH
#define SHUF__CUDA_LOCAL_CUH

#include "cuda_library.h"

#include <cuda_runtime.h>

namespace shuf
{

/* The device of the memory is the current device of this thread while the object exists. */
class OnDevice
{
  public:
    OnDevice() = default;
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;

    ~OnDevice()
    {
        if (before >= 0)
            cudaSetDevice(before);
    }

    cudaError_t enter(int device)
    {
        int now = 0;
        cudaError_t e = cudaGetDevice(&now);
        if (e != cudaSuccess || now == device)
            return e;
        before = now;
        return cudaSetDevice(device);
    }

  private:
    int before = -1;
};

/* Clears the error of an earlier call of this thread, which belongs to the caller's own work. */
shuf_status fail_local(shuf__error *error, cudaError_t e, const char *step);

/* Checks that a kernel can use the memory, and finds its device. */
shuf_status find_memory(const char *name, const void *memory, size_t alignment, int *device,
                        shuf__error *error);

/* The same for further memory, which must be on the same device. */
shuf_status check_memory(const char *name, const void *memory, size_t alignment, int device,
                         shuf__error *error);

/* Fails if kernels would overwrite the workspace, or read it as records. */
shuf_status check_apart(const char *name, const void *memory, size_t bytes,
                        const shuf__scratch_memory *scratch, size_t needed, shuf__error *error);

/* Fails unless the workspace is large enough, and on this device. */
shuf_status check_workspace(const shuf__scratch_memory *scratch, size_t needed, int device,
                            shuf__error *error);

/* Fails while a CUDA graph captures the stream. `reason`: what else is needed. */
shuf_status refuse_capture(cudaStream_t stream, const char *reason, shuf__error *error);

extern const shuf__cuda_weights local_weights;

} // namespace shuf

#endif
