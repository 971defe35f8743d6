/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality judge` and `suite`: the tests on one size, or on many.
 */
#include "device_run.h"
#include "fail.h"
#include "report.h"
#include "verb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

static int judge_size(struct shuf__report *report, uint32_t n)
{
    const struct shuf__quality_options *o = report->options;
    const struct shuf__run_options run = {
        .origin = &o->origin,
        .n = n,
        .samples = shuf__quality_samples(o, n),
        .tests = o->judging.tests,
        .threads = o->judging.threads,
        .progress = isatty(STDERR_FILENO),
    };
    struct shuf__case *one = &report->cases[report->case_count];
    struct shuf__error error;
    one->n = n;
    const shuf_status status =
        o->backend ? shuf__run_on_device(o->backend, &run, &report->findings, &one->outcome, &error)
                   : shuf__run(&run, &report->findings, &one->outcome, &error);
    if (status != SHUF_OK)
        return shuf__quality_fail_error(&error, status, one->outcome.bad_rows);
    report->interrupted |= one->outcome.interrupted;
    report->case_count += one->outcome.rows > 0;
    return EX_OK;
}

static uint64_t rows_of(const struct shuf__report *report)
{
    uint64_t rows = 0;
    for (unsigned i = 0; i < report->case_count; i++)
        rows += report->cases[i].outcome.rows;
    return rows;
}

static int judge_sizes(struct shuf__report *report)
{
    const struct shuf__quality_options *o = report->options;
    for (unsigned i = 0; i < o->size_count && !report->interrupted; i++) {
        const int code = judge_size(report, o->sizes[i]);
        if (code != EX_OK)
            return code;
    }
    if (report->findings.count == 0 && !report->interrupted)
        return shuf__fail_with(EX_DATAERR,
                               "%" PRIu64 " rows: too few for any of the tests, expected more",
                               rows_of(report));
    return EX_OK;
}

static int judge(int argc, char **argv, enum shuf__quality_verb verb)
{
    static struct shuf__quality_options options;
    struct shuf__report report = {.options = &options};
    shuf__quality_options(argc, argv, verb, &options);
    report.findings.alpha = options.judging.alpha;
    report.cases = calloc(options.size_count, sizeof *report.cases);
    if (!report.cases)
        return shuf__fail_with(EX_OSERR, "no memory");
    shuf__run_catch_signals();
    int code = judge_sizes(&report);
    if (code == EX_OK)
        code = shuf__report_finish(&report, verb == SHUF__JUDGE || options.all);
    shuf__findings_free(&report.findings);
    free(report.cases);
    return code;
}

int shuf__quality_judge(int argc, char **argv)
{
    return judge(argc, argv, SHUF__JUDGE);
}

int shuf__quality_suite(int argc, char **argv)
{
    return judge(argc, argv, SHUF__SUITE);
}
