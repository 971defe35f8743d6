/* SPDX-License-Identifier: MIT
 *
 * Scripts for completion: see program.h. To list the options of a verb, the program runs the verb
 * in a child process. The verb's parser then prints its options instead of parsing the command
 * line.
 */
#include "program.h"

#include "exit.h"
#include "option.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static const struct shell *shell;
static const struct shuf__program *program;
static const struct shuf__verb *verb;

struct shell {
    const char *name;
    void (*begin)(void);
    void (*options)(const struct argp *argp); /* of `verb` */
    void (*end)(void);
};

/* ---- Words ---- */

static bool is_listed(const struct argp_option *o)
{
    return o->name && !(o->flags & OPTION_HIDDEN);
}

static bool takes_file(const struct argp_option *o)
{
    return o->arg && (strncmp(o->arg, "FILE", 4) == 0 || strcmp(o->arg, "PATH") == 0);
}

static bool has_values(const struct argp_option *o)
{
    return o->arg && islower((unsigned char)*o->arg) && strchr(o->arg, '|');
}

/* Prints "one|other" as "one other". */
static void print_values(const char *values)
{
    for (; *values; values++)
        putchar(*values == '|' ? ' ' : *values);
}

/* Prints the text in single quotes. `quote` replaces a single quote in the text. A backslash
 * precedes each character of `special`. */
static void print_text(const char *text, const char *quote, const char *special)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs(quote, stdout);
        else
            printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
}

static bool has_verbs(void)
{
    return program->verbs && program->verbs->name;
}

static void print_names(const char *separator)
{
    for (const struct shuf__verb *v = program->verbs; v->name; v++)
        printf("%s%s", v->name, separator);
    fputs("help", stdout);
}

static void print_topics(void)
{
    for (const struct shuf__topic *t = program->topics; t && t->name; t++)
        printf(" %s", t->name);
}

static void print_function(void)
{
    for (const char *c = program->name; *c; c++)
        putchar(*c == '-' ? '_' : *c);
}

/* ---- Bash ---- */

static bool print_bash_case(void *unused, const struct argp_option *o)
{
    (void)unused;
    if (!is_listed(o) || !o->arg)
        return false;
    printf("        --%s) ", o->name);
    if (takes_file(o))
        printf("files=yes ");
    if (has_values(o)) {
        printf("words='");
        print_values(o->arg);
        printf("' ");
    }
    puts(";;");
    return false;
}

static bool print_bash_word(void *unused, const struct argp_option *o)
{
    (void)unused;
    if (is_listed(o))
        printf("--%s ", o->name);
    return false;
}

/* Prints the options of a verb, or the verbs with the options that may precede them. */
static void print_bash_words(const char *name, const struct argp *argp)
{
    printf("    %s)\n        case $previous in\n", name);
    shuf__option_each(argp, print_bash_case, NULL);
    printf("        *) words='");
    shuf__option_each(argp, print_bash_word, NULL);
    if (argp == program->global && has_verbs()) {
        print_names(" ");
        putchar(' ');
    }
    puts("--help --version' ;;\n        esac\n        ;;");
}

static void find_bash_verb(void)
{
    puts("    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        case ${COMP_WORDS[i]} in");
    printf("        ");
    print_names(" | ");
    puts(") verb=${COMP_WORDS[i]} && break ;;\n"
         "        esac\n"
         "    done");
}

static void print_bash_help(void)
{
    printf("    help) words='");
    print_names(" ");
    print_topics();
    puts("' ;;");
}

static void begin_bash(void)
{
    fputs("_", stdout);
    print_function();
    puts("()\n{\n"
         "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    local verb='' words='' files='' i\n"
         "    [[ $current == = ]] && current=''\n"
         "    [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD - 2]}");
    if (has_verbs())
        find_bash_verb();
    puts("    case $verb in");
    if (has_verbs())
        print_bash_help();
    static const struct argp none = {0};
    print_bash_words("''", program->global ? program->global : &none);
}

static void print_bash(const struct argp *argp)
{
    print_bash_words(verb->name, argp);
}

static void end_bash(void)
{
    puts("    esac\n"
         "    if [[ $files ]]; then\n"
         "        compopt -o filenames 2>/dev/null\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "    else\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "    fi\n"
         "}");
    printf("complete -F _");
    print_function();
    printf(" %s\n", program->name);
}

/* ---- Zsh ---- */

static bool print_zsh_option(void *unused, const struct argp_option *o)
{
    (void)unused;
    if (!is_listed(o))
        return false;
    printf(" \\\n            '--%s%s[", o->name, o->arg ? "=" : "");
    print_text(o->doc ? o->doc : "", "'\\''", "[]:\\");
    putchar(']');
    if (o->arg) {
        putchar(':');
        print_text(has_values(o) ? o->name : o->arg, "'\\''", ":\\");
        printf(":%s", takes_file(o) ? "_files" : "");
    }
    if (has_values(o)) {
        putchar('(');
        print_values(o->arg);
        putchar(')');
    }
    putchar('\'');
    return false;
}

