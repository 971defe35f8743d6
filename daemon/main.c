/* SPDX-License-Identifier: MIT
 *
 * shufd: reads the command line and the configuration, then serves.
 */
#include "check.h"
#include "config/config.h"
#include "config/log.h"
#include "end_guard.h"
#include "exit.h"
#include "handlers/service.h"
#include "option.h"
#include "process_limits.h"
#include "program.h"
#include "server.h"
#include "start_report.h"

#include <argp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

SHUF_API const char *argp_program_version = SHUF__DAEMON; /* for libc to find */

enum {
    OPTION_CHECK = 256,
    OPTION_CHECK_SERVICE,
    OPTION_PRINT_CONFIG,
    OPTION_NO_CONFIG,
    OPTION_KEYS
};

enum { NAME = 32, HELP = 256 };

static const struct argp_option own_options[] = {
    {"config", 'c', "FILE", 0,
     "Read the configuration from FILE (default: /etc/shufd/shufd.conf, or etc/shufd/shufd.conf of "
     "the prefix of the installation, if it exists)",
     1},
    {"no-config", OPTION_NO_CONFIG, NULL, 0, "Read no configuration file", 1},
    {"check", OPTION_CHECK, NULL, 0, "Check that the daemon could start, print its device and exit",
     1},
    {"check-service", OPTION_CHECK_SERVICE, NULL, 0,
     "Check the same without the socket, which systemd makes for a service", 1},
    {"print-config", OPTION_PRINT_CONFIG, NULL, 0,
     "Print the configuration that applies, with an explanation of each key, and exit", 1},
    SHUF__OPTION_HELP,
    {NULL, 0, NULL, 0, "Keys of the configuration:", 2},
};

enum { OWN_OPTIONS = sizeof own_options / sizeof *own_options };

struct arguments {
    struct shuf__config_source source;
    bool check, check_service, print_config;
};

/* ---- An option for each key ---- */

static int option_of(int key)
{
    return key == SHUF__CONFIG_socket ? 's' : key == SHUF__CONFIG_backend ? 'b' : OPTION_KEYS + key;
}

static int key_of(int option)
{
    int key = 0;
    while (key < SHUF__CONFIG_KEYS && option_of(key) != option)
        key++;
    return key;
}

/* Makes the option of a key: "host_cache" gives --host-cache, with the first sentence of its help.
 */
static struct argp_option option_for(int key)
{
    static char names[SHUF__CONFIG_KEYS][NAME], texts[SHUF__CONFIG_KEYS][HELP];
    const struct shuf__config_help help = shuf__config_help((enum shuf__config_key)key);
    const char *end = strpbrk(help.text, ".");
    while (end && end[1] != ' ' && end[1] != '\n' && end[1] != '\0')
        end = strpbrk(end + 1, ".");
    snprintf(names[key], NAME, "%s", help.name);
    snprintf(texts[key], HELP, "%.*s", end ? (int)(end - help.text) : HELP, help.text);
    for (char *c = names[key]; *c; c++)
        *c = *c == '_' ? '-' : *c;
    for (char *c = texts[key]; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    return (struct argp_option){names[key], option_of(key), help.value, 0, texts[key], 2};
}

static const struct argp_option *all_options(void)
{
    static struct argp_option options[OWN_OPTIONS + SHUF__CONFIG_KEYS + 1];
    memcpy(options, own_options, sizeof own_options);
    for (int key = 0; key < SHUF__CONFIG_KEYS; key++)
        options[OWN_OPTIONS + key] = option_for(key);
    return options;
}

static error_t take_option(int option, char *value, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    const int key = key_of(option);
    if (key == SHUF__CONFIG_socket && !*value) /* perhaps an empty variable of a script */
        shuf__option_fail(state, EX_USAGE, "--socket '': expected the path of a socket");
    if (key < SHUF__CONFIG_KEYS) {
        arguments->source.value[key] = value;
        return 0;
    }
    switch (option) {
    case 'c':
        arguments->source.file = value;
        return 0;
    case OPTION_NO_CONFIG:
        arguments->source.file = NULL;
        arguments->source.no_file = true;
        return 0;
    case OPTION_CHECK:
        arguments->check = true;
        return 0;
    case OPTION_CHECK_SERVICE:
        arguments->check = arguments->check_service = true;
        return 0;
    case OPTION_PRINT_CONFIG:
        arguments->print_config = true;
        return 0;
    default:
        return shuf__option_common(option, value, state);
    }
}

static int print_completion(const struct argp *parser, const char *shell)
{
    const struct shuf__program program = {.name = "shufd", .global = parser};
    return shuf__completion_print(&program, shell ? shell : "");
}

/* OpenMP's threads spin while they wait, except if the environment forbids it before the program
 * starts. On a machine with busy processors, spinning makes the CPU backend and other programs many
 * times slower. A size of their stacks in the environment may be too small. So shufd executes
 * itself again with a right environment. If this fails, it serves anyway. */
static void set_environment(char **argv)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    const bool has_stack = getenv("OMP_STACKSIZE") || getenv("GOMP_STACKSIZE");
    if (length < 0 || (getenv("OMP_WAIT_POLICY") && !has_stack) ||
        setenv("OMP_WAIT_POLICY", "passive", 0))
        return;
    unsetenv("OMP_STACKSIZE");
    unsetenv("GOMP_STACKSIZE");
    path[length] = '\0';
    execv(path, argv);
}

