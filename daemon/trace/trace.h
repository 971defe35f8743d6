/* SPDX-License-Identifier: MIT
 *
 * Marks for tracers: probes and ranges.
 *
 * Static probes (USDT) of the provider `shufd` serve bpftrace, perf and SystemTap. A probe that
 * nobody uses is one instruction that does nothing. A build without sys/sdt.h has no probes.
 * docs/tracing.md lists the probes.
 *
 * Ranges for Nsight Systems (NVTX) show the work of a thread on the device, by name. If no tool is
 * attached, a range costs only the test of a pointer. A build without the header of the CUDA
 * Toolkit has no ranges.
 */
#ifndef SHUFD_TRACE_H
#define SHUFD_TRACE_H

#ifdef SHUF_HAVE_SDT
#include <sys/sdt.h>
#define SHUF__PROBE(name, a, b, c, d) DTRACE_PROBE4(shufd, name, a, b, c, d)
#else
#define SHUF__PROBE(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

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
