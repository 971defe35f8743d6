/* SPDX-License-Identifier: MIT
 *
 * The ranks tell each other their arguments and failures, so that all ranks fail in the same way.
 * Otherwise some of them would wait for the records of the others. Knows neither NCCL nor CUDA.
 */
#ifndef SHUF__NCCL_AGREEMENT_H
#define SHUF__NCCL_AGREEMENT_H

#include "error.h"
#include "shuf_nccl.h"

enum { SHUF__NCCL_VERSION = 1, SHUF__NCCL_NAME = 32, SHUF__NCCL_REPORT = 512 };

/* The message of a rank to all others. `status` and `error` are its failure. Every version has the
 * same size, and begins with its number. */
struct shuf__nccl_report {
    uint64_t version, seed, epoch, inverse, record;
    uint64_t input, output;
    uint64_t rounds;                                       /* 0 until the plan is known */
    char algorithm[SHUF__NCCL_NAME], key[SHUF__NCCL_NAME]; /* key "": the seed */
    uint64_t status;
    char error[SHUF__NCCL_REPORT - 9 * sizeof(uint64_t) - 2 * SHUF__NCCL_NAME];
};

/* Describes the arguments of this rank. If they are wrong, the report has the failure. */
void shuf__nccl_describe(const shuf_nccl_request *request, const void *input, const void *output,
                         struct shuf__nccl_report *report);

void shuf__nccl_report_failure(const struct shuf__error *error, struct shuf__nccl_report *report);

/* Fails if a rank has failed. Every rank fails with the same text. */
shuf_status shuf__nccl_check_failures(const struct shuf__nccl_report *reports, unsigned world,
                                      struct shuf__error *error);

/* Fails also if the arguments of a rank differ from those of rank 0, or if the sizes do not have
 * the same sum. */
shuf_status shuf__nccl_check_arguments(const struct shuf__nccl_report *reports, unsigned world,
                                       struct shuf__error *error);

/* The sum of the inputs, and the most rounds of a rank. */
uint64_t shuf__nccl_sum_inputs(const struct shuf__nccl_report *reports, unsigned world);
uint64_t shuf__nccl_most_rounds(const struct shuf__nccl_report *reports, unsigned world);

#endif
