/* SPDX-License-Identifier: MIT
 *
 * shufctl: finds the verb and runs it. Each verb parses its own options.
 */
#include "exit.h"
#include "shuf.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

struct verb {
    const char *name, *help;
    int (*run)(int argc, char **argv);
};

static int verb_help(int argc, char **argv);

static const struct verb verbs[] = {
    {"permute", "compute a pseudo-random permutation, or a part of one", shuf__verb_permute},
    {"shuffle", "shuffle the records of an array by a permutation", shuf__verb_shuffle},
    {"index", "look up values at single positions, or positions of values", shuf__verb_index},
    {"gauss", "compute normally distributed numbers of a stream", shuf__verb_gauss},
    {"uniform", "compute uniformly distributed numbers of a stream", shuf__verb_uniform},
    {"status", "print the daemon's device, load and memory", shuf__verb_status},
    {"leases", "list the leases of results", shuf__verb_leases},
    {"drop", "free the memory of results that nobody holds", shuf__verb_drop},
    {"version", "print the versions of shufctl and of the daemon", shuf__verb_version},
    {"help", "print the help of a verb: shufctl help permute", verb_help},
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static void print_verbs(FILE *to)
{
    fputs("Usage: shufctl VERB [OPTION...]\n"
          "Requests permutations, shuffles and random numbers from a running shufd.\n\n",
          to);
    for (int i = 0; i < VERBS; i++)
        fprintf(to, "  %-9s %s\n", verbs[i].name, verbs[i].help);
    fputs("\nshufctl VERB --help lists the verb's options.\n", to);
}

static int fail_unknown_verb(const char *name)
{
    fprintf(stderr, "shufctl: verb '%.64s': expected ", name);
    for (int i = 0; i < VERBS; i++)
        fprintf(stderr, "%s%s", verbs[i].name, i + 1 < VERBS ? ", " : "\n");
    return EX_USAGE;
}

static int run_verb(const char *name, int argc, char **argv)
{
    static char title[64];
    for (int i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) != 0)
            continue;
        snprintf(title, sizeof title, "shufctl %s", name);
        argv[0] = title; /* argp's messages begin with it */
        return verbs[i].run(argc, argv);
    }
    return fail_unknown_verb(name);
}

static bool is_help_option(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0;
}

static int verb_help(int argc, char **argv)
{
    static char option[] = "--help";
    if (argc > 2)
        return shuf__fail_with(EX_USAGE, "help: expected at most one verb");
    if (argc == 1 || strcmp(argv[1], "help") == 0 || is_help_option(argv[1])) {
        print_verbs(stdout);
        return EX_OK;
    }
    char *forward[] = {argv[0], option, NULL};
    return run_verb(argv[1], 2, forward);
}

/* Output that cannot be written is a failure of every verb, and of argp's --help. */
static void check_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    if (errno != EPIPE) /* the reader closed the pipe on purpose */
        shuf__fail_with(EX_IOERR, "standard output: %s", strerror(errno));
    _exit(EX_IOERR);
}

/* The next open() would reuse the number of a closed standard stream, and output for the stream
 * would go to the file. The descriptor that replaces it here fails with EBADF when used. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(EX_OSERR);
}

int main(int argc, char **argv)
{
    shuf__program_name = "shufctl";
    occupy_closed_streams();
    atexit(check_stdout);
    if (argc < 2) {
        print_verbs(stderr);
        return EX_USAGE;
    }
    if (is_help_option(argv[1])) {
        print_verbs(stdout);
        return EX_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("shufctl %s\n", shuf_version());
        return EX_OK;
    }
    return run_verb(argv[1], argc - 1, argv + 1);
}
