/* SPDX-License-Identifier: MIT
 *
 * A request with its defaults filled in and its ranges checked. The client library and the
 * daemon make requests with the same functions, so both give the same errors for the same values.
 * The functions are pure and thread-safe.
 */
#ifndef SHUF__REQUEST_H
#define SHUF__REQUEST_H

#include "dtype.h"
#include "error.h"
#include "shuf/algorithm.h"
#include "shuf/distribution.h"
#include "shuf/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHUF__N_MAX (UINT64_C(1) << 62)

/* Of one-sided plans: the most places of a part, and the most records of a rank. */
#define SHUF__PART_MOST (UINT64_C(1) << 31)
#define SHUF__ONE_SIDED_MOST (UINT64_C(1) << 32)

enum {
    SHUF__KEY_NAME = 31,         /* most characters of a key's name */
    SHUF__RANKS_SIZED = 4000,    /* most ranks with sizes, so that both lists fit a message */
    SHUF__RANKS_EQUAL = 1 << 20, /* most ranks without sizes */
    /* Of one-sided plans. An array of 2^21 numbers of 64 bits fits the L2 cache of a GPU. */
    SHUF__RANKS_ONE_SIDED = 64,
    SHUF__PART_UNIT = 1 << 16,
    SHUF__WINDOW_BITS = 21, /* at least */
    SHUF__WINDOWS_MOST = 256,
};

enum shuf__request_kind {
    SHUF__PERMUTATION, /* values of a permutation */
    SHUF__STREAM,      /* random numbers */
    SHUF__SHUFFLE,     /* records moved by a permutation */
    SHUF__LOOK_UP,     /* single values or positions of a permutation */
    SHUF__BUFFER,      /* memory that the client fills */
    SHUF__EXCHANGE,    /* the plan by which a rank exchanges its records with others */
};

/* Row r is the permutation of [0, n) for the seed and the epoch (epoch + r) mod 2^64. Value i of a
 * row stands at position (offset + i * stride) mod n. Only the last value of a padded shard can
 * stand past the end of the row and wrap to its front. n and stride are from 1 to 2^62. rows is at
 * least 1. offset is below n. count is 0 only if no value of a shard is left. */
struct shuf__permutation {
    uint64_t n, seed, epoch, rows;
    uint64_t seed_high; /* the second word of a named key, else 0: see shuf__request_set_key() */
    uint64_t offset, count, stride;
    /* A windowed order (shuf/windowed.h) with at least two windows; else 0. Only of a PERMUTATION
     * or LOOK_UP by primefold. */
    uint64_t chunk, window;
    enum shuf_algorithm algorithm;
};

/* The values number offset to offset + count - 1 of a stream of `seed`. count >= 1,
 * offset + count <= 2^62. For normal distributions, |mean| <= 2^100 and 2^-100 <= std <= 2^100. For
 * EXPONENTIAL, 2^-100 <= mean <= 2^100; for BERNOULLI, 0 <= mean <= 1. Otherwise mean and std are
 * 0. Neither is -0. For INTEGERS, 1 <= bound, and bound <= 2^32 with u32; otherwise bound is 0. */
struct shuf__stream {
    uint64_t seed, stream;
    uint64_t seed_high; /* as in a permutation */
    uint64_t offset, count;
    double mean, std;
    uint64_t bound;
    enum shuf__distribution distribution; /* never NONE */
};

/* p is the permutation, which is whole and has one row. Record i of the result is record p(i) of
 * the input. With `inverse`, record p(i) of the result is record i of the input. record >= 1,
 * n * record < 2^63. */
struct shuf__shuffle {
    struct shuf__permutation permutation;
    uint64_t record; /* bytes */
    bool inverse;
};

/* The values at given positions or, with `inverse`, the positions of given values. */
struct shuf__look_up {
    struct shuf__permutation permutation; /* whole, one row */
    bool inverse;
};

/* The plan by which one rank exchanges its records with others (docs/cluster.md). All ranks
 * together have n records. Rank r has input[r] records before the exchange, and output[r] after it.
 * Each list has `world` sizes with the sum n. If `input` is NULL, the parts are equal: they differ
 * by 1 at most, and the larger ones are first. If `output` is NULL, it is the same as `input`. rank
 * < world. A plan has lists for the sender and for the receiver or, if it is *one-sided*, only for
 * the receiver. */
