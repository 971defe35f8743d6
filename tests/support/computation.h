/* SPDX-License-Identifier: MIT
 *
 * Runs computations on the backend under test and compares every value with the inline
 * ciphers, evaluated here one by one in a plain loop.
 */
#ifndef SHUF__TEST_COMPUTATION_H
#define SHUF__TEST_COMPUTATION_H

#include "backend.h"

struct CMUnitTest;

/* The backend that the test's command line named. */
extern struct shuf__backend *backend;

/* Opens it, and keeps to the tests that $SHUF_TEST_FILTER names (with * and ?), if it is set:
 * a sanitizer on a GPU is too slow for the large ones. Exits with 77 where the machine has no such
 * device, with 1 on any other failure. */
struct shuf__backend *computation_open(const char *spec);

/* The kind of memory that computations are computed into: computation_next_kind() goes on to the
 * next in which the backend makes results, from none to the first one; false, and none again, after
 * the last. */
extern enum shuf__memory computation_kind;
bool computation_next_kind(void);
const char *computation_kind_name(void);

/* The tests, of which a macro makes an array and its length, in every kind of memory of the backend
 * that the command line names; what main() returns. */
#define computation_main(argc, argv, tests) \
    computation_run_tests(argc, argv, tests, sizeof(tests) / sizeof *(tests))
int computation_run_tests(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* A block of that kind, of `bytes` rounded up to what a block may have. */
void computation_alloc(uint64_t bytes, struct shuf__block *block);

/* Gives the computation, which is to fill a block of that kind, what is best for it to work in;
 * NULL, and an empty block, where it wants nothing. */
void computation_alloc_workspace(struct shuf__computation *computation,
                                 struct shuf__block *workspace);

/* Runs the computation, which must succeed; returns device_ns. */
uint64_t computation_fill(const struct shuf__computation *computation, struct shuf__block *block);

/* The table's number of an algorithm; fails the test for an unknown name. */
enum shuf_algorithm computation_algorithm(const char *name);

uint64_t computation_values(const struct shuf__computation *computation);
uint64_t computation_bytes(const struct shuf__computation *computation);

/* Bytes of a value, or of a record. */
unsigned computation_width(const struct shuf__computation *computation);

/* The values of a permutation get 4 or 8 bytes. */
void computation_set_width(struct shuf__computation *computation, unsigned width);

/* What the inline ciphers give for the computation's only row; freed by the caller. */
uint64_t *computation_values_of(const struct shuf__computation *computation);

/* A computation that fills so many bytes with values that are not all zeros. */
struct shuf__computation computation_filling(uint64_t bytes);
void computation_fill_whole(struct shuf__block *block);

/* What is in the block is what the computation, of one row, makes. */
void computation_check_block(const struct shuf__computation *computation,
                             const struct shuf__block *block);

/* Whether one of the bytes is not zero. */
bool computation_any_set(const uint8_t *bytes, size_t size);

/* Seconds, from some moment in the past. */
double computation_now(void);

/* Runs the computation and returns the values widened to 64 bits, freed by the caller. On the way
 * it holds the backend to its contract: nothing is written past the result's end, and the
 * fingerprint is the one that a plain sum gives (*fingerprint, may be NULL). */
uint64_t *computation_run(const struct shuf__computation *computation, uint64_t *fingerprint);

/* computation_run(), and each value against the inline ciphers. */
void computation_check(const struct shuf__computation *computation);

/* The whole permutation of [0, n), one row, 8-byte values where n needs them. */
struct shuf__computation computation_whole(enum shuf_algorithm algorithm, uint64_t n, uint64_t seed,
                                           uint64_t epoch);

/* Records moved by the whole permutation; the input is the caller's to set. */
struct shuf__computation computation_shuffle(enum shuf_algorithm algorithm, uint64_t n,
                                             uint64_t seed, uint64_t epoch, uint64_t record);

/* `count` numbers of a stream from `offset` on, of mean 0 and deviation 1. */
struct shuf__computation computation_stream(enum shuf__distribution distribution, shuf_dtype dtype,
                                            uint64_t seed, uint64_t stream, uint64_t offset,
                                            uint64_t count);

#endif
