/* SPDX-License-Identifier: MIT
 *
 * The resident memory of this process, for its metrics.
 */
#ifndef SHUFD_RESIDENT_H
#define SHUFD_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

bool shuf__resident_bytes(uint64_t *bytes);

#endif
