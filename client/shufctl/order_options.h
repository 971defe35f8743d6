/* SPDX-License-Identifier: MIT
 *
 * The options that several verbs have to select an order: --seed or --key, which selects it by a
 * number or by the name of a key of the daemon, and --algorithm.
 */
#ifndef SHUF__ORDER_OPTIONS_H
#define SHUF__ORDER_OPTIONS_H

#include "algorithm.h"
#include "shuf_request.h"

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Rows for the table of options, after those of other required options: an argp row with group 0
 * takes the group of the row before it, and --key has group 1. */
#define SHUF__SEED_OPTIONS(seed, key)                                                        \
    {"seed", seed, "S", 0, "The seed, any number below 2^64 (required, unless --key)", 0},   \
    {                                                                                        \
        "key", key, "NAME", 0, "A key of the daemon instead of a seed: shufctl help keys", 1 \
    }

/* Ends the process if both options are given. */
void shuf__check_seed_options(struct argp_state *state, bool seed, bool key);

/* The value of --key. */
const char *shuf__key_option(struct argp_state *state, const char *text);

enum { SHUF__SEED_TEXT = 48 };

/* "seed 7", or "key training" if `key` is neither NULL nor "". */
const char *shuf__seed_text(char text[SHUF__SEED_TEXT], const char *key, uint64_t seed);

/* A line "seed 7" or "key training". */
void shuf__print_seed(FILE *to, const char *key, uint64_t seed);

/* The field "seed" or "key". */
void shuf__json_seed(json_t *object, const char *key, uint64_t seed);

/* ---- windows ---- */

/* The fields "chunk" and "window", if the order has windows. */
void shuf__json_windows(json_t *object, const shuf_permutation *permutation);

/* ---- the algorithm ---- */

/* The value of --algorithm, whose argument in the help is SHUF__ALGORITHM_CHOICES. Ends the process
 * if it is empty; libshuf checks the name. */
const char *shuf__algorithm_option(struct argp_state *state, const char *text);

/* ---- printing a key ---- */

/* Prints the key of a line that a person reads, and blanks up to the column of the values. The key
 * is bold on a terminal, unless NO_COLOR is set. */
void shuf__print_key(FILE *to, const char *key);

#endif
