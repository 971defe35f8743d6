/* SPDX-License-Identifier: MIT
 *
 * Transports: the public ones are bits, so that a set is a mask; the wire's are numbers. Only
 * the table here knows both.
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

bool shuf__transport_in(unsigned transports, Shuf__Transport wire);

/* 0 where it is none that is known here. */
shuf_transport shuf__transport_of_wire(Shuf__Transport wire);

#endif
