/* SPDX-License-Identifier: MIT
 *
 * gauss-tables: makes the tables of Gaussian streams from a seed, or proves the compiled tables.
 */
#include "exit.h"
#include "option.h"
#include "proof.h"
#include "search.h"
#include "shuf/philox4x64.h"
#include "tables.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- The start of the search ---- */

/* Quantiles of the normal law. The seed shifts the quantiles of each table differently, and makes
 * the tails of some tables heavier and of others lighter. */

/* Random numbers from a seed, by Philox4x64 of kernels/inline. */
struct random {
    uint64_t seed, drawn;
};

static uint64_t random_word(struct random *random)
{
    const shuf_philox4x64 counter = {{random->drawn++, 0, 0, 0}};
    return shuf_philox4x64_10(counter, random->seed, 0).word[0];
}

enum { M = SHUF__MAGNITUDES };

static const double bend = 0.05, shift = 0.4, grid = 0x1p20;

/* Rounds to a grid. So all libraries give the same start, although the last digits of their
 * functions differ. */
static double on_grid(double x)
{
    return rint(x * grid) / grid;
}

/* A random number between -1 and 1. */
static double draw(struct random *random)
{
    return (double)((int64_t)random_word(random) >> 11) * 0x1p-52;
}

static void start_table(double *x, double offset, double by)
{
    double squares = 0;
    for (int j = 0; j < M; j++) {
        const double p = fmin(0.5 + (j + 0.5 + offset) / (2 * M), 1 - 0.15 / (2 * M));
        x[j] = on_grid(gsl_cdf_ugaussian_Pinv(p));
        x[j] = on_grid(x[j] * exp(by * (x[j] * x[j] - 1)));
        squares += x[j] * x[j];
    }
    for (int j = 0; j < M; j++)
        x[j] /= sqrt(squares / M);
}

static void start(struct random *random, shuf__reals *x)
{
    for (int t = 0; t < SHUF__TABLES; t++) {
        const double offset = shift * draw(random);
        start_table(x->of[t], offset, bend * draw(random));
    }
}

/* ---- The program ---- */

/* gauss-tables: makes the tables of Gaussian streams from a seed, or proves the compiled tables. */

enum { KEY_SEED = 0x100, KEY_OUT, KEY_CHECK, EXIT_FAULTS = 1 };

struct options {
    uint64_t seed;
    const char *out;
    bool check, seeded;
};

/* ---- Making ---- */

static bool make_tables(uint64_t seed, shuf__tables *tables)
{
    static shuf__reals x;
    struct random random = {seed, 0};
    start(&random, &x);
    if (!shuf__search(&x))
        return shuf__fail_with(0, "search: no memory");
    if (!shuf__round(&x, tables))
        return shuf__fail_with(
            0, "rounding: a magnitude is too large, or no rounding gives the squares");
    return true;
}

static bool write_header(const struct options *o, const shuf__tables *tables,
                         const struct shuf__proof *proof, FILE *to)
{
    struct utsname machine;
    char made_by[256], made_with[256];
    uname(&machine);
    snprintf(made_by, sizeof made_by,
             "gauss-tables --seed %" PRIu64 " --out kernels/inline/shuf/gauss_table.h", o->seed);
#ifdef __clang__
    const char *compiler = __VERSION__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    snprintf(made_with, sizeof made_with, "%s, on %s", compiler, machine.machine);
    return shuf__header_write(tables, proof, made_by, made_with, to);
}

static int make(const struct options *o)
{
    static shuf__tables tables;
    /* The file is opened before the work, to fail early, and emptied after it. */
    FILE *to = fopen(o->out, "a");
    if (!to)
        return shuf__fail_with(EX_CANTCREAT, "%s: %s", o->out, strerror(errno));
    if (!make_tables(o->seed, &tables)) {
        fclose(to);
        return EX_SOFTWARE;
    }
    if (ftruncate(fileno(to), 0) != 0 && errno != EINVAL) /* a pipe gives EINVAL */
        return shuf__fail_with(EX_IOERR, "%s: %s", o->out, strerror(errno));
    static struct shuf__proof proof;
    if (!shuf__prove(&tables, &proof)) {
        fclose(to);
        return shuf__fail_with(EX_OSERR, "proof: no memory");
    }
    const bool written = write_header(o, &tables, &proof, to);
    if ((fclose(to) != 0) | !written)
        return shuf__fail_with(EX_IOERR, "%s: cannot be written", o->out);
    shuf__proof_write(&proof, "", stdout);
    return shuf__proof_faults(&proof) == 0 ? EX_OK : EXIT_FAULTS;
}

static int check(void)
{
    static shuf__tables tables;
    static struct shuf__proof proof;
    if (!shuf__header_read(&tables))
        return EXIT_FAULTS;
    if (!shuf__prove(&tables, &proof))
        return shuf__fail_with(EX_OSERR, "proof: no memory");
    shuf__proof_write(&proof, "", stdout);
    return shuf__proof_faults(&proof) == 0 ? EX_OK : EXIT_FAULTS;
}

/* ---- Options ---- */

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case KEY_SEED:
        o->seeded = true;
        shuf__option_number(state, "--seed", text, &o->seed);
        return 0;
    case KEY_OUT:
        o->out = text;
        return 0;
    case KEY_CHECK:
        o->check = true;
        return 0;
    case ARGP_KEY_ARG:
        shuf__option_fail(state, EX_USAGE, "argument '%.64s': expected none", text);
        return 0;
    case ARGP_KEY_END:
        if (o->check == (o->out != NULL) || (o->check && o->seeded))
            shuf__option_fail(state, EX_USAGE, "expected --out, with --seed or not, or --check");
        return 0;
    default:
        return shuf__option_common(key, text, state);
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option option_table[] = {
        {"out", KEY_OUT, "FILE", 0, "Make the tables and write this C header", 1},
        {"seed", KEY_SEED, "S", 0, "Seed of the start of the search (default 1)", 1},
        {"check", KEY_CHECK, NULL, 0, "Prove the tables that this was compiled with", 2},
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .doc = "Makes the tables of Gaussian streams, and proves how near to the normal law the "
               "streams' values are.",
    };
    struct options o = {.seed = 1};
    shuf__program_name = "gauss-tables";
    argp_err_exit_status = EX_USAGE;
    shuf__options_parse(&argp, argc, argv, &o);
    const int code = o.check ? check() : make(&o);
    if (fflush(stdout) != 0 || ferror(stdout))
        return shuf__fail_with(EX_IOERR, "standard output: cannot be written");
    return code;
}
