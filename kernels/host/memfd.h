/* SPDX-License-Identifier: MIT
 *
 * Blocks of host memory that other processes may map but not write: sealed memfds. The daemon maps
 * the block for writing, then adds F_SEAL_FUTURE_WRITE. Nobody can shrink, grow or unseal a block.
 * A buffer that a client fills has no F_SEAL_FUTURE_WRITE.
 *
 * Each process gets its own open file description, because the kernel counts these. It grants a
 * file lease (fcntl F_SETLEASE) on the daemon's descriptor only if no other process, such as a
 * forked child, has the file open or mapped. So a granted lease proves that no other process can
 * read the block. An O_PATH descriptor is not counted: it keeps the memory.
 *
 * Needs /proc. All functions may be called on any thread.
 */
#ifndef SHUF__HOST_MEMFD_H
#define SHUF__HOST_MEMFD_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates a block of zeros. The kernel allocates its pages at the first access, so the caller
 * first checks the free memory. Fails with SHUF_NO_MEMORY or SHUF_IO. */
shuf_status shuf__memfd_alloc(uint64_t bytes, struct shuf__block *block, struct shuf__error *error);
/* The same for a block that a client may write to. */
shuf_status shuf__memfd_alloc_writable(uint64_t bytes, struct shuf__block *block,
                                       struct shuf__error *error);
void shuf__memfd_free(struct shuf__block *block);

/* A new descriptor for one process, read-only unless the block is client_writable. The caller
 * closes it. Returns -1 with errno. */
int shuf__memfd_share(const struct shuf__block *block);

/* Bytes of the block that have memory of the system, whichever process wrote to them first. */
uint64_t shuf__memfd_committed(const struct shuf__block *block);

/* Whether the kernel grants file leases as described above. Some do not: fs.leases-enable may be 0,
 * and sandboxes such as gVisor have none. Then a block that was shared can never be known to be
 * unmapped. Tested once. */
bool shuf__memfd_knows_mappings(void);

/* Whether no other process has the block open or mapped. False without file leases. */
bool shuf__memfd_is_unmapped(const struct shuf__block *block);

#ifdef __cplusplus
}
#endif

#endif
