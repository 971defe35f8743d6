/* SPDX-License-Identifier: MIT
 *
 * Ranges for Nsight Systems (NVTX): they show the work of a thread on the device, by name. If no
 * tool is attached, a range costs only the test of a pointer. A build without the header of the
 * CUDA Toolkit has no ranges.
 */
#ifndef SHUFD_RANGES_H
#define SHUFD_RANGES_H

#ifdef SHUF_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
/* Call before the first thread that uses ranges starts. Otherwise the header initialises itself at
 * the first range, and two threads that do so at once are a data race. */
#define SHUF__RANGES_INIT() nvtxInitialize(NULL)
#define SHUF__RANGE_BEGIN(name) ((void)nvtxRangePushA(name))
#define SHUF__RANGE_END() ((void)nvtxRangePop())
#else
#define SHUF__RANGES_INIT() ((void)0)
#define SHUF__RANGE_BEGIN(name) ((void)(name))
#define SHUF__RANGE_END() ((void)0)
#endif

#endif
