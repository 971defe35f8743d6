/* SPDX-License-Identifier: MIT
 *
 * Runs computations on the backend under test. Compares every value with the inline algorithms,
 * evaluated here one by one in a plain loop.
 */
#ifndef SHUF__TEST_COMPUTATION_H
#define SHUF__TEST_COMPUTATION_H

#include "backend.h"

struct CMUnitTest;

/* The backend that the test's command line names. */
extern struct shuf__backend *backend;

/* Opens the backend. If $SHUF_TEST_FILTER is set, only the tests whose names match this pattern
 * (with * and ?) run: with a sanitizer on a GPU, the large tests are too slow. Exits with 77 if the
 * machine has no such device, and with 1 on other failures. */
struct shuf__backend *computation_open(const char *spec);

/* Whether the tests take all their sizes: on a GPU, for the widest vectors ("cpu"), and for every
 * backend if $SHUF_TEST_FULL is set. The other widths take fewer, because they differ from the
 * widest only in the parts that depend on the width. */
extern bool computation_full;

/* The kind of memory that computations fill. computation_next_kind() selects the next kind in which
 * the backend makes results. It returns false after the last. */
extern enum shuf__memory computation_kind;
bool computation_next_kind(void);
const char *computation_kind_name(void);

/* Runs the tests in every kind of memory of the backend that the command line names. main() returns
 * its result. */
#define computation_main(argc, argv, tests) \
    computation_run_tests(argc, argv, tests, sizeof(tests) / sizeof *(tests))
int computation_run_tests(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* Allocates a block of that kind, with `bytes` rounded up to a multiple of SHUF__BLOCK_UNIT. */
void computation_alloc(uint64_t bytes, struct shuf__block *block);

/* Allocates the best workspace for a computation that fills a block of that kind. If the
 * computation needs none, computation->workspace is NULL and `block` is empty. */
void computation_alloc_workspace(struct shuf__computation *computation,
                                 struct shuf__block *workspace);

/* Runs the computation, which must succeed; returns device_ns. */
uint64_t computation_fill(const struct shuf__computation *computation, struct shuf__block *block);

/* The table's number of an algorithm; fails the test for an unknown name. */
enum shuf_algorithm computation_algorithm(const char *name);

uint64_t computation_value_count(const struct shuf__computation *computation);
uint64_t computation_bytes(const struct shuf__computation *computation);

/* Bytes of a value, or of a record. */
unsigned computation_width(const struct shuf__computation *computation);

/* The values of a permutation get 4 or 8 bytes. */
void computation_set_width(struct shuf__computation *computation, unsigned width);

/* Computes the values of the computation's only row with the inline algorithms. The caller frees
 * them. */
uint64_t *computation_expected_values(const struct shuf__computation *computation);

/* A computation that fills `bytes` bytes with values that are not all zeros. */
struct shuf__computation computation_of_bytes(uint64_t bytes);
void computation_fill_block(struct shuf__block *block);

/* Checks that the block has the values of the computation, which has one row. */
void computation_check_block(const struct shuf__computation *computation,
                             const struct shuf__block *block);

/* Whether one of the bytes is not zero. */
bool computation_has_nonzero(const uint8_t *bytes, size_t size);

/* Seconds since an arbitrary moment. */
double computation_seconds(void);

/* Runs the computation and returns its values, widened to 64 bits; the caller frees them. Checks
 * that nothing is written past the end of the result, and that the fingerprint equals a plain sum,
 * also that of a pass.
 * *fingerprint gets the fingerprint; the pointer may be NULL. */
uint64_t *computation_run(const struct shuf__computation *computation, uint64_t *fingerprint);

/* Runs computation_run(), and compares each value with the inline algorithms. */
void computation_check(const struct shuf__computation *computation);

/* The whole permutation of [0, n), one row, with 8-byte values if n needs them. */
struct shuf__computation computation_whole(enum shuf_algorithm algorithm, uint64_t n, uint64_t seed,
                                           uint64_t epoch);

/* A shuffle by the whole permutation. The caller sets the input. */
struct shuf__computation computation_shuffle(enum shuf_algorithm algorithm, uint64_t n,
                                             uint64_t seed, uint64_t epoch, uint64_t record);

/* `count` numbers of a stream from number `offset`, with mean 0 and deviation 1. */
struct shuf__computation computation_stream(enum shuf__distribution distribution, shuf_dtype dtype,
                                            uint64_t seed, uint64_t stream, uint64_t offset,
                                            uint64_t count);

#endif
