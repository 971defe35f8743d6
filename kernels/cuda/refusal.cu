/* SPDX-License-Identifier: MIT
 *
 * Why CUDA does not work here, in one line for users: the GPUs that CUDA may see, the architectures
 * of this build, and the compute mode. ../cuda_library.c checks the driver. CUDA does not count the
 * GPUs that it hides, so the management library of the driver (NVML, that of nvidia-smi) does.
 */
#include "cuda.cuh"

#include <cstdlib>
#include <dlfcn.h>

namespace shuf
{

namespace
{

/* ---- The management library ---- */

struct Machine {
    unsigned gpus;
    bool has_mig; /* a GPU is divided into MIG devices, or ready for it */
};

class Nvml
{
    void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    /* Calls a function of NVML. False if it fails, or if there is no such function. */
    template <typename... Arguments> bool call(const char *name, Arguments... arguments) const
    {
        void *const function = library ? dlsym(library, name) : nullptr;
        return function && reinterpret_cast<int (*)(Arguments...)>(function)(arguments...) == 0;
    }

  public:
    ~Nvml()
    {
        if (library)
            dlclose(library);
    }

    Machine look() const
    {
        Machine machine{};
        if (!call("nvmlInit_v2"))
            return machine;
        call("nvmlDeviceGetCount_v2", &machine.gpus);
        for (unsigned i = 0; i < machine.gpus; i++) {
            void *gpu = nullptr;
            unsigned now = 0, later = 0;
            if (call("nvmlDeviceGetHandleByIndex_v2", i, &gpu) &&
                call("nvmlDeviceGetMigMode", gpu, &now, &later))
                machine.has_mig = machine.has_mig || now;
        }
        call("nvmlShutdown");
        return machine;
    }
};

/* ---- The causes ---- */

shuf_status fail_without_device(shuf__error *error)
{
    const char *const visible = getenv("CUDA_VISIBLE_DEVICES");
    const Machine machine = Nvml().look();
    if (machine.gpus && visible)
        return shuf__fail(error, SHUF_DEVICE,
                          "cuda: CUDA_VISIBLE_DEVICES=%.200s hides all %u NVIDIA GPUs; expected "
                          "an index or a UUID of nvidia-smi -L",
                          visible, machine.gpus);
    if (machine.has_mig)
        return shuf__fail(error, SHUF_DEVICE,
                          "cuda: the NVIDIA GPU is in MIG mode, but has no MIG device; make one by "
                          "nvidia-smi mig -cgi PROFILE -C, or end the mode by nvidia-smi -mig 0, "
                          "as root");
    return shuf__fail(error, SHUF_DEVICE,
                      "cuda: no NVIDIA GPU; expected one in the output of nvidia-smi -L");
}

shuf_status fail_without_code(shuf__error *error)
{
    int device = 0, major = 0, minor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    return shuf__fail(error, SHUF_DEVICE,
                      "cuda: device %d has compute capability %d.%d, for which this build has no "
                      "code; expected one of " SHUF_CUDA_ARCHITECTURES ", in tenths",
                      device, major, minor);
}

} // namespace

shuf_status refuse_prohibited(int device, shuf__error *error)
{
    int mode = 0;
    if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device) != cudaSuccess ||
        mode != cudaComputeModeProhibited)
        return SHUF_OK;
    return shuf__fail(error, SHUF_DEVICE,
                      "cuda: device %d is in compute mode Prohibited; expected Default: nvidia-smi "
                      "--compute-mode=DEFAULT, as root",
                      device);
}

shuf_status fail(shuf__error *error, cudaError_t e, const char *step)
{
    const shuf_status status = e == cudaErrorMemoryAllocation ? SHUF_NO_MEMORY : SHUF_DEVICE;
    cudaGetLastError();
    if (e == cudaErrorNoDevice)
        return fail_without_device(error);
    if (e == cudaErrorNoKernelImageForDevice || e == cudaErrorUnsupportedPtxVersion)
        return fail_without_code(error);
    if (e == cudaErrorDevicesUnavailable)
        return shuf__fail(error, status,
                          "cuda: %s: the GPU is busy; in compute mode Exclusive_Process only one "
                          "process may use it: nvidia-smi --compute-mode=DEFAULT, as root",
                          step);
    return shuf__fail(error, status, "cuda: %s: %s", step, cudaGetErrorString(e));
}

} // namespace shuf
