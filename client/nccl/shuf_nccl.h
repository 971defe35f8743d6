/* SPDX-License-Identifier: MIT
 *
 * libshuf-nccl: one shuffle of records that lie on the ranks of an NCCL communicator.
 *
 * All ranks call shuf_nccl_shuffle() with the same seed and epoch. Afterwards the outputs of all
 * ranks, one after the other, are the shuffle of all inputs, one after the other. The result is
 * that of one shuf_shuffle(), at any number of ranks. A daemon computes the plan of each rank
 * (shuf_exchange()), and NCCL moves the records.
 *
 *     shuf_nccl_request request = {.seed = 7, .epoch = 3, .record = 8, .input = m, .output = m};
 *     if (shuf_nccl_shuffle(daemon, comm, stream, &request, rows, shuffled) != SHUF_OK)
 *         fprintf(stderr, "%s\n", shuf_nccl_message());
 *
 * Threads: each thread may run a shuffle of its own. As in NCCL, only one thread at a time may use
 * a communicator, and all ranks call its functions in the same order.
 */
#ifndef SHUF_NCCL_H
#define SHUF_NCCL_H

#include "shuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ncclComm;    /* ncclComm_t is a pointer to it */
struct CUstream_st; /* cudaStream_t is a pointer to it */

/* A shuffle over all ranks. A field of 0 has its default. algorithm, seed, key, epoch, inverse and
 * record must be the same on all ranks. */
typedef struct shuf_nccl_request {
    const char *algorithm; /* "primefold" (also for NULL) */
    uint64_t seed, epoch;  /* any */
    const char *key;       /* as in shuf_permutation; at most 31 bytes */
    bool inverse;          /* undoes the shuffle with these sizes exchanged */
    uint64_t record;       /* bytes, at least 1, no default */
    uint64_t input;        /* the records of this rank before the shuffle; may be 0 */
    uint64_t output;       /* its records afterwards; may be 0. The sums of all inputs and of all
                            * outputs are equal */
    uint64_t budget;       /* bytes of temporary memory for the exchange; 0: 256 MiB */
    uint64_t timeout_ms;   /* the longest wait for the other ranks, before the exchange and in each
                            * round of it; 0: no limit */
} shuf_nccl_request;

/* Shuffles the records of all ranks of `comm`. All ranks call it. `input` has input * record bytes,
 * and `output` has output * record bytes. Both are in the memory of the GPU of `comm`. They must
 * not overlap, and may be NULL if they have no records. The call first waits for the earlier work
 * in `stream`, and returns when `output` is complete. `stream` must not be in capture mode.
 * `handle` is a connection of this rank alone, best to the daemon of its GPU. If that daemon
 * computes on another GPU or on a CPU, the plan is copied to this GPU.
 *
 * Temporary memory of the GPU, beside the plan (8 bytes a record, docs/cluster.md): `budget`, and
 * 512 bytes a rank. A round of the exchange moves at least one record between each pair of ranks.
 * So for long records and many ranks it may need more than `budget`. If a GPU has less free memory,
 * all ranks take more and shorter rounds.
 *
 * The ranks first compare their arguments. If these differ, or if one rank cannot get its plan or
 * its memory, all ranks fail with the same status and message, which names the rank. Nothing was
 * sent then, and the communicator can be used again. Such failures are SHUF_INVALID, and those of
 * shuf_exchange_lease().
 *
 * During the exchange the call fails with SHUF_IO (NCCL reports an error; another rank may have
 * ended), SHUF_TIMEOUT or SHUF_DEVICE (an error of CUDA). Such a failure may come on one rank only.
 * The program must then end the communicator with ncclCommAbort(), and the contents of `output`
 * are undefined. The driver frees the temporary memory when the work of NCCL has ended.
 *
 * In all cases the lease of the plan has ended when the call returns. */
SHUF_API shuf_status shuf_nccl_shuffle(shuf *handle, struct ncclComm *comm,
                                       struct CUstream_st *stream, const shuf_nccl_request *request,
                                       const void *input, void *output);

/* One line that explains the last failure of shuf_nccl_shuffle() in this thread; "" after a
 * success. Valid until the next call in this thread. */
SHUF_API const char *shuf_nccl_message(void);

#ifdef __cplusplus
}
#endif

#endif
