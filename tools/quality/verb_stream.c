/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality stream`: the tests on a stream of normal or uniform numbers.
 */
#include "device_run.h"
#include "nearest.h"
#include "option.h"
#include "options.h"
#include "picture.h"
#include "report.h"
#include "run.h"
#include "verb.h"

#include <inttypes.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum key {
    KEY_GENERATOR = 0x100,
    KEY_IN,
    KEY_DTYPE,
    KEY_LAW,
    KEY_SEED,
    KEY_STREAM,
    KEY_SAMPLES,
    KEY_AS_BITS,
    KEY_BACKEND,
    KEY_SUBSETS,
};

enum {
    SAMPLES = 10000000, /* the default for a generator */
    FEW = 1000,         /* fewer values can show only gross faults */
    ENOUGH = 65536,     /* enough for every test */
};

struct options {
    struct shuf__stream_origin origin;
    uint64_t samples; /* 0: SAMPLES of a generator, or all of a file */
    struct shuf__judging judging;
    const char *backend; /* NULL: the tests run on the CPU */
    uint64_t subsets;
    bool as_bits, of_seed, of_law;
};

/* ---- Options ---- */

static const struct shuf__stream_generator *find(struct argp_state *state, const char *name)
{
    const struct shuf__stream_generator *g = shuf__stream_generator_find(name);
    char names[256] = "", hint[SHUF__HINT];
    struct shuf__nearest nearest = {.text = name};
    for (const struct shuf__stream_generator *const *row = shuf__stream_generators; *row; row++) {
        shuf__quality_list_name(names, sizeof names, (*row)->name);
        shuf__nearest_offer(&nearest, (*row)->name);
    }
    if (!g)
        shuf__option_fail(state, EX_USAGE, "--generator %.64s: expected one of %s%s",
                          *name ? name : "''", names, shuf__nearest_hint(&nearest, hint));
    return g;
}

static shuf_dtype read_dtype(struct argp_state *state, const char *text)
{
    return shuf__option_dtype(state, "--dtype", text, shuf__dtype_set(SHUF_DISTRIBUTION_GAUSS));
}

static const char *test_name(int i)
{
    return shuf__stream_tests[i] ? shuf__stream_tests[i]->name : NULL;
}

static void check_bits(struct argp_state *state, const struct options *o)
{
    if (!o->origin.generator || o->origin.dtype != SHUF_F64)
        shuf__option_fail(state, EX_USAGE, "--as-bits: expected --generator NAME and --dtype f64");
    if (isatty(STDOUT_FILENO))
        shuf__option_fail(
            state, EX_USAGE,
            "standard output is a terminal; expected a pipe or a file, as in | dieharder "
            "-g 200 -a");
}

/* Whether the CUDA backend has the generator. */
static bool has_device(const struct shuf__stream_generator *generator)
{
    return generator == &shuf__stream_gauss || generator == &shuf__stream_box_muller;
}

static void check(struct argp_state *state, struct options *o)
{
    if (o->origin.generator && o->origin.input)
        shuf__option_fail(state, EX_USAGE, "expected one of --generator and --in");
    if (o->origin.generator && o->of_law)
        shuf__option_fail(state, EX_USAGE,
                          "--law: expected --in beside it; a generator has its own");
    if (!o->origin.generator && o->of_seed)
        shuf__option_fail(state, EX_USAGE, "--seed, --stream: expected --generator beside them");
    if (o->origin.generator)
        o->origin.uniform = o->origin.generator->uniform;
    else if (!o->origin.input)
        o->origin.input = "-";
    if (o->origin.uniform && o->origin.dtype > SHUF_F32)
        shuf__option_fail(state, EX_USAGE, "--dtype %s: expected f64 or f32 for the uniform law",
                          shuf__dtype_name(o->origin.dtype));
    if (o->backend && (!has_device(o->origin.generator) || o->as_bits))
        shuf__option_fail(state, EX_USAGE,
                          "--backend %.64s: expected --generator gauss or box-muller beside it",
                          o->backend);
    if (o->subsets && !o->backend)
        shuf__option_fail(state, EX_USAGE, "--subsets: expected --backend cuda beside it");
    if (o->as_bits)
        check_bits(state, o);
    if (o->origin.input && strcmp(o->origin.input, "-") == 0 && isatty(STDIN_FILENO))
        shuf__option_fail(state, EX_USAGE,
                          "standard input is a terminal; expected numbers there, --in FILE or "
                          "--generator NAME");
    if (o->origin.input)
        shuf__quality_check_input(state, o->origin.input);
}

static error_t parse_source(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    struct shuf__stream_origin *origin = &o->origin;
    o->of_seed |= key == KEY_SEED || key == KEY_STREAM;
    o->of_law |= key == KEY_LAW;
    if (key == KEY_GENERATOR)
        origin->generator = find(state, text);
    else if (key == KEY_IN)
        origin->input = text;
    else if (key == KEY_DTYPE)
        origin->dtype = read_dtype(state, text);
    else if (key == KEY_LAW)
        origin->uniform = shuf__quality_choice(state, "--law", text, "normal", "uniform");
    else if (key == KEY_SEED)
        origin->seed = shuf__quality_number(state, "--seed", text, 0, UINT64_MAX);
    else if (key == KEY_STREAM)
        origin->stream = shuf__quality_number(state, "--stream", text, 0, UINT64_MAX);
    else
        return shuf__judging_parse(key, text, state, &o->judging, test_name);
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case KEY_SAMPLES:
        o->samples = shuf__quality_number(state, "--samples", text, 1, UINT64_C(1) << 46);
        return 0;
    case KEY_BACKEND:
        o->backend = text;
        return 0;
    case KEY_SUBSETS:
        o->subsets = shuf__quality_number(state, "--subsets", text, 1024, UINT64_C(1) << 46);
        return 0;
    case KEY_AS_BITS:
        o->as_bits = true;
        return 0;
    case ARGP_KEY_END:
        check(state, o);
        return 0;
    default:
        return parse_source(key, text, state);
    }
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct argp_option option_table[] = {
        {"generator", KEY_GENERATOR, "NAME", 0,
         "Judge this generator; shuf-quality list prints the names", 1},
        {"seed", KEY_SEED, "S", 0, "The seed of the generator (default 0)", 1},
        {"stream", KEY_STREAM, "T", 0, "The stream of the seed (default 0)", 1},
        {"in", KEY_IN, "FILE", 0, "Judge raw numbers from FILE (default -, standard input)", 2},
        {"law", KEY_LAW, "LAW", 0,
         "The distribution that FILE should have: normal (default) or uniform", 2},
        {"dtype", KEY_DTYPE, "f64|f32|f16|bf16", 0, "The type of the values (default f64)", 3},
        {"samples", KEY_SAMPLES, "COUNT", 0, "Judge so many numbers (default: 1e7; of FILE, all)",
         3},
        {"backend", KEY_BACKEND, "SPEC", 0, "cuda: compute and count on the GPU", 3},
        {"subsets", KEY_SUBSETS, "COUNT", 0,
         "With --backend cuda: also test all sets of 3 to 5 positions, with so many values", 3},
        {"tests", SHUF__KEY_TESTS, "LIST", 0,
         "Run only these tests, as in moments,tails; shuf-quality list prints the names", 3},
        {"alpha", SHUF__KEY_ALPHA, "P", 0,
         "The probability that a good generator fails (default 0.001)", 3},
        {"threads", SHUF__KEY_THREADS, "COUNT", 0, "The number of threads (default: one a core)",
         3},
        {"json", SHUF__KEY_JSON, NULL, 0, "Print one JSON object instead of a table", 4},
        {"plot", SHUF__KEY_PLOT, "FILE.svg", 0, "Also draw the histogram, with gnuplot", 4},
        {"as-bits", KEY_AS_BITS, NULL, 0,
         "Judge nothing; write 32 bits of each number, for dieharder -g 200", 4},
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .doc = "Judges a stream of normally distributed numbers, or of uniform ones.",
    };
    *o = (struct options){.origin.dtype = SHUF_F64};
    shuf__judging_init(&o->judging);
    shuf__options_parse(&argp, argc, argv, o);
}

/* ---- The verdict ---- */

static int report_verdict(struct shuf__stream_report *report, const struct options *o)
{
    const uint64_t values = report->outcome.values;
    int code = EX_OK;
    if (report->findings.count == 0 && !report->outcome.interrupted)
        return shuf__fail_with(EX_DATAERR,
                               "%" PRIu64 " value%s: too few for any of the tests: expected "
                               "more, %d for each of them to say something",
                               values, values == 1 ? "" : "s", ENOUGH);
    if (values < FEW && !report->outcome.interrupted)
        shuf__fail_with(EX_OK, "warning: %" PRIu64 " value%s: few to judge by; expected %d or more",
                        values, values == 1 ? "" : "s", FEW);
    shuf__findings_decide(&report->findings);
    (o->judging.json ? shuf__stream_json : shuf__stream_table)(report, stdout);
    if (o->judging.plot)
        code = shuf__stream_draw(report, o->judging.plot);
    if (code != EX_OK)
        return code;
    if (report->outcome.interrupted)
        return shuf__fail_with(EX_TEMPFAIL, "interrupted: the report is of what was done");
    return report->findings.failed > 0 ? SHUF__EXIT_FAILED : EX_OK;
}

/* Whether one of the selected tests applies to these values. */
static bool is_judged(const struct options *o, const struct shuf__stream_law *law)
{
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (o->judging.tests >> i & 1 &&
            shuf__stream_applies(shuf__stream_tests[i], law, o->origin.generator != NULL))
            return true;
    return false;
}

static int check_options(const struct options *o, const struct shuf__stream_law *law)
{
    if (!is_judged(o, law))
        return shuf__fail_with(EX_USAGE, "--tests: expected one that judges %s of the %s law%s",
                               shuf__dtype_name(o->origin.dtype),
                               law->uniform ? "uniform" : "normal",
                               o->origin.generator ? "" : ", without a generator");
    return o->judging.plot ? shuf__picture_check(o->judging.plot) : EX_OK;
}

static int judge(const struct options *o, const struct shuf__stream_law *law)
{
    static struct shuf__stream_report report;
    const struct shuf__stream_run_options run = {
        .origin = &o->origin,
        .law = law,
        .samples = o->samples != 0       ? o->samples
                   : o->origin.generator ? SAMPLES
                                         : UINT64_MAX,
        .tests = o->judging.tests,
        .threads = o->judging.threads,
        .progress = isatty(STDERR_FILENO),
    };
    struct shuf__error error;
    int code = check_options(o, law);
    if (code != EX_OK)
        return code;
    report.origin = &o->origin;
    report.law = law;
    report.findings.alpha = o->judging.alpha;
    shuf__catch_interrupts();
    const shuf_status status =
        o->backend ? shuf__stream_run_on_device(o->backend, &run, o->subsets, &report.findings,
                                                &report.outcome, &error)
                   : shuf__stream_run(&run, &report.findings, &report.outcome, &error);
    code = status == SHUF_OK ? report_verdict(&report, o)
                             : shuf__quality_fail_error(&error, status, report.outcome.bad_values);
    shuf__findings_free(&report.findings);
    return code;
}

/* Writes values as bits for other programs. A value becomes the probability of smaller values, in
 * units of 2^-32. */
static void write_bits(const struct shuf__stream_origin *origin, const struct shuf__stream_law *law,
                       uint64_t samples)
{
    static double value[SHUF__CHUNK];
    static uint32_t word[SHUF__CHUNK];
    for (uint64_t done = 0; done < samples; done += SHUF__CHUNK) {
        const size_t count = samples - done < SHUF__CHUNK ? (size_t)(samples - done) : SHUF__CHUNK;
        origin->generator->fill(origin->seed, origin->stream, origin->dtype, done, SHUF__CHUNK,
                                value);
        for (size_t i = 0; i < count; i++) {
            const double below = law->uniform ? value[i] : shuf__law_below(law, value[i]);
            const double scaled = below * 4294967296.0;
            word[i] = scaled < 4294967295.0 ? (uint32_t)scaled : UINT32_MAX;
        }
        if (fwrite(word, sizeof *word, count, stdout) != count)
            return; /* main() reports the failure */
    }
}

int shuf__quality_stream(int argc, char **argv)
{
    static struct shuf__stream_law law;
    struct options options;
    struct shuf__error error;
    int code = EX_OK;
    parse(argc, argv, &options);
    const shuf_status status =
        shuf__stream_law_make(&law, options.origin.uniform, options.origin.dtype, &error);
    if (status != SHUF_OK)
        return shuf__quality_fail_error(&error, status, false);
    if (options.as_bits)
        write_bits(&options.origin, &law, options.samples != 0 ? options.samples : UINT64_MAX);
    else
        code = judge(&options, &law);
    shuf__stream_law_free(&law);
    return code;
}
