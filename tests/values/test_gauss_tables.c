/* SPDX-License-Identifier: MIT
 *
 * The tables of Gaussian streams in the library. The proof of their accuracy succeeds, and fails
 * for other tables. The functions of the proof are compared with sums over all outcomes, the
 * derivatives in the search for tables with finite differences. The program gauss-tables proves the
 * tables, and reports mistakes. With the argument "again" it makes the same tables again, which
 * takes long.
 */
#include "proof.h"
#include "search.h"
#include "shuf/gauss_table.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static shuf__tables tables;
static struct shuf__proof proof;

static void assert_near(double value, double expected, double error)
{
    if (!(fabs(value - expected) <= error))
        fail_msg("%.17g: expected %.17g, at most %g apart", value, expected, error);
}

static int read_header(void **state)
{
    (void)state;
    return shuf__header_read(&tables) && shuf__prove(&tables, &proof) ? 0 : -1;
}

/* ---- The committed table ---- */

static void entries_are_odd_and_sums_exact(void **state)
{
    (void)state;
    int32_t largest = 0;
    int64_t squares = 0;
    for (int t = 0; t < 16; t++)
        for (int j = 0; j < 128; j++) {
            const int32_t entry = shuf_gauss_table[j][t];
            assert_true(entry >= 0);
            assert_int_equal(shuf_gauss_table[j + 128][t], -entry);
            largest = entry > largest ? entry : largest;
            squares += (int64_t)entry * entry;
        }
    /* A float represents every such sum exactly. */
    assert_true(32 * (2 * largest + (1 << 14)) < 1 << 24);
    /* The sum of squares is a third of this number. */
    const int64_t three_times_sum =
        3 * 32 * ((INT64_C(1) << 38)) - 256 * ((INT64_C(1) << 30) - 1) - 8192;
    assert_true(3 * squares == three_times_sum - 1);
}

static void committed_tables_have_no_faults(void **state)
{
    (void)state;
    assert_true(shuf__proof_total(&proof) < 1.01e-9);
    assert_true(proof.chi_mean < 4e-4 && proof.waves.beyond < 1e-2);
    assert_int_equal(shuf__proof_faults(&proof), 0);
}

static int faults_of(const shuf__tables *changed)
{
    static struct shuf__proof other;
    assert_true(shuf__prove(changed, &other));
    return shuf__proof_faults(&other);
}

/* The proof detects a single entry that is larger by 1, because the sum of squares changes. For a
 * few entries the distance of the distribution functions exceeds its limit too. */
static void proof_detects_one_larger_entry(void **state)
{
    (void)state;
    random_start("proof_detects_one_larger_entry");
    shuf__tables changed = tables;
    changed.of[random_below(16)][random_below(127)] += 1;
    assert_in_range(faults_of(&changed), 1, 2);
}

/* The proof detects grossly wrong tables: an entry far too large, equal neighbouring entries, and
 * an entry above the largest allowed one. */
static void proof_detects_wrong_tables(void **state)
{
    (void)state;
    shuf__tables changed = tables;
    changed.of[3][100] += 20000;
    assert_true(faults_of(&changed) >= 3);
    changed = tables;
    for (int t = 0; t < 16; t++)
        for (int j = 0; j < 128; j++)
            changed.of[t][j] = tables.of[t][j / 16 * 16 + 8];
    assert_true(faults_of(&changed) >= 5);
    changed = tables;
    changed.of[0][127] = SHUF__LARGEST + 1;
    assert_int_equal(faults_of(&changed), 2);
}

/* ---- Laws ---- */

enum { TINY = 4 };

