/* SPDX-License-Identifier: MIT
 *
 * The threads that compute in this process.
 */
#ifndef SHUF__TEAM_H
#define SHUF__TEAM_H

#include "error.h"

/* Sets *team to the number of threads to use for a request of `threads`; 0 means all processors of
 * the process. Fails with SHUF_IO if the system does not allow so many. */
shuf_status shuf__team(unsigned threads, int *team, struct shuf__error *error);

#endif
