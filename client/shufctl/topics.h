/* SPDX-License-Identifier: MIT
 *
 * The pages of `shufctl help TOPIC`.
 */
#ifndef SHUF__TOPICS_H
#define SHUF__TOPICS_H

#include "program.h"

/* The last has no name. */
extern const struct shuf__topic shuf__topics[];

#endif
