/* SPDX-License-Identifier: MIT
 *
 * Sets of transports, as the public interface has them: 1u << transport.
 */
#ifndef SHUF__TRANSPORT_H
#define SHUF__TRANSPORT_H

#include "error.h"
#include "shuf.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__TRANSPORTS = 4 };

/* The set as a list; *count: how many there are. SHUF_INVALID where it holds none or others. */
shuf_status shuf__transport_list(unsigned transports, Shuf__Transport list[SHUF__TRANSPORTS],
                                 size_t *count, struct shuf__error *error);

bool shuf__transport_in(unsigned transports, Shuf__Transport transport);

#endif
