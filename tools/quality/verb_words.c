/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality words`: the words of Philox4x32 of neighbouring draws, for each number of rounds.
 * Multiplications by inverses undo the last round except for its key, which cancels out between two
 * draws. So the test sees one round fewer, in all 32 bits of a word.
 */
#include "findings.h"
#include "json.h"
#include "options.h"
#include "provenance.h"
#include "report.h"
#include "shuf.h"
#include "verb.h"

#include "shuf/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

enum { BITS = 32, WORDS = 8, MOST_ROUNDS = 16, KEYS = 16 };
enum { KEY_ROUNDS = 0x100, KEY_SAMPLES, KEY_SEED };

static const char *const names[WORDS] = {"word 0",    "word 1",    "word 2",    "word 3",
                                         "before, 0", "before, 1", "before, 2", "before, 3"};

struct options {
    unsigned rounds;
    uint64_t samples, seed;
    struct shuf__judging judging;
};

static const char *no_test(int i)
{
    (void)i;
    return NULL;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    if (key == KEY_ROUNDS)
        o->rounds = (unsigned)shuf__quality_number(state, "--rounds", text, 1, MOST_ROUNDS);
    else if (key == KEY_SAMPLES)
        o->samples = shuf__quality_number(state, "--samples", text, 1000, UINT64_C(1) << 40);
    else if (key == KEY_SEED)
        o->seed = shuf__quality_number(state, "--seed", text, 0, UINT64_MAX);
    else
        return shuf__judging_parse(key, text, state, &o->judging, no_test);
    return 0;
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct argp_option option_table[] = {
        {"rounds", KEY_ROUNDS, "R", 0, "The number of rounds (default 6, of early words)", 1},
        {"samples", KEY_SAMPLES, "COUNT", 0, "Compare so many neighbouring draws (default 3e5)", 1},
        {"seed", KEY_SEED, "S", 0, "The seed of the keys (default 0)", 1},
        {"alpha", SHUF__KEY_ALPHA, "P", 0, "The probability that good words fail (default 0.001)",
         2},
        {"json", SHUF__KEY_JSON, NULL, 0, "Print one JSON object instead of a table", 2},
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .doc = "Compares the words of neighbouring draws of Philox4x32 after R rounds.",
    };
    *o = (struct options){.rounds = SHUF_GAUSS_EARLY_ROUNDS, .samples = 300000};
    shuf__judging_init(&o->judging);
    shuf__options_parse(&argp, argc, argv, o);
}

/* An inverse modulo 2^32, by Newton's method. */
static uint32_t inverse(uint32_t odd)
{
    uint32_t x = odd;
    for (int i = 0; i < 5; i++)
        x *= 2 - odd * x;
    return x;
}

/* The words, and those of the round before. Words 1 and 3 of these lack the last round's key. */
static void take(const shuf_stream *s, uint64_t index, unsigned rounds, uint32_t word[WORDS])
{
    shuf_philox4x32 c = {{(uint32_t)index, s->high[0], (uint32_t)(index >> 32), s->high[1]}};
    c = shuf_philox4x32_rounds(c, s->key[0], s->key[1], (int)rounds);
    for (int i = 0; i < 4; i++)
        word[i] = c.word[i];
    word[4] = inverse(SHUF_PHILOX4X32_M0) * c.word[3];
    word[6] = inverse(SHUF_PHILOX4X32_M1) * c.word[1];
    word[5] = c.word[0] ^ (uint32_t)((uint64_t)SHUF_PHILOX4X32_M1 * word[6] >> 32);
    word[7] = c.word[2] ^ (uint32_t)((uint64_t)SHUF_PHILOX4X32_M0 * word[4] >> 32);
}

/* Counts how often each bit differs between draw i and draw i + 1 of one key. */
static void count_flips(const shuf_stream *s, const struct options *o, uint64_t flips[WORDS][BITS])
{
    uint32_t now[WORDS], last[WORDS];
    take(s, 0, o->rounds, last);
    for (uint64_t i = 1; i <= o->samples; i++) {
        take(s, i, o->rounds, now);
        for (int w = 0; w < WORDS; w++) {
            for (int b = 0; b < BITS; b++)
                flips[w][b] += (now[w] ^ last[w]) >> b & 1;
            last[w] = now[w];
        }
    }
}

static void judge(const struct options *o, struct shuf__findings *all)
{
    all->test = "words";
    for (uint64_t key = 0; key < KEYS; key++) {
        static uint64_t flips[WORDS][BITS];
        const shuf_stream s = shuf_stream_make(shuf_key_of_seed(o->seed), key, SHUF_STREAM_GAUSS);
        for (int w = 0; w < WORDS; w++)
            for (int b = 0; b < BITS; b++)
                flips[w][b] = 0;
        count_flips(&s, o, flips);
        for (int w = 0; w < WORDS; w++)
            for (int b = 0; b < BITS; b++)
                shuf__find(all, 0, (double)flips[w][b] / (double)o->samples, 0.5,
                           shuf__coin_p(flips[w][b], o->samples), "%s, bit %d, key %" PRIu64,
                           names[w], b, key);
    }
    shuf__findings_decide(all);
}

static void print_table(const struct options *o, const struct shuf__findings *all)
{
    size_t shown = 0;
    printf("Philox4x32-%u, seed %" PRIu64 ", %d keys, %" PRIu64 " neighbouring draws each\n\n",
           o->rounds, o->seed, KEYS, o->samples);
    for (size_t i = 0; i < all->count && shown < 20; i++)
        if (all->finding[i].failed && ++shown)
            printf("%-28s flips %.4f of the times, p (Holm) %.3g\n", all->finding[i].detail,
                   all->finding[i].statistic, all->finding[i].p_holm);
    printf("%s%s: %zu of %zu findings failed, at %g for all together\n", shown ? "\n" : "",
           all->failed ? "FAILED" : "passed", all->failed, all->count, all->alpha);
}

static void print_json(const struct options *o, const struct shuf__findings *all)
{
    json_t *object = json_object(), *array = json_array();
    for (size_t i = 0; i < all->count; i++) {
        json_t *one = json_object();
        shuf__report_finding(one, &all->finding[i]);
        json_array_append_new(array, one);
    }
    shuf__json_text(object, "shuf_quality", shuf_version());
    shuf__provenance_json(object);
    shuf__json_integer(object, "rounds", o->rounds);
    shuf__json_integer(object, "samples", o->samples);
    shuf__json_decimal(object, "seed", o->seed);
    json_object_set_new(object, "alpha", json_real(all->alpha));
    json_object_set_new(object, "passed", json_boolean(all->failed == 0));
    shuf__json_integer(object, "failed", all->failed);
    json_object_set_new(object, "findings", array);
    shuf__json_print(object, stdout);
}

int shuf__quality_words(int argc, char **argv)
{
    struct options options;
    struct shuf__findings all = {0};
    parse(argc, argv, &options);
    all.alpha = options.judging.alpha;
    judge(&options, &all);
    if (options.judging.json)
        print_json(&options, &all);
    else
        print_table(&options, &all);
    const int code = all.failed ? SHUF__EXIT_FAILED : EX_OK;
    shuf__findings_free(&all);
    return code;
}