static void entry_law_matches_enumeration(void **state)
{
    (void)state;
    random_start("entry_law_matches_enumeration");
    static shuf__entry_law law;
    for (int repeat = 0; repeat < 20; repeat++) {
        int32_t one[TINY], other[TINY];
        for (int i = 0; i < TINY; i++) {
            one[i] = (int32_t)random_below(1 << 17);
            other[i] = (int32_t)random_below(repeat % 2 ? 1 << 10 : 1 << 17);
        }
        shuf__entry_count(one, other, TINY, &law);
        for (int attempt = 0; attempt < 1000; attempt++) {
            const int32_t place = (int32_t)random_below(SHUF__PLACES);
            uint32_t outcomes = 0;
            for (int i = 0; i < TINY * TINY * 8; i++) { /* all signs, and both sides of 0 */
                const int32_t a = i & 16 ? -one[i % TINY] : one[i % TINY];
                const int32_t b = i & 32 ? -other[i / TINY % TINY] : other[i / TINY % TINY];
                const int32_t v = (i & 64 ? -1 - place : place) - a - b;
                outcomes += v >= -(1 << 14) && v < 1 << 14;
            }
            /* 64 outcomes of the draws, each with 2^15 values of the uniform part */
            assert_int_equal(law.count[place], outcomes * ((1u << 30) / (64u << 15)));
        }
    }
}

/* The search treats the uniform part as continuous. The proof sums over each of its values. Both
 * get the same coefficients. */
static void search_and_proof_have_equal_coefficients(void **state)
{
    (void)state;
    static struct shuf__sum sum;
    static struct shuf__pair pair;
    double x[2][SHUF__MAGNITUDES];
    shuf__sum_start(&sum);
    for (int p = 0; p < SHUF__PAIRS; p++) {
        for (int v = 0; v < SHUF__VARIABLES; v++)
            x[v / SHUF__MAGNITUDES][v % SHUF__MAGNITUDES] =
                tables.of[p + v / SHUF__MAGNITUDES * SHUF__PAIRS][v % SHUF__MAGNITUDES] /
                (sum.scale * SHUF__DEVIATION);
        shuf__pair_look(&sum, x[0], x[1], &pair);
        for (int i = 0; i < SHUF__ORDERS; i++)
            assert_near(pair.a[i], proof.entries.a[p].of[i], 2e-9);
    }
}

static void gradients_match_differences(void **state)
{
    (void)state;
    random_start("gradients_match_differences");
    static struct shuf__sum sum;
    static struct shuf__pair at_x, after, before;
    double x[SHUF__VARIABLES];
    const double step = 1e-5;
    shuf__sum_start(&sum);
    for (int v = 0; v < SHUF__VARIABLES; v++)
        x[v] = (double)random_below(1 << 20) * 3e-6;
    shuf__pair_look(&sum, x, x + SHUF__MAGNITUDES, &at_x);
    for (int repeat = 0; repeat < 50; repeat++) {
        const int v = (int)random_below(SHUF__VARIABLES);
        const double at = x[v];
        x[v] = at + step;
        shuf__pair_look(&sum, x, x + SHUF__MAGNITUDES, &after);
        x[v] = at - step;
        shuf__pair_look(&sum, x, x + SHUF__MAGNITUDES, &before);
        x[v] = at;
        for (int i = 0; i < SHUF__ORDERS; i++)
            assert_near((after.a[i] - before.a[i]) / (2 * step), at_x.slope[i][v], 1e-7);
    }
}

/* ---- Blocks ---- */

/* Compares exact moments of Walsh coefficients of random signs with the means of a random sample.
 * The exclusive or of the four indices is 0. */
