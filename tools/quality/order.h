/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality order`: windowed orders, mixtures and weighted draws against their exact laws.
 *
 * Most of these laws say that a piece of an order is a uniform permutation, and independent of the
 * other pieces. Such pieces are rows for the tests of permutations (test.h). The other laws are
 * counts and sums over many samples, with exact probabilities, or exact means and variances.
 */
#ifndef SHUF__QUALITY_ORDER_H
#define SHUF__QUALITY_ORDER_H

#include "run.h"
#include "shuf.h"
#include "shuf/windowed.h"

#include <stdbool.h>

/* ---- The orders (order_source.c) ---- */

/* A mistake in an order, on purpose: the tests must detect it. */
struct shuf__fault {
    const char *name, *family, *what;
    const char *test, *detail; /* of a finding that fails: a test, and a part of its detail */
    int number;
};

/* The table ends with a row whose name is NULL. */
extern const struct shuf__fault shuf__faults[];

struct shuf__order_run {
    const struct shuf__fault *fault; /* NULL: the orders of libshuf */
    uint64_t seed;
    uint64_t effort; /* a factor of the number of samples of each test */
    int threads;
    struct shuf__findings *findings;
};

/* Writes the windowed order of one epoch. */
void shuf__order_windows(const struct shuf__order_run *run, const shuf_windows *sizes,
                         uint64_t seed, uint64_t epoch, uint32_t *record);

/* The mixture that was read last, and its seed. Zeros at first. */
struct shuf__mixed {
    shuf_mixture *made;
    uint64_t seed;
};

/* Writes the places of a mixture of another seed than that of the request. */
void shuf__order_mixture(const struct shuf__order_run *run, const shuf_mixture_request *request,
                         struct shuf__mixed *mixed, uint64_t seed, uint64_t first, size_t count,
                         const shuf_mixed *out);
void shuf__mixed_close(struct shuf__mixed *mixed);

struct shuf__weight_set {
    const char *name;
    uint32_t count;
    double *weight, *p; /* p: the weights divided by their sum */
    shuf_weights *table;
};

void shuf__order_draws(const struct shuf__order_run *run, const struct shuf__weight_set *set,
                       uint64_t seed, uint64_t epoch, uint64_t first, size_t count, uint64_t stride,
                       uint64_t *index);
void shuf__order_sample(const struct shuf__order_run *run, const struct shuf__weight_set *set,
                        uint64_t seed, uint64_t epoch, size_t sample, uint64_t *index);

/* ---- Running the tests (verb_order.c) ---- */

/* A kind of pieces: row (seed, epoch) is a uniform permutation of 0 .. n - 1, independent of the
 * others. */
struct shuf__pieces {
    const char *name;
    const struct shuf__order_run *run;
    const void *context;
    uint32_t n;
    uint64_t rows; /* with an effort of 1 */
    void (*row)(const struct shuf__pieces *pieces, struct shuf__mixed *mixed, uint64_t seed,
                uint64_t epoch, uint32_t *row);
};

/* Runs the tests of permutations on pieces. */
void shuf__order_judge_pieces(const struct shuf__pieces *pieces);

/* Writes the ranks of n different values. */
void shuf__order_rank(const uint32_t *value, uint32_t n, uint32_t *rank);

/* Sums over samples: `add` adds those of the samples first to end - 1. */
struct shuf__sums {
    const void *context;
    uint64_t samples; /* with an effort of 1 */
    size_t words;
    void (*add)(const struct shuf__order_run *run, const void *context, uint64_t first,
                uint64_t end, double *sum);
};

/* The caller frees the sums. They do not depend on the number of threads. */
double *shuf__order_sum(const struct shuf__order_run *run, const struct shuf__sums *sums);

/* Add a finding: for independent counts with given probabilities, for a sum with a mean and a
 * variance, and for a number of violations of a law without exceptions. */
void shuf__order_find_counts(const struct shuf__order_run *run, uint32_t n, const double *count,
                             const double *p, size_t cells, const char *detail, ...)
    __attribute__((format(printf, 6, 7)));
void shuf__order_find_sum(const struct shuf__order_run *run, uint32_t n, double sum, double mean,
                          double variance, const char *detail, ...)
    __attribute__((format(printf, 6, 7)));
void shuf__order_find_exact(const struct shuf__order_run *run, uint32_t n, double violations,
                            const char *detail);

/* Ends the process unless the status is SHUF_OK. */
void shuf__order_expect(shuf_status status);
void *shuf__order_allocate(size_t count, size_t size); /* zeros */

/* ---- The families ---- */

void shuf__order_judge_windowed(const struct shuf__order_run *run);
void shuf__order_judge_mixture(const struct shuf__order_run *run);
void shuf__order_judge_weighted(const struct shuf__order_run *run);

struct shuf__order_family {
    const char *name, *what;
    void (*judge)(const struct shuf__order_run *run);
};

/* The table ends with a row whose name is NULL. */
extern const struct shuf__order_family shuf__order_families[];

#endif
