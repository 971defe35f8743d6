/* SPDX-License-Identifier: MIT
 *
 * Ranges for Nsight Systems (NVTX): the work of a thread on the device, by name. Without a tool
 * they cost a test of a pointer; without the header of the CUDA Toolkit there are none.
 */
#ifndef SHUFD_RANGES_H
#define SHUFD_RANGES_H

#ifdef SHUF_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
/* Before the first thread that uses ranges: the header's own start is a data race. */
#define SHUF__RANGES_INIT() nvtxInitialize(NULL)
#define SHUF__RANGE_BEGIN(name) ((void)nvtxRangePushA(name))
#define SHUF__RANGE_END() ((void)nvtxRangePop())
#else
#define SHUF__RANGES_INIT() ((void)0)
#define SHUF__RANGE_BEGIN(name) ((void)(name))
#define SHUF__RANGE_END() ((void)0)
#endif

#endif