struct shuf__plan {
    struct shuf__permutation permutation; /* one whole row, of an algorithm with random access */
    uint64_t rank, world;
    const uint64_t *input, *output; /* lists of the message, or copies by shuf__request_own() */
    bool inverse;
    uint64_t part;      /* one-sided: the places of a part, a multiple of SHUF__PART_UNIT; else 0 */
    uint64_t numbers;   /* of the plan; set by shuf__exchange_make() */
    uint64_t digest[2]; /* of both lists, so that plans can be compared without them; likewise */
};

/* The windows of a one-sided plan. A window has 2^bits records of one rank, the last window of a
 * rank may have fewer. The windows of rank 0 come first, then those of rank 1, ... */
struct shuf__windows {
    unsigned bits;
    uint64_t count; /* of all ranks */
};

/* Consecutive positions. */
struct shuf__range {
    uint64_t first, count;
};

struct shuf__buffer {
    uint64_t bytes; /* at least 1 */
};

/* A named key of the daemon, which replaces the seed. The seed is then 0. The request has only the
 * name, never the bits of the key. */
struct shuf__named_key {
    char name[SHUF__KEY_NAME + 1]; /* "": a seed */
    uint64_t check; /* of its bits, equal for equal bits in every daemon; 0 in a client */
};

struct shuf__request {
    enum shuf__request_kind kind;
    shuf_dtype dtype; /* PERMUTATION, STREAM, EXCHANGE: never AUTO; others: AUTO */
    struct shuf__named_key key;
    union {
        struct shuf__permutation permutation;
        struct shuf__stream stream;
        struct shuf__shuffle shuffle;
        struct shuf__look_up look_up;
        struct shuf__buffer buffer;
        struct shuf__plan plan;
    };
};

/* The view selects the values of each row that the client requests. */
enum shuf__view_kind { SHUF__VIEW_ALL, SHUF__VIEW_SLICE, SHUF__VIEW_SHARD };

struct shuf__view {
    enum shuf__view_kind kind;
    uint64_t offset, stride; /* SLICE */
    uint64_t count;          /* SLICE; SHARD: 0 means all values from `step` on */
    uint64_t rank, world;    /* SHARD: the values of `rank` in torch's DistributedSampler */
    uint64_t step;           /* SHARD: the first `step` values of the rank are left out */
    bool drop_last;          /* SHARD: cut the remainder instead of padding */
};

/* Each of these functions makes a complete request of one kind: it fills in the defaults and checks
 * the ranges. It fails with SHUF_INVALID for the first field that is out of range, or with
 * SHUF_NO_MEMORY for a result of 2^63 bytes or more. After a failure *request is undefined. */

/* Reads n, seed, epoch, rows (0 means 1), chunk, window and algorithm of request->permutation, and
 * dtype. */
shuf_status shuf__permutation_make(struct shuf__request *request, const struct shuf__view *view,
                                   struct shuf__error *error);

/* Reads all of request->stream, and dtype. */
shuf_status shuf__stream_make(struct shuf__request *request, struct shuf__error *error);

/* Reads n, seed, epoch and algorithm of request->shuffle.permutation, and also record and inverse.
 */
shuf_status shuf__shuffle_make(struct shuf__request *request, struct shuf__error *error);

/* Reads n, seed, epoch, chunk, window and algorithm of request->look_up.permutation, and inverse.
 * Each at[i] must be less than n. */
shuf_status shuf__look_up_make(struct shuf__request *request, const uint64_t *at, size_t count,
                               struct shuf__error *error);

shuf_status shuf__buffer_make(struct shuf__request *request, uint64_t bytes,
                              struct shuf__error *error);

/* Reads n, seed, epoch and algorithm of request->plan.permutation, and all other fields of the
 * plan. The type becomes U32 if every number of the plan fits it, else U64. One-sided plans have
 * U32. */
shuf_status shuf__exchange_make(struct shuf__request *request, struct shuf__error *error);

/* Divides the positions [0, n) into `parts` parts, and returns part number `index`. The first n %
 * parts parts have one position more than the others. */
