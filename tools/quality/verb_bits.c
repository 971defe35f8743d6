/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality bits` writes a few values of each of many permutations, as a stream of bits for
 * programs that judge random numbers. 2^w is the largest power of two up to n. A value below 2^w
 * gives w unbiased bits; other values are skipped. The values of a permutation never repeat, but
 * the values of a random stream sometimes do. So only a few values of each permutation are taken.
 */
#include "algorithm.h"
#include "generator.h"
#include "option.h"
#include "options.h"
#include "report.h"
#include "verb.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { WORDS = 8192, TAKE = 64, TAKE_MOST = 4096 };

struct bits {
    const struct shuf__lookups *lookups;
    struct shuf__origin origin; /* seed and epoch of the rows */
    uint64_t n, stride, take;
    uint64_t bytes; /* the number of bytes that are still to be written */
};

struct packer {
    unsigned __int128 pending;
    unsigned used, width; /* the number of bits that wait to be written; bits of a value */
    size_t count;
    uint64_t word[WORDS];
};

/* ---- Options ---- */

static const struct shuf__lookups *find(struct argp_state *state, const char *name)
{
    char expected[SHUF__ALGORITHM_LIST];
    const struct shuf__lookups *row = shuf__lookups;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    if (!row->name)
        shuf__option_fail(state, EX_USAGE, "--generator %.64s: expected %s", name,
                          shuf__algorithm_list(expected));
    return row;
}

static void check(struct argp_state *state, const struct bits *b)
{
    const struct shuf__required required[] = {
        {b->lookups != NULL, "--generator primefold"},
        {b->n != 0, "--n 4Gi"},
    };
    shuf__option_require(state, required, sizeof required / sizeof *required);
    if (b->lookups->compacted && (b->n < 16 || (b->n & (b->n - 1)) != 0))
        shuf__option_fail(state, EX_USAGE,
                          "--n %" PRIu64
                          ": expected a power of two from 16 on, where %s is known by "
                          "position",
                          b->n, b->lookups->name);
    if (b->take > b->n || (b->take > 1 && b->stride > (b->n - 1) / (b->take - 1)))
        shuf__option_fail(state, EX_USAGE,
                          "--take %" PRIu64 " --stride %" PRIu64
                          ": expected positions below n, which is %" PRIu64,
                          b->take, b->stride, b->n);
    if (isatty(STDOUT_FILENO))
        shuf__option_fail(
            state, EX_USAGE,
            "standard output is a terminal; expected a pipe or a file, as in | dieharder "
            "-g 200 -a");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct bits *b = state->input;
    switch (key) {
    case 'g':
        b->lookups = find(state, text);
        return 0;
    case 'n':
        b->n = shuf__quality_number(state, "--n", text, 2, UINT64_C(1) << 62);
        return 0;
    case 't':
        b->take = shuf__quality_number(state, "--take", text, 1, TAKE_MOST);
        return 0;
    case 'd':
        b->stride = shuf__quality_number(state, "--stride", text, 1, UINT64_C(1) << 62);
        return 0;
    case 's':
        b->origin.seed = shuf__quality_number(state, "--seed", text, 0, UINT64_MAX);
        return 0;
    case 'e':
        b->origin.epoch = shuf__quality_number(state, "--epoch", text, 0, UINT64_MAX);
        return 0;
    case 'v':
        b->origin.vary_seed = shuf__quality_choice(state, "--vary", text, "epoch", "seed");
        return 0;
    case 'b':
        b->bytes = shuf__quality_number(state, "--bytes", text, 1, UINT64_MAX);
        return 0;
    case ARGP_KEY_END:
        check(state, b);
        return 0;
    default:
        return shuf__option_common(key, text, state);
    }
}

/* ---- The stream ---- */

/* Returns false if all bits are written, or if a write fails. */
static bool flush(struct bits *b, struct packer *packer)
{
    const uint64_t have = sizeof *packer->word * packer->count;
    const size_t size = (size_t)(have < b->bytes ? have : b->bytes);
    packer->count = 0;
    if (fwrite(packer->word, 1, size, stdout) != size)
        return false; /* main() reports the failure */
    if (b->bytes != UINT64_MAX)
        b->bytes -= size;
    return b->bytes > 0;
}

static bool put(struct bits *b, struct packer *packer, uint64_t value)
{
    packer->pending |= (unsigned __int128)value << packer->used;
    packer->used += packer->width;
    if (packer->used < 64)
        return true;
    packer->word[packer->count++] = (uint64_t)packer->pending;
    packer->pending >>= 64;
    packer->used -= 64;
    return packer->count < WORDS || flush(b, packer);
}

static bool put_row(struct bits *b, struct packer *packer, const void *made)
{
    uint64_t value[TAKE_MOST];
    b->lookups->values(made, b->stride, b->take, value);
    for (size_t i = 0; i < b->take; i++)
        if (value[i] >> packer->width == 0 && !put(b, packer, value[i]))
            return false;
    return true;
}

static void write_stream(struct bits *b)
{
    static struct packer packer;
    _Alignas(64) unsigned char made[SHUF__LOOKUPS_STATE] = {0};
    packer.width = 63 - (unsigned)__builtin_clzll(b->n);
    for (uint64_t row = 0;; row++) {
        const struct shuf__place place = shuf__place_of(&b->origin, SHUF__SELF, 0, row);
        b->lookups->make(made, b->n, place.seed, place.epoch);
        if (!put_row(b, &packer, made))
            return;
    }
}

int shuf__quality_bits(int argc, char **argv)
{
    static const struct argp_option option_table[] = {
        {"generator", 'g', SHUF__ALGORITHM_CHOICES, 0, "The generator (required)", 1},
        {"n", 'n', "N", 0, "The size of the permutations (required)", 1},
        {"take", 't', "K", 0, "Take K values of each permutation (default 64)", 1},
        {"stride", 'd', "S", 0, "The distance between their positions (default 1)", 1},
        {"seed", 's', "S", 0, "The seed of the first permutation (default 0)", 2},
        {"epoch", 'e', "E", 0, "The epoch of the first permutation (default 0)", 2},
        {"vary", 'v', "WHAT", 0,
         "Change this from one permutation to the next: epoch (default) or seed", 2},
        {"bytes", 'b', "COUNT", 0, "Write so many bytes (default: until the reader ends)", 3},
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .doc = "Writes values of permutations as raw random bits, for dieharder -g 200.",
    };
    struct bits bits = {.stride = 1, .take = TAKE, .bytes = UINT64_MAX};
    shuf__options_parse(&argp, argc, argv, &bits);
    write_stream(&bits);
    return EX_OK;
}