static void walsh_moments_match_sample_means(void **state)
{
    (void)state;
    random_start("walsh_moments_match_sample_means");
    static const int powers[][4] = {{2, 0, 0, 0}, {2, 2, 0, 0}, {1, 1, 1, 1}, {4, 2, 0, 2}};
    static const unsigned index[4] = {5, 18, 9, 5 ^ 18 ^ 9};
    double sum[4] = {0}, square[4] = {0};
    const int samples = 400000;
    for (int i = 0; i < samples; i++) {
        const uint32_t signs = (uint32_t)random_u64();
        double w[4];
        for (int k = 0; k < 4; k++) {
            w[k] = 0;
            for (unsigned p = 0; p < 32; p++)
                w[k] += (signs >> p & 1) ^ __builtin_parity(p & index[k]) ? -1 / 32.0 : 1 / 32.0;
        }
        for (int m = 0; m < 4; m++) {
            double product = 1;
            for (int k = 0; k < 4; k++)
                product *= pow(w[k], powers[m][k]);
            sum[m] += product / samples;
            square[m] += product * product / samples;
        }
    }
    for (int m = 0; m < 4; m++)
        assert_near(sum[m], shuf__walsh_moment(powers[m]), 6 * sqrt(square[m] / samples));
}

/* Every entry's law differs from the normal law in one Hermite coefficient, a_4. The law of their
 * sum may differ only by a term of first order and its square. */
static void marginal_has_terms_of_one_coefficient(void **state)
{
    (void)state;
    shuf__series a[SHUF__PAIRS];
    memset(a, 0, sizeof a);
    for (int p = 0; p < SHUF__PAIRS; p++) {
        a[p].of[0] = 1;
        a[p].of[2] = 1e-3;
    }
    const struct shuf__marginal m = shuf__marginal_look(a);
    assert_near(m.c.of[2], 1e-3 / 32, 1e-15);
    /* the products of the 32 * 31 / 2 pairs of entries, each times sqrt(8!) / 4! / 32^4 */
    assert_near(m.c.of[4], 1e-6 * 496 * sqrt(40320) / 24 / 1048576, 1e-15);
    /* psi_3(1) / 2 times the normal density at 1, divided by the tail of the normal law */
    assert_near(m.tail[1], 1e-3 / 32 * (-2 / sqrt(6)) / 2 * 0.24197072451914 / 0.158655253931457,
                1e-8);
}

/* cos(a) cos(b) is the mean of cos(a + b) and cos(a - b). For two values of a block, the sum and
 * the difference are each twice the sum of 16 entries. */
static void joint_cosines_match_sums_of_entries(void **state)
{
    (void)state;
    const int set[2] = {3, 10};
    const double t = 0.9;
    double both[2] = {1, 1};
    for (int q = 0; q < 32; q++) {
        const int side = __builtin_parity((3u ^ 10u) & (unsigned)q);
        both[side] *= shuf__wave(&tables, (q + 5) % 8, 2 * t / sqrt(32));
    }
    assert_near(shuf__cosine_offset(&tables, 5, set, 2, t), (both[0] + both[1]) / 2 - exp(-t * t),
                1e-14);
    assert_near(shuf__cosine_first(&tables, 2, t), (both[0] + both[1]) / 2 - exp(-t * t), 2e-10);
}

/* ---- Rounding ---- */

static void rounding_keeps_sum_of_squares(void **state)
{
    (void)state;
    static shuf__reals x;
    static shuf__tables rounded;
    for (int t = 0; t < 16; t++)
        for (int j = 0; j < 128; j++)
            x.of[t][j] = tables.of[t][j] * (1 + 1e-6 * t) + 0.37 * (j % 3);
    assert_true(shuf__round(&x, &rounded));
    int64_t squares = 0;
    for (int t = 0; t < 16; t++)
        for (int j = 0; j < 128; j++) {
            squares += (int64_t)rounded.of[t][j] * rounded.of[t][j];
            assert_in_range(rounded.of[t][j] + 3 - tables.of[t][j], 0, 6);
        }
    assert_true(squares == SHUF__SQUARES);
    x.of[4][4] = 1e6;
    assert_false(shuf__round(&x, &rounded));
}

#ifdef GAUSS_TABLES_PATH

/* ---- The program ---- */

static char directory[] = "/tmp/shuf-gauss-XXXXXX";

/* Runs a script of sh in which $G is gauss-tables, $H the committed header and $D a directory. */
static int run_script(struct command *command, const char *text)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    return command_run(command, 0, argv);
}

