/* SPDX-License-Identifier: MIT
 *
 * The fields that a line about a request has in the journal.
 */
#ifndef SHUFD_LOG_FIELDS_H
#define SHUFD_LOG_FIELDS_H

#include <stdint.h>
#include <sys/types.h>

/* The request that a line is about. Each member is a field of the journal. */
struct shuf__log_request {
    char id[44];          /* REQUEST_ID: "CONNECTION.ID" */
    pid_t pid;            /* PEER_PID */
    uid_t uid;            /* PEER_UID */
    const char *kind;     /* KIND: "permute" */
    uint64_t n;           /* N; 0: none */
    uint64_t duration_us; /* DURATION_US; 0: none yet */
};

#endif