static void print_zsh_verbs(void)
{
    fputs("local context state line\nlocal -a verbs=(", stdout);
    for (const struct shuf__verb *v = program->verbs; v->name; v++) {
        printf("\n    '%s:", v->name);
        print_text(v->help, "'\\''", ":\\");
        putchar('\'');
    }
    puts("\n    'help:print the help of a verb')");
}

static void print_zsh_help(void)
{
    puts(" \\\n            '1:verb:->verb' '*::option:->option' && return\n"
         "case $state in\n"
         "verb) _describe verb verbs ;;\n"
         "option)\n"
         "    case $line[1] in");
    printf("    help) compadd ");
    print_names(" ");
    print_topics();
    puts(" ;;");
}

static void begin_zsh(void)
{
    static const struct argp none = {0};
    printf("#compdef %s\n\n", program->name);
    if (has_verbs())
        print_zsh_verbs();
    printf("_arguments%s", has_verbs() ? " -C" : "");
    shuf__option_each(program->global ? program->global : &none, print_zsh_option, NULL);
    if (has_verbs())
        print_zsh_help();
    else
        puts("");
}
static void print_zsh(const struct argp *argp)
{
    printf("    %s)\n        _arguments", verb->name);
    shuf__option_each(argp, print_zsh_option, NULL);
    puts("\n        ;;");
}

static void end_zsh(void)
{
    if (has_verbs())
        puts("    esac\n    ;;\nesac");
}

/* ---- Fish ---- */

static bool print_fish_option(void *condition, const struct argp_option *o)
{
    if (!is_listed(o))
        return false;
    printf("complete -c %s -n \"%s\" -l %s", program->name, (const char *)condition, o->name);
    if (o->arg)
        printf("%s", takes_file(o) ? " -r -F" : " -x");
    if (has_values(o)) {
        printf(" -a '");
        print_values(o->arg);
        putchar('\'');
    }
    printf(" -d '");
    print_text(o->doc ? o->doc : "", "\\'", "\\");
    puts("'");
    return false;
}

/* Prints the completion of a word that may stand before any verb. */
static void print_fish_first(const char *word, const char *help)
{
    printf("complete -c %s -n \"not __fish_seen_subcommand_from $verbs\" -a %s -d '", program->name,
           word);
    print_text(help, "\\'", "\\");
    puts("'");
}

static void print_fish_verbs(void)
{
    fputs("set -l verbs ", stdout);
    print_names(" ");
    puts("");
    for (const struct shuf__verb *v = program->verbs; v->name; v++)
        print_fish_first(v->name, v->help);
    print_fish_first("help", "print the help of a verb");
    printf("complete -c %s -n '__fish_seen_subcommand_from help' -a '", program->name);
    print_names(" ");
    print_topics();
    puts("'");
}

static void begin_fish(void)
{
    static const struct argp none = {0};
    static char first[] = "not __fish_seen_subcommand_from $verbs", always[] = "true";
    printf("complete -c %s -f\n", program->name);
    if (has_verbs())
        print_fish_verbs();
    shuf__option_each(program->global ? program->global : &none, print_fish_option,
                      has_verbs() ? first : always);
}

static void print_fish(const struct argp *argp)
{
    char condition[96];
    snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s", verb->name);
    shuf__option_each(argp, print_fish_option, condition);
}

static void end_fish(void)
{
}

/* ---- All ---- */

static const struct shell shells[] = {
    {"bash", begin_bash, print_bash, end_bash},
    {"zsh", begin_zsh, print_zsh, end_zsh},
    {"fish", begin_fish, print_fish, end_fish},
    {0},
};

static void print_options(const struct argp *argp)
{
    shell->options(argp);
}

static int print_verb(void)
{
    char *argv[] = {strdup(verb->name), NULL};
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        shuf__options_list_instead(print_options);
        verb->run(1, argv);
        _exit(EX_SOFTWARE);
    }
    free(argv[0]);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return shuf__fail_with(EX_OSERR, "--completion: no process could be started");
    if (status == 0)
        return EX_OK;
    return shuf__fail_with(EX_SOFTWARE, "--completion: %s does not call shuf__options_parse()",
                           verb->name);
}

int shuf__completion_print(const struct shuf__program *of, const char *name)
{
    program = of;
    for (shell = shells; shell->name && strcmp(shell->name, name) != 0;)
        shell++;
    if (!shell->name)
        return shuf__fail_with(EX_USAGE, "--completion '%.64s': expected bash, zsh or fish", name);
    int code = EX_OK;
    shell->begin();
    for (verb = of->verbs; has_verbs() && verb->name && code == EX_OK; verb++)
        code = print_verb();
    shell->end();
    return code;
}
