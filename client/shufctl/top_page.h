/* SPDX-License-Identifier: MIT
 *
 * The page of `shufctl top`, as lines of text.
 */
#ifndef SHUF__TOP_PAGE_H
#define SHUF__TOP_PAGE_H

#include "top_sample.h"

#include <stdio.h>

/* Prints the page: the state `now`, and the rates since `before`. */
void shuf__top_print(const char *socket, const struct shuf__top_sample *before,
                     const struct shuf__top_sample *now, FILE *to);

/* The time in nanoseconds within which this share of the requests between the two samples was
 * answered. It is the upper bound of a bucket; 0 if there were no requests. */
uint64_t shuf__top_quantile(const struct shuf__top_sample *before,
                            const struct shuf__top_sample *now, double share);

#endif
