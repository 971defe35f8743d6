/* SPDX-License-Identifier: MIT
 *
 * See driver.cuh.
 */
#include "driver.cuh"

namespace shuf
{

namespace
{

/* Finds a function of libcuda through the runtime. From CUDA 12.5 on, the caller names the version
 * of the function. Before CUDA 12.5 the call has another name, and gives the version that belongs
 * to the runtime. The functions of the table are the same in all these versions. */
cudaError_t entry_point(const char *symbol, unsigned version, void **function)
{
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    *function = nullptr;
#if CUDART_VERSION >= 12050
    cudaError_t e =
        cudaGetDriverEntryPointByVersion(symbol, function, version, cudaEnableDefault, &result);
#else
    (void)version;
    cudaError_t e = cudaGetDriverEntryPoint(symbol, function, cudaEnableDefault, &result);
#endif
    if (e == cudaSuccess && (result != cudaDriverEntryPointSuccess || !*function))
        return cudaErrorSymbolNotFound;
    return e;
}

} // namespace

shuf_status driver_find(Driver *driver, shuf__error *error)
{
    const struct {
        const char *symbol;
        unsigned version;
        void **function;
    } functions[] = {
#define X(symbol, name, version) {#symbol, version, reinterpret_cast<void **>(&driver->name)},
        SHUF__DRIVER_MAP(X)
#undef X
    };
    for (const auto &each : functions) {
        cudaError_t e = entry_point(each.symbol, each.version, each.function);
        if (e != cudaSuccess) {
            cudaGetLastError();
            return shuf__fail(error, SHUF_DEVICE, "cuda: %s in libcuda: %s", each.symbol,
                              cudaGetErrorString(e));
        }
    }
    return SHUF_OK;
}

shuf_status driver_fail(const Driver &driver, shuf__error *error, CUresult e, const char *step)
{
    const char *text = nullptr;
    shuf_status status = e == CUDA_ERROR_OUT_OF_MEMORY ? SHUF_NO_MEMORY : SHUF_DEVICE;
    if (driver.error_string(e, &text) != CUDA_SUCCESS || !text)
        text = "unknown error";
    return shuf__fail(error, status, "cuda: %s: %s", step, text);
}

} // namespace shuf