static void expect_refused(int status, const char *arguments, const char *words)
{
    struct command c;
    char text[256];
    snprintf(text, sizeof text, "$G %s", arguments);
    assert_int_equal(run_script(&c, text), status);
    assert_int_equal(c.out.size, 0);
    if (!strstr(c.err.bytes, words))
        fail_msg("%s: %s: expected '%s'", arguments, c.err.bytes, words);
    assert_ptr_equal(strchr(c.err.bytes, '\n'), c.err.bytes + c.err.size - 1);
    command_free(&c);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    const char *const both = "expected --out, with --seed or not, or --check";
    expect_refused(64, "", both);
    expect_refused(64, "--seed 1", both);
    expect_refused(64, "--check --out $D/x", both);
    expect_refused(64, "--check --seed 1", both);
    expect_refused(64, "--check x", "argument 'x': expected none");
    expect_refused(64, "--out $D/x --seed -1", "--seed -1: ");
    expect_refused(73, "--out $D/none/x", "/none/x: No such file or directory");
    expect_refused(74, "--check >/dev/full", "standard output: cannot be written");
}

static void check_prints_the_proof(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(run_script(&c, "$G --check"), 0);
    assert_int_equal(c.err.size, 0);
    assert_ptr_equal(strstr(c.out.bytes, "z^2: "), c.out.bytes);
    assert_non_null(strstr(c.out.bytes, "\nN: values that the best test needs"));
    assert_non_null(strstr(c.out.bytes, "\n  k = 16 "));
    command_free(&c);
}

/* The comment in the header has the figures of the proof. */
static void header_contains_the_proof(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(run_script(&c, "$G --check | sed '/^$/,$d' >$D/proof && "
                                    "sed -n 's/^ \\*     //p' $H | sed -n '/^z^2/,$p' | "
                                    "diff - $D/proof && rm $D/proof"),
                     0);
    assert_int_equal(c.out.size, 0);
    command_free(&c);
}

/* The header is equal except for the line that names the compiler. */
static void generated_header_matches_committed(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(run_script(&c, "echo old >$D/h && $G --out $D/h >$D/proof && "
                                    "sed '6s/(.*, on .*/(/' $D/h >$D/new && "
                                    "sed '6s/(.*, on .*/(/' $H >$D/old && "
                                    "cmp $D/new $D/old && $G --check | cmp - $D/proof && "
                                    "rm $D/h $D/new $D/old $D/proof"),
                     0);
    assert_int_equal(c.out.size, 0);
    command_free(&c);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    return setenv("G", GAUSS_TABLES_PATH, 1) | setenv("H", GAUSS_TABLE_H, 1) |
           setenv("D", directory, 1);
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory);
}

#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_odd_and_sums_exact),
        cmocka_unit_test(committed_tables_have_no_faults),
        cmocka_unit_test(proof_detects_one_larger_entry),
        cmocka_unit_test(proof_detects_wrong_tables),
        cmocka_unit_test(entry_law_matches_enumeration),
        cmocka_unit_test(search_and_proof_have_equal_coefficients),
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(walsh_moments_match_sample_means),
        cmocka_unit_test(marginal_has_terms_of_one_coefficient),
        cmocka_unit_test(joint_cosines_match_sums_of_entries),
        cmocka_unit_test(rounding_keeps_sum_of_squares),
    };
#ifdef GAUSS_TABLES_PATH
    const struct CMUnitTest program_tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(check_prints_the_proof),
        cmocka_unit_test(header_contains_the_proof),
    };
    const struct CMUnitTest again[] = {
        cmocka_unit_test(generated_header_matches_committed),
    };
    if (argc > 1 && strcmp(argv[1], "again") == 0)
        return cmocka_run_group_tests(again, set_up, tear_down);
    if (cmocka_run_group_tests(program_tests, set_up, tear_down))
        return 1;
#else
    (void)argc;
    (void)argv;
#endif
    return cmocka_run_group_tests(tests, read_header, NULL);
}
