/* SPDX-License-Identifier: MIT
 *
 * Transports. In the public interface a transport is a bit, so a set of transports is a mask. In
 * the messages it is a number. One table converts between the two.
 */
#ifndef SHUF__TRANSPORT_SET_H
#define SHUF__TRANSPORT_SET_H

#include "error.h"
#include "shuf.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__TRANSPORTS = 4 };

/* Writes the set as a list of *count wire transports. Fails with SHUF_INVALID for an empty or
 * unknown set. */
shuf_status shuf__transport_list(unsigned transports, Shuf__Transport list[SHUF__TRANSPORTS],
                                 size_t *count, struct shuf__error *error);

bool shuf__transport_in(unsigned transports, Shuf__Transport wire);

/* 0 for an unknown transport. */
shuf_transport shuf__transport_of_wire(Shuf__Transport wire);

#endif
