/* SPDX-License-Identifier: MIT
 *
 * Blocks of host memory that other processes may map but not write: sealed memfds. The daemon maps
 * the block for writing, then adds F_SEAL_FUTURE_WRITE. Nobody can shrink, grow or unseal a block.
 * A buffer, which a client fills, has no F_SEAL_FUTURE_WRITE.
 *
 * File leases tell whether a block is still mapped. The kernel grants a file lease (fcntl
 * F_SETLEASE) on the daemon's descriptor only if no other process has the file open or mapped. A
 * forked child counts as another process. So a granted lease proves that no other process can read
 * the block. The kernel counts open file descriptions, so the daemon opens the file again for each
 * process. It does not count O_PATH descriptors, although these keep the memory too.
 *
 * The daemon holds the locks of the whole file (fcntl F_OFD_SETLK, flock), so no other process can
 * set any.
 *
 * This code needs /proc. All functions may be called on any thread.
 */
#ifndef SHUF__HOST_MEMFD_H
#define SHUF__HOST_MEMFD_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates a block of zeros. The kernel allocates a page when the page is first used, so this call
 * does not notice a lack of memory: the caller must check the free memory first. Fails with
 * SHUF_NO_MEMORY or SHUF_IO. */
shuf_status shuf__memfd_alloc(uint64_t bytes, struct shuf__block *block, struct shuf__error *error);
/* Allocates such a block that a client may write to. */
shuf_status shuf__memfd_alloc_writable(uint64_t bytes, struct shuf__block *block,
                                       struct shuf__error *error);
void shuf__memfd_free(struct shuf__block *block);

/* A new descriptor for one process, read-only unless the block is client_writable. The caller
 * closes it. Returns -1 with errno. */
int shuf__memfd_share(const struct shuf__block *block);

/* The bytes of the block to which the system has given memory, because some process wrote to
 * them. */
uint64_t shuf__memfd_committed(const struct shuf__block *block);

/* Whether the kernel grants file leases as described above. It grants none if fs.leases-enable is
 * 0, and sandboxes such as gVisor have none. Without leases the daemon cannot learn that a shared
 * block is no longer mapped. The first call tests this, and later calls repeat its answer. */
bool shuf__memfd_knows_mappings(void);

/* Why this process can make no memfd, such as a missing /proc; "": it can. The text stays valid. */
const char *shuf__memfd_fault(void);

/* Why the daemon can lend no memfds: the cause, "; " and an advice. "": it can. The text stays
 * valid. */
const char *shuf__memfd_lending_fault(void);

/* Whether no other process has the block open or mapped. False without file leases. */
bool shuf__memfd_is_unmapped(const struct shuf__block *block);

#ifdef __cplusplus
}
#endif

#endif