static void end_at_once(int number)
{
    _exit(128 + number);
}

/* The kernel drops a signal without a handler if the process is the first one of a PID namespace,
 * as in a container. The loop has handlers only when the device is open. */
static void handle_signals_as_first_process(void)
{
    if (getpid() != 1)
        return;
    signal(SIGTERM, end_at_once);
    signal(SIGINT, end_at_once);
}

/* A parent may have blocked signals, such as SIGTERM. */
static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool only_prints(const struct arguments *arguments)
{
    return arguments->check || arguments->print_config;
}

static int fail_start(const struct arguments *arguments, const struct shuf__config *config,
                      const struct shuf__log *log, int code, struct shuf__error *error)
{
    if (!only_prints(arguments))
        return shuf__fail_start(config, log, -1, code, error);
    shuf__log(log, SHUF__LOG_ERROR, "%s", shuf__config_locate(config, error));
    shuf__end_guard_start(SHUF__END_MS, code, NULL, NULL);
    return code;
}

static int check(const struct shuf__config *config, bool service, const struct shuf__log *log)
{
    const int code = shuf__check(config, service, log);
    fflush(NULL); /* the guard does not */
    shuf__end_guard_start(SHUF__END_MS, code, NULL, NULL);
    return code;
}

int main(int argc, char **argv)
{
    const struct argp parser = {
        .options = all_options(),
        .parser = take_option,
        .doc = "Computes permutations and random numbers on a GPU or CPU for the processes of this "
               "machine, which connect to its Unix socket. Runs in the foreground.",
    };
    struct arguments arguments = {0};
    static struct shuf__config config;
    struct shuf__log log;
    struct shuf__error error;
    unblock_signals();
    handle_signals_as_first_process();
    signal(SIGHUP, SIG_IGN); /* by default it would end shufd, which cannot reload yet */
    shuf__program_name = "shufd";
    shuf__streams_prepare();
    shuf__log_init(&log, SHUF__LOG_INFO);
    argp_err_exit_status = EX_USAGE;
    if (argc > 1 && strcmp(argv[1], "--completion") == 0)
        return print_completion(&parser, argv[2]);
    shuf__options_tell(shuf__fail_start_of_options);
    shuf__options_parse(&parser, argc, argv, &arguments);
    log.output.stamped &= !only_prints(&arguments); /* a person needs no time */
    int code = shuf__config_load(&config, &arguments.source, &error);
    if (code != EX_OK)
        return fail_start(&arguments, &config, &log, code, &error);
    log.level = (enum shuf__log_level)config.log_level;
    log.rate = config.log_rate;
    if (arguments.print_config) {
        shuf__config_print(&config, stdout);
        return EX_OK;
    }
    if (shuf__limits_check(&config, &error))
        return fail_start(&arguments, &config, &log, EX_OSERR, &error);
    /* Checked before the socket is opened. Else, if another daemon has the socket, that error would
     * hide this one. */
    if (shuf__backend_check(config.backend, &error)) {
        code = shuf__exit_of_backend(&config, error.status);
        return fail_start(&arguments, &config, &log, code, &error);
    }
    if (arguments.check)
        return check(&config, arguments.check_service, &log);
    set_environment(argv);
    signal(SIGPIPE, SIG_IGN);
    return shuf__server_run(&config, &log);
}
