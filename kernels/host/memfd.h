/* SPDX-License-Identifier: MIT
 *
 * Blocks of host memory that other processes may map but not write: a sealed
 * memfd. The seals are the kernel's promise: F_SEAL_FUTURE_WRITE after our own
 * writable mapping, and nobody can shrink, grow or unseal it. One that a client is
 * to fill lacks only the first of them.
 *
 * Every process that is to have it gets an open file description of its own, because
 * a lease (fcntl F_SETLEASE) covers those: it is granted for our read-only
 * descriptor exactly when no other is left anywhere, whether as a descriptor or as
 * a mapping, in forked children too. That is the proof that a block is nobody's.
 *
 * Needs /proc. Any thread.
 */
#ifndef SHUF__HOST_MEMFD_H
#define SHUF__HOST_MEMFD_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zeros. Pages are the kernel's to give when they are first touched: whether there are
 * enough is the caller's to ask first. Fails with SHUF_NO_MEMORY or SHUF_IO. */
shuf_status shuf__memfd_alloc(uint64_t bytes, struct shuf__block *block, struct shuf__error *error);
/* The same of one that is shared for writing too. */
shuf_status shuf__memfd_alloc_writable(uint64_t bytes, struct shuf__block *block,
                                       struct shuf__error *error);
void shuf__memfd_free(struct shuf__block *block);

/* A new descriptor for one process, read-only unless the block is client_writable; the caller's to
 * close; -1 with errno. */
int shuf__memfd_share(const struct shuf__block *block);

/* Bytes of it that the system has given memory for, whoever wrote to them. */
uint64_t shuf__memfd_committed(const struct shuf__block *block);

/* No other process has it open or mapped. */
bool shuf__memfd_is_unmapped(const struct shuf__block *block);

#ifdef __cplusplus
}
#endif

#endif