struct shuf__range shuf__equal_part(uint64_t n, uint64_t parts, uint64_t index);

/* The positions of a rank in the input (`output` false) or in the output. */
struct shuf__range shuf__plan_part(const struct shuf__plan *plan, uint64_t rank, bool output);

/* The number of windows of 2^bits records that a rank with so many records has. */
static inline uint64_t shuf__windows_of(uint64_t records, unsigned bits)
{
    return (records >> bits) + ((records & ((UINT64_C(1) << bits) - 1)) != 0);
}

/* Of a one-sided plan. */
struct shuf__windows shuf__plan_windows(const struct shuf__plan *plan);

/* The number of parts of a one-sided plan, at least 1. */
uint64_t shuf__plan_parts(const struct shuf__plan *plan);

/* Copies the lists of sizes, so the request stays valid after its message is freed. False: out of
 * memory. shuf__request_disown() frees the copies. Then the request can still be compared,
 * described and measured, but not computed. */
bool shuf__request_own(struct shuf__request *request);
void shuf__request_disown(struct shuf__request *request);

/* Fails with SHUF_INVALID if the records of the shuffle need more bytes than its input has. The
 * input is `lease`, which has `has` bytes.
 */
shuf_status shuf__shuffle_check_input(const struct shuf__request *request, uint64_t lease,
                                      uint64_t has, struct shuf__error *error);

/* Fails with SHUF_INVALID if `bytes` bytes from `offset` on do not end within the `has` bytes of
 * `lease`. */
shuf_status shuf__write_check(uint64_t lease, uint64_t offset, uint64_t bytes, uint64_t has,
                              struct shuf__error *error);

/* The shape of the result: values, or records of a shuffle, or bytes of a buffer. Not for look-ups.
 */
struct shuf__shape {
    uint64_t rows, count; /* values in a row */
    uint64_t width;       /* bytes of a value */
    uint64_t bytes;       /* rows * count * width */
};

struct shuf__shape shuf__request_shape(const struct shuf__request *request);

/* Sets the key's name; "" or NULL means no key. Fails with SHUF_INVALID if the name is not valid
 * for a key, or if the request has a seed too. */
shuf_status shuf__request_name_key(struct shuf__request *request, const char *name,
                                   struct shuf__error *error);

/* Whether a file of this name can hold a key, or the group of a key. */
bool shuf__key_name_is_valid(const char *name);
bool shuf__key_name_is_group(const char *name);

/* A computation needs the bits of a named key. The first function puts them into a copy of the
 * request. The second one sets them to zero again. */
void shuf__request_set_key(struct shuf__request *request, const shuf_key *key);
void shuf__request_clear_key(struct shuf__request *request);

/* The key that selects the permutation. */
static inline shuf_key shuf__permutation_key(const struct shuf__permutation *p)
{
    const shuf_key key = {{p->seed, p->seed_high}};
    return key;
}

static inline shuf_key shuf__stream_key(const struct shuf__stream *s)
{
    const shuf_key key = {{s->seed, s->seed_high}};
    return key;
}

/* The permutation of a PERMUTATION, SHUFFLE, LOOK_UP or EXCHANGE, else NULL. */
const struct shuf__permutation *shuf__request_permutation(const struct shuf__request *request);

/* The distribution of a STREAM, else SHUF_DISTRIBUTION_NONE. */
enum shuf__distribution shuf__request_distribution(const struct shuf__request *request);

/* Orders requests, as strcmp() orders strings. 0: the results have the same bytes. */
int shuf__request_compare(const struct shuf__request *a, const struct shuf__request *b);

enum { SHUF__REQUEST_TEXT = 320 };

/* Writes a description of the request for the log into `text`, and returns `text`. With `all` the
 * description has every parameter, else only the kind and the main parameters. */
const char *shuf__request_describe(const struct shuf__request *request, bool all,
                                   char text[SHUF__REQUEST_TEXT]);

/* "permute", "shuffle", "index", "buffer", "exchange", or the name of a distribution. Static
 * storage.
 */
const char *shuf__request_name(const struct shuf__request *request);

/* The name in the table of distributions; "none" for any other number. Static storage. */
const char *shuf__distribution_name(unsigned distribution);

#ifdef __cplusplus
}
#endif

#endif
