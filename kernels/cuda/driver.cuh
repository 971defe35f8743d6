/* SPDX-License-Identifier: MIT
 *
 * Finds the functions of libcuda that the runtime does not offer, by name and at run time. If the
 * program were linked with libcuda, it would not start on a machine without a driver.
 */
#ifndef SHUF__CUDA_DRIVER_CUH
#define SHUF__CUDA_DRIVER_CUH

#include "error.h"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

namespace shuf
{

/* X(name in libcuda, name here, CUDA version of the function) */
#define SHUF__DRIVER_MAP(X)                                  \
    X(cuGetErrorString, error_string, 6000)                  \
    X(cuMemCreate, create, 10020)                            \
    X(cuMemRelease, release, 10020)                          \
    X(cuMemExportToShareableHandle, export_to_handle, 10020) \
    X(cuMemAddressReserve, reserve, 10020)                   \
    X(cuMemAddressFree, unreserve, 10020)                    \
    X(cuMemMap, map, 10020)                                  \
    X(cuMemUnmap, unmap, 10020)                              \
    X(cuMemSetAccess, set_access, 10020)

struct Driver {
#define X(symbol, name, version) PFN_##symbol##_v##version name;
    SHUF__DRIVER_MAP(X)
#undef X
};

shuf_status driver_find(Driver *driver, shuf__error *error);

/* Does the same as fail(), for errors of the driver. */
shuf_status driver_fail(const Driver &driver, shuf__error *error, CUresult e, const char *step);

} // namespace shuf

#endif
