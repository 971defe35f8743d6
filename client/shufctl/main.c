/* SPDX-License-Identifier: MIT
 *
 * shufctl: finds the verb and runs it. What a verb takes is the verb's own.
 */
#include "exit.h"
#include "shuf.h"
#include "verb.h"

#include <errno.h>
#include <fcntl.h>
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

static int help(int argc, char **argv);

static const struct verb verbs[] = {
    {"permute", "a pseudo-random permutation, or a part of one", shuf__verb_permute},
    {"shuffle", "the records of an array, in the order of a permutation", shuf__verb_shuffle},
    {"index", "values at single positions, or positions of values", shuf__verb_index},
    {"gauss", "normally distributed numbers of a stream", shuf__verb_gauss},
    {"uniform", "uniformly distributed numbers of a stream", shuf__verb_uniform},
    {"status", "what the daemon runs on and how busy it is", shuf__verb_status},
    {"leases", "who holds which results", shuf__verb_leases},
    {"version", "the version of shufctl, and of the daemon", shuf__verb_version},
    {"help", "what a verb does and takes: shufctl help permute", help},
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static void print_usage(FILE *to)
{
    fputs("Usage: shufctl VERB [OPTION...]\n"
          "Asks a running shufd for permutations, shuffles and random numbers.\n\n",
          to);
    for (int i = 0; i < VERBS; i++)
        fprintf(to, "  %-9s %s\n", verbs[i].name, verbs[i].what);
    fputs("\nshufctl VERB --help lists the verb's options.\n", to);
}

static int unknown(const char *name)
{
    fprintf(stderr, "shufctl: verb '%.64s': expected ", name);
    for (int i = 0; i < VERBS; i++)
        fprintf(stderr, "%s%s", verbs[i].name, i + 1 < VERBS ? ", " : "\n");
    return EX_USAGE;
}

static int run(const char *name, int argc, char **argv)
{
    static char title[64];
    for (int i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) != 0)
            continue;
        snprintf(title, sizeof title, "shufctl %s", name);
        argv[0] = title; /* argp begins its messages with it */
        return verbs[i].run(argc, argv);
    }
    return unknown(name);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0;
}

static int help(int argc, char **argv)
{
    static char option[] = "--help";
    if (argc > 2)
        return shuf__fail_with(EX_USAGE, "help: expected at most one verb");
    if (argc == 1 || strcmp(argv[1], "help") == 0 || asks_for_help(argv[1])) {
        print_usage(stdout);
        return EX_OK;
    }
    char *forward[] = {argv[0], option, NULL};
    return run(argv[1], 2, forward);
}

/* Output that did not arrive is a failure, whatever the verb, or argp's help, thought. */
static void finish(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    if (errno != EPIPE) /* a reader that has enough is no news */
        shuf__fail_with(EX_IOERR, "standard output: %s", strerror(errno));
    _exit(EX_IOERR);
}

/* A closed standard stream would give its number to the next file that is opened, and what is
 * meant for the one would go to the other. What stands in for it fails with EBADF when used. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(EX_OSERR);
}

int main(int argc, char **argv)
{
    occupy_closed_streams();
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
        printf("shufctl %s\n", shuf_version());
        return EX_OK;
    }
    return run(argv[1], argc - 1, argv + 1);
}
