/* SPDX-License-Identifier: MIT
 *
 * Has an order filled: a summary of a result, or its values in a file; by a copy,
 * or by a lease.
 */
#ifndef SHUF__DELIVER_H
#define SHUF__DELIVER_H

#include "order.h"

/* The exit code, after a line where it failed. */
int shuf__deliver(const struct shuf__order *order);

#endif
