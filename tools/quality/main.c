/* SPDX-License-Identifier: MIT
 *
 * shuf-quality: finds the verb and runs it.
 */
#include "fail.h"
#include "shuf.h"
#include "verb.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

struct verb {
    const char *name, *what;
    int (*run)(int argc, char **argv);
};

static const struct verb verbs[] = {
    {"judge", "judges permutations of one size", shuf__quality_judge},
    {"suite", "judges a generator or a daemon at many sizes", shuf__quality_suite},
    {"rounds", "the discrepancy for each number of rounds", shuf__quality_rounds},
    {"plot", "draws reports of `rounds`", shuf__quality_plot},
    {"stream", "judges a stream of normal or uniform numbers", shuf__quality_stream},
    {"bits", "writes values as random bits, for other programs", shuf__quality_bits},
    {"list", "the tests and the generators", shuf__quality_list},
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static void print_usage(FILE *to)
{
    fputs("Usage: shuf-quality VERB [OPTION...]\n"
          "Judges permutations, and streams of numbers: do they look like random ones?\n\n",
          to);
    for (int i = 0; i < VERBS; i++)
        fprintf(to, "  %-7s %s\n", verbs[i].name, verbs[i].what);
    fputs("\nshuf-quality VERB --help lists the verb's options.\n", to);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* If the report could not be written, the exit code is a failure, whatever the verb returned. */
static void finish(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        _exit(shuf__fail_with(EX_IOERR, "standard output: cannot be written"));
}

static int run(int argc, char **argv)
{
    static char title[64];
    for (int i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, argv[0]) != 0)
            continue;
        snprintf(title, sizeof title, "shuf-quality %s", verbs[i].name);
        argv[0] = title; /* argp begins its messages with it */
        return verbs[i].run(argc, argv);
    }
    return shuf__fail_with(
        EX_USAGE, "verb '%.64s': expected judge, suite, rounds, plot, stream, bits or list",
        argv[0]);
}

int main(int argc, char **argv)
{
    shuf__program_name = "shuf-quality";
    atexit(finish);
    if (argc < 2) {
        print_usage(stderr);
        return EX_USAGE;
    }
    if (asks_for_help(argv[1])) {
        print_usage(stdout);
        return EX_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("shuf-quality %s\n", shuf_version());
        return EX_OK;
    }
    return run(argc - 1, argv + 1);
}
