/* SPDX-License-Identifier: MIT
 *
 * The CPU's inner loops. simd_ops.c and ops_*.c are compiled once for each instruction set, with
 * SHUF_SIMD set to its name. Each compiled simd_ops.c has one struct shuf__simd_ops, a table of its
 * loops. variants.c picks the best table for this processor.
 *
 * Values have 32 bits ("narrow") or 64 ("wide"). They are narrow if the domain has at most 32 bits;
 * with primefold, if its words have at most 32 bits.
 */
#ifndef SHUF__SIMD_OPS_H
#define SHUF__SIMD_OPS_H

#include "dtype.h"
#include "error.h"
#include "shuf/algorithm.h"
#include "shuf/bernoulli.h"
#include "shuf/box_muller.h"
#include "shuf/distribution.h"
#include "shuf/exponential.h"
#include "shuf/gauss.h"
#include "shuf/integers.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/uniform.h"
#include "simd/primefold.h"

#include <stddef.h>
#include <stdint.h>

/* The name of a symbol for the instruction set that is being compiled, such as name_avx2. */
#define SHUF__SIMD_PASTE_(a, b) a##_##b
#define SHUF__SIMD_PASTE(a, b) SHUF__SIMD_PASTE_(a, b)
#define SHUF__SIMD_NAME(name) SHUF__SIMD_PASTE(name, SHUF_SIMD)

/* Whether the loops use vectors explicitly: for all sets but `scalar`. All processors of aarch64
 * have NEON, so kernels/CMakeLists.txt defines SHUF_NEON. */
#if defined(__AVX2__) || defined(SHUF_NEON)
#define SHUF__SIMD_VECTORS
#endif

union shuf__bijection {
    struct shuf__primefold primefold;
    shuf_philox24 philox24;
    shuf_lcg lcg;
};

/* X(NAME, name, type, value): for each distribution, the type of its parameters, and their value
 * for a stream `s` (request.h) of the key `key`. Its loops are in a file ops_*.c. */
#define SHUF__SOURCES(X)                                                                        \
    X(GAUSS, gauss, shuf_gauss, shuf_gauss_make_keyed(key, s->stream, s->mean, s->std))         \
    X(UNIFORM, uniform, shuf_stream, shuf_uniform_make_keyed(key, s->stream))                   \
    X(BOX_MULLER, box_muller, shuf_box_muller,                                                  \
      shuf_box_muller_make_keyed(key, s->stream, s->mean, s->std))                              \
    X(EXPONENTIAL, exponential, shuf_exponential,                                               \
      shuf_exponential_make_keyed(key, s->stream, s->mean))                                     \
    X(BERNOULLI, bernoulli, shuf_bernoulli, shuf_bernoulli_make_keyed(key, s->stream, s->mean)) \
    X(INTEGERS, integers, shuf_integers, shuf_integers_make_keyed(key, s->stream, s->bound))

/* The parameters of a stream. */
union shuf__source {
#define SHUF__ROW(NAME, name, type, value) type name;
    SHUF__SOURCES(SHUF__ROW)
#undef SHUF__ROW
};

/* A window of a windowed order. Its record number x, or x + gap from gap_at on, is in the chunk
 * number x / chunk of the window. Narrow numbers are below 2^31, and x / chunk is x * multiplier >>
 * shift (Granlund, Montgomery: "Division by invariant integers using multiplication", 1994). */
struct shuf__window_map {
    uint64_t chunk, gap_at, gap;
    uint32_t multiplier;
    unsigned shift;
};

/* A window of a windowed order over unequal chunks. Chunk k of the window has the numbers first[k]
 * to first[k + 1] - 1, and after the last chunk first[] has `step` numbers that no number reaches.
 * guide[x >> shift] is the last chunk that begins at that multiple of 2^shift or before it, and
 * fewer than 2 * step chunks after it begin before the next multiple. `first` and `moves` have the
 * types of the numbers and of the records. */
struct shuf__chunk_map {
    const int32_t *guide;
    const void *first, *moves;
    unsigned shift;
    int32_t step; /* a power of two, or 0 */
};

/* Writes SHUF__SUPER values, from value number SHUF__SUPER * super on. */
typedef void shuf__draw(const union shuf__source *source, uint64_t super, void *out);
enum { SHUF__SUPER = SHUF_GAUSS_SUPER };

struct shuf__simd_ops {
    const char *name;

    /* The loop for a distribution and one of its types. */
    shuf__draw *(*stream)(enum shuf__distribution distribution, shuf_dtype dtype);

    /* out[i] = -2 ln u, for the u that words[2 * i] and words[2 * i + 1] give (shuf/box_muller.h).
     */
    void (*exponential_keys)(const uint64_t *words, double *out, size_t count);

    /* A loop for each algorithm: out[i] = f((x0 + i * step) mod 2^B) for i < count. The loop of
     * primefold takes positions x0 + i * step, all below n. */
    void (*narrow[SHUF_ALGORITHM_COUNT])(const union shuf__bijection *f, uint32_t x0, uint32_t step,
                                         uint32_t *out, size_t count);
    void (*wide[SHUF_ALGORITHM_COUNT])(const union shuf__bijection *f, uint64_t x0, uint64_t step,
                                       uint64_t *out, size_t count);

    /* Turns numbers of a window into records (map_window in ops_windowed.c). */
    void (*records_narrow)(const struct shuf__window_map *map, const uint32_t *moves,
                           const uint32_t *in, uint32_t *out, size_t count);
    void (*records_widened)(const struct shuf__window_map *map, const uint64_t *moves,
                            const uint32_t *in, uint64_t *out, size_t count);
    void (*records_wide)(const struct shuf__window_map *map, const uint64_t *moves,
                         const uint64_t *in, uint64_t *out, size_t count);

    /* The same for unequal chunks (ops_windowed.c). */
    void (*search_narrow)(const struct shuf__chunk_map *map, const uint32_t *in, uint32_t *out,
                          size_t count);
    void (*search_widened)(const struct shuf__chunk_map *map, const uint32_t *in, uint64_t *out,
                           size_t count);
    void (*search_wide)(const struct shuf__chunk_map *map, const uint64_t *in, uint64_t *out,
                        size_t count);

    /* Moves the values below n to the front, in order. Returns their number. The rest of the array
     * is then undefined. */
    size_t (*compact_narrow)(uint32_t *values, size_t count, uint32_t n);
    size_t (*compact_wide)(uint64_t *values, size_t count, uint64_t n);

    /* The sum of shuf_fingerprint_term(first + i, values[i]). */
    uint64_t (*fingerprint_half)(const uint16_t *values, size_t count, uint64_t first);
    uint64_t (*fingerprint_narrow)(const uint32_t *values, size_t count, uint64_t first);
    uint64_t (*fingerprint_wide)(const uint64_t *values, size_t count, uint64_t first);
};

#ifdef __cplusplus
extern "C" {
#endif

/* The names of the instruction sets of all architectures, best first. */
enum { SHUF__SIMD_SETS = 4 };
extern const char *const shuf__simd_names[SHUF__SIMD_SETS];

/* name: one of them; NULL for the best. Fails with SHUF_INVALID for an unknown name, and with
 * SHUF_DEVICE if this processor lacks the instructions. */
shuf_status shuf__simd_choose(const char *name, const struct shuf__simd_ops **simd,
                              struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#ifdef SHUF_SIMD
/* Functions of ops_*.c for the table. */
void SHUF__SIMD_NAME(shuf__exponential_keys)(const uint64_t *words, double *out, size_t count);
/* Writes the words of draws of a uniform stream, from draw number `index` on. `count` is a multiple
 * of 64, the words of a vector. */
void SHUF__SIMD_NAME(shuf__uniform_words)(const shuf_stream *s, uint64_t index, uint32_t *out,
                                          size_t count);
shuf__draw *SHUF__SIMD_NAME(shuf__stream)(enum shuf__distribution distribution, shuf_dtype dtype);
#define SHUF__ROW(NAME, name, type, value) \
    shuf__draw *SHUF__SIMD_NAME(shuf__##name)(shuf_dtype dtype);
SHUF__SOURCES(SHUF__ROW)
#undef SHUF__ROW
void SHUF__SIMD_NAME(shuf__records_narrow)(const struct shuf__window_map *map,
                                           const uint32_t *moves, const uint32_t *in, uint32_t *out,
                                           size_t count);
void SHUF__SIMD_NAME(shuf__records_widened)(const struct shuf__window_map *map,
                                            const uint64_t *moves, const uint32_t *in,
                                            uint64_t *out, size_t count);
void SHUF__SIMD_NAME(shuf__records_wide)(const struct shuf__window_map *map, const uint64_t *moves,
                                         const uint64_t *in, uint64_t *out, size_t count);
void SHUF__SIMD_NAME(shuf__search_narrow)(const struct shuf__chunk_map *map, const uint32_t *in,
                                          uint32_t *out, size_t count);
void SHUF__SIMD_NAME(shuf__search_widened)(const struct shuf__chunk_map *map, const uint32_t *in,
                                           uint64_t *out, size_t count);
void SHUF__SIMD_NAME(shuf__search_wide)(const struct shuf__chunk_map *map, const uint64_t *in,
                                        uint64_t *out, size_t count);
uint64_t SHUF__SIMD_NAME(shuf__fingerprint_half)(const uint16_t *values, size_t count,
                                                 uint64_t first);
uint64_t SHUF__SIMD_NAME(shuf__fingerprint_narrow)(const uint32_t *values, size_t count,
                                                   uint64_t first);
uint64_t SHUF__SIMD_NAME(shuf__fingerprint_wide)(const uint64_t *values, size_t count,
                                                 uint64_t first);
void SHUF__SIMD_NAME(shuf__primefold_narrow)(const union shuf__bijection *f, uint32_t position,
                                             uint32_t stride, uint32_t *out, size_t count);
void SHUF__SIMD_NAME(shuf__primefold_wide)(const union shuf__bijection *f, uint64_t position,
                                           uint64_t stride, uint64_t *out, size_t count);
#endif

#endif
