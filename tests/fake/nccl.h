/* SPDX-License-Identifier: MIT
 *
 * A libnccl.so.2 for tests: the ranks are threads of one process, which may share one GPU. It has
 * the functions that libshuf-nccl calls. A call waits on the host for the other ranks, and then
 * queues copies and events.
 */
#ifndef SHUF__TEST_FAKE_NCCL_H
#define SHUF__TEST_FAKE_NCCL_H

#include <nccl.h>

/* In the communicators that are made later, call number `call` of this rank fails, counted from 1:
 * an all-gather, or the end of a group. The calls of the other ranks then succeed, but their work
 * never ends until ncclCommAbort(). They see `error` as the state of their communicators.
 * `call` 0: no failure. */
void fake_nccl_break(int rank, int call, ncclResult_t error);

#endif
