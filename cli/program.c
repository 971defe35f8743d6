/* SPDX-License-Identifier: MIT
 *
 * See program.h.
 */
#include "program.h"

#include "exit.h"
#include "json.h"
#include "nearest.h"
#include "option.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* ---- The folders of programs ---- */

/* Removes the relative folders from PATH, so no program of the current directory runs. Without
 * PATH, libc and the shell search the folders of the system. */
static void clean_search_path(void)
{
    char *path = getenv("PATH"), *end = path;
    for (char *folder = path, *next; folder; folder = next) {
        next = strchr(folder, ':');
        if (next)
            *next++ = '\0';
        if (*folder != '/')
            continue;
        const size_t length = strlen(folder);
        if (end > path)
            *end++ = ':';
        memmove(end, folder, length + 1);
        end += length;
    }
    if (end == path)
        unsetenv("PATH");
}

/* ---- Help ---- */

static void print_overview(const struct shuf__program *program, FILE *to)
{
    fprintf(to, "Usage: %s VERB [OPTION...]\n%s\n\n", program->name, program->summary);
    for (const struct shuf__verb *v = program->verbs; v->name; v++)
        fprintf(to, "  %-9s %s\n", v->name, v->help);
    fprintf(to, "  %-9s print the help of a verb%s: %s help %s\n", "help",
            program->topics ? " or of a topic" : "", program->name, program->verbs->name);
    if (program->topics)
        fputs("\nTopics:\n", to);
    for (const struct shuf__topic *t = program->topics; t && t->name; t++)
        fprintf(to, "  %-12s %s\n", t->name, t->help);
    fprintf(to, "\n%s VERB --help lists the options of a verb; --version prints the version.\n",
            program->name);
    if (!program->global)
        return;
    fputs("These options may also stand before the verb:", to);
    for (const struct argp_option *o = program->global->options; o->name; o++)
        fprintf(to, " --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    fputc('\n', to);
}

static const struct shuf__verb *find_verb(const struct shuf__program *program, const char *name)
{
    const struct shuf__verb *v = program->verbs;
    while (v->name && strcmp(v->name, name) != 0)
        v++;
    return v->name ? v : NULL;
}

static const char *find_topic(const struct shuf__program *program, const char *name)
{
    for (const struct shuf__topic *t = program->topics; t && t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t->text;
    return NULL;
}

static const char *find_advice(const struct shuf__program *program, const char *name)
{
    for (const struct shuf__other_word *o = program->others; o && o->word; o++)
        if (strcmp(o->word, name) == 0)
            return o->advice;
    return NULL;
}

static int refuse_verb(const struct shuf__program *program, const char *name)
{
    char hint[SHUF__HINT];
    const char *advice = find_advice(program, name);
    if (advice)
        return shuf__fail_with(EX_USAGE, "verb '%.64s': no such verb; %s", name, advice);
    if (find_topic(program, name))
        return shuf__fail_with(EX_USAGE, "verb '%s': no such verb; it is a topic: %s help %s", name,
                               program->name, name);
    struct shuf__nearest nearest = {.text = name};
    for (const struct shuf__verb *v = program->verbs; v->name; v++)
        shuf__nearest_offer(&nearest, v->name);
    shuf__nearest_offer(&nearest, "help");
    if (nearest.name)
        return shuf__fail_with(EX_USAGE, "verb '%.64s': no such verb%s", name,
                               shuf__nearest_hint(&nearest, hint));
    return shuf__fail_with(EX_USAGE, "verb '%.64s': no such verb; %s help lists them", name,
                           program->name);
}

static int run_verb(const struct shuf__program *program, const struct shuf__verb *verb, int argc,
                    char **argv)
{
    static char title[64];
    snprintf(title, sizeof title, "%s %s", program->name, verb->name);
    argv[0] = title; /* all messages, argp's too, begin with it */
    shuf__program_name = title;
    return verb->run(argc, argv);
}

static int refuse_topic(const struct shuf__program *program, const char *name)
{
    char hint[SHUF__HINT];
    const char *advice = find_advice(program, name);
    struct shuf__nearest nearest = {.text = name};
    if (advice)
        return shuf__fail_with(EX_USAGE, "help '%.64s': expected a verb%s; %s", name,
                               program->topics ? " or a topic" : "", advice);
    for (const struct shuf__verb *v = program->verbs; v->name; v++)
        shuf__nearest_offer(&nearest, v->name);
    for (const struct shuf__topic *t = program->topics; t && t->name; t++)
        shuf__nearest_offer(&nearest, t->name);
    return shuf__fail_with(EX_USAGE, "help '%.64s': expected a verb%s%s", name,
                           program->topics ? " or a topic" : "",
                           shuf__nearest_hint(&nearest, hint));
}

static bool is_help_option(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0 ||
           strcmp(word, "--usage") == 0;
}

static int print_help_of_help(const struct shuf__program *program)
{
    const bool topics = program->topics;
    printf("Usage: %s help [VERB%s]\nPrints the help of a verb%s; without a word, the list of "
           "them.\n",
           program->name, topics ? "|TOPIC" : "", topics ? " or of a topic" : "");
    return EX_OK;
}

static int help(const struct shuf__program *program, int argc, char **argv)
{
    static char option[] = "--help";
    if (argc > 2)
        return shuf__fail_with(EX_USAGE, "help: expected at most one verb%s",
                               program->topics ? " or topic" : "");
    if (argc == 1) {
        print_overview(program, stdout);
        return EX_OK;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || is_help_option(name))
        return print_help_of_help(program);
    const char *topic = find_topic(program, name);
    if (topic)
        return fputs(topic, stdout) < 0 ? EX_IOERR : EX_OK;
    const struct shuf__verb *verb = find_verb(program, name);
    char *forward[] = {argv[0], option, NULL};
    return verb ? run_verb(program, verb, 2, forward) : refuse_topic(program, name);
}

/* ---- The program ---- */

/* Skips the options before the verb, and returns the index of the verb. Ends the process on a wrong
 * option. */
static int skip_global(const struct shuf__program *program, int argc, char **argv)
{
    static const struct argp none = {0};
    const struct argp *global = program->global ? program->global : &none;
    int verb = 1;
    while (verb < argc && argv[verb][0] == '-') {
        const char *option = argv[verb];
        if (is_help_option(option) || strcmp(option, "--version") == 0 || strcmp(option, "-V") == 0)
            break;
        const int words = shuf__option_words(global, option);
        if (words == 0)
            exit(shuf__option_refuse_unknown(global, program->name, option));
        verb += words;
        if (verb > argc)
            exit(shuf__option_refuse_valueless(global, program->name, option));
    }
    return verb;
}

static int run(const struct shuf__program *program, int verb, int argc, char **argv)
{
    if (strcmp(argv[verb], "help") == 0)
        return help(program, argc - verb, argv + verb);
    const struct shuf__verb *found = find_verb(program, argv[verb]);
    if (!found)
        return refuse_verb(program, argv[verb]);
    memmove(argv + 2, argv + 1,
            (size_t)(verb - 1) * sizeof *argv); /* options before the verb move after it */
    return run_verb(program, found, argc - 1, argv + 1);
}

int shuf__program_run(const struct shuf__program *program, int argc, char **argv)
{
    static char version[64];
    snprintf(version, sizeof version, "%s %s", program->name, program->version);
    shuf__program_name = program->name;
    argp_program_version = version;
    shuf__streams_prepare();
    clean_search_path();
    shuf__json_prepare();
    if (argc > 1 && strcmp(argv[1], "--completion") == 0)
        return argc == 3 ? shuf__completion_print(program, argv[2])
                         : shuf__fail_with(EX_USAGE, "--completion: expected one shell behind it: "
                                                     "bash, zsh or fish");
    const int verb = skip_global(program, argc, argv);
    if (argc < 2) {
        print_overview(program, stderr);
        return EX_USAGE;
    }
    if (verb >= argc)
        return shuf__fail_with(EX_USAGE, "verb: missing behind %s; %s help lists the verbs",
                               argv[argc - 1], program->name);
    if (is_help_option(argv[verb]))
        return help(program, argc - verb, argv + verb); /* a word may follow */
    if (argv[verb][0] == '-')
        return puts(version) < 0 ? EX_IOERR : EX_OK;
    return run(program, verb, argc, argv);
}
