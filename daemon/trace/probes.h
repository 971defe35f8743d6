/* SPDX-License-Identifier: MIT
 *
 * Static probes (USDT) of the provider `shufd`, for bpftrace, perf and SystemTap. A probe that
 * nobody uses is one instruction that does nothing. A build without sys/sdt.h has no probes.
 * docs/tracing.md lists the probes.
 */
#ifndef SHUFD_PROBES_H
#define SHUFD_PROBES_H

#ifdef SHUF_HAVE_SDT
#include <sys/sdt.h>
#define SHUF__PROBE(name, a, b, c, d) DTRACE_PROBE4(shufd, name, a, b, c, d)
#else
#define SHUF__PROBE(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif
