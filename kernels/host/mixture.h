/* SPDX-License-Identifier: MIT
 *
 * A mixture of sources by weights: its plan, look-ups of single places, and ranges of places.
 * docs/spec.md, "Mixtures".
 */
#ifndef SHUF__HOST_MIXTURE_H
#define SHUF__HOST_MIXTURE_H

#include "backend.h"
#include "shuf/mixture.h"
#include "shuf/windowed.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SHUF__SOURCES_MOST = 4096,
    SHUF__BLOCK_MOST = 1 << 20,
    SHUF__BLOCK_DEFAULT = 4096,
    SHUF__LEAVES_MOST = 1 << 21, /* of all stages together */
};

struct shuf__data_set {
    uint64_t records, epochs; /* 0 epochs: without end */
    uint64_t first;           /* the index of its first record in all sources */
    uint64_t limit;           /* records * epochs, or UINT64_MAX */
    shuf_key key;
    shuf_primefold_shape shape; /* of a uniform epoch */
    bool windowed;
    shuf_windows windows;
};

/* The positions from `first` on, in which the weights do not change. */
struct shuf__stage {
    uint64_t first, length;
    uint64_t blocks; /* in the stages before */
    shuf_mixture_tree tree;
    uint32_t *source; /* of each leaf, ascending */
    uint64_t *before; /* records of this source before the stage */
    shuf_primefold_shape last_block;
};

struct shuf__mixture {
    const struct shuf__simd_ops *simd;
    uint64_t block, length;
    shuf_key block_key;
    shuf_primefold_shape block_shape;
    uint32_t source_count;
    struct shuf__data_set *sources;
    /* The numbers of the stages of each source, ascending: those of source i are stage_of[j] for j
     * from first_stage[i] to first_stage[i + 1] - 1. */
    uint32_t *first_stage, *stage_of;
    size_t stage_count, stage_room;
    struct shuf__stage *stages;
};

struct shuf__place {
    uint64_t epoch, record;
    uint32_t source;
};

/* The caller's stage: see shuf_mixture.h. */
struct shuf__weights {
    uint64_t first;
    const uint64_t *weights;
};

/* Each source has `records`, `epochs`, and `windows` with n, chunk and window, or zeros there. */
shuf_status shuf__mixture_make(struct shuf__mixture *m, const struct shuf__simd_ops *simd,
                               uint64_t seed, uint64_t block, const struct shuf__data_set *sources,
                               size_t source_count, const struct shuf__weights *stages,
                               size_t stage_count, struct shuf__error *error);
void shuf__mixture_free(struct shuf__mixture *m);

/* A block of positions, of which `slots` are left in its stage. */
struct shuf__mixture_block {
    const struct shuf__stage *stage;
    uint64_t from; /* its first position, counted from the beginning of the stage */
    uint64_t slots;
};

/* The block of a position below the length. */
struct shuf__mixture_block shuf__mixture_block(const struct shuf__mixture *m, uint64_t position);

/* The order of the block's slots: slot number order(i) is that of its position i. */
void shuf__mixture_block_order(const struct shuf__mixture *m,
                               const struct shuf__mixture_block *block,
                               union shuf__bijection *order);

/* A place of the mixture, at a position below the length. */
struct shuf__place shuf__mixture_look_up(const struct shuf__mixture *m, uint64_t position);

/* The position of a place, or UINT64_MAX. */
uint64_t shuf__mixture_position(const struct shuf__mixture *m, const struct shuf__place *place);

/* Records of each source among the positions before `position`, which is at most the length. */
void shuf__mixture_counts(const struct shuf__mixture *m, uint64_t position, uint64_t *counts);

/* See shuf_mixture_exhausted(). */
void shuf__mixture_exhausted(const struct shuf__mixture *m, uint64_t *positions);

/* ---- Ranges ---- */

/* The arrays of the caller, each of which may be NULL. */
struct shuf__places {
    uint64_t *index;
    uint32_t *source;
    uint64_t *epoch, *record;
};

/* What threads keep of the epochs that they have read, while no call uses it. Thread-safe, also in
 * a child of fork(). */
struct shuf__mixture_readers;

struct shuf__mixture_readers *shuf__mixture_readers_new(void);
void shuf__mixture_readers_free(struct shuf__mixture_readers *readers);

/* Writes the places at first, first + stride, ..., which are below the length, by a team of
 * threads. `computation` has only the caller's question whether it is cancelled; then this fails
 * with SHUF_CANCELLED. Fails with SHUF_NO_MEMORY without memory for the windows of a source. */
shuf_status shuf__mixture_fill(const struct shuf__mixture *m, struct shuf__mixture_readers *readers,
                               int threads, const struct shuf__computation *computation,
                               uint64_t first, uint64_t count, uint64_t stride,
                               const struct shuf__places *out, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
