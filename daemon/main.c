/* SPDX-License-Identifier: MIT
 *
 * shufd: reads the command line and the configuration, then serves.
 */
#include "check.h"
#include "config/config.h"
#include "config/log.h"
#include "handlers/service.h"
#include "option_parse.h"
#include "option_values.h"
#include "server.h"

#include <argp.h>
#include <errno.h>
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
    OPTION_PRINT_CONFIG,
    OPTION_NO_CONFIG,
    OPTION_HOST_MEMORY,
    OPTION_DEVICE_MEMORY
};

static const struct argp_option options[] = {
    {"config", 'c', "FILE", 0,
     "Read the configuration from FILE (default: /etc/shufd/shufd.conf, or etc/shufd/shufd.conf of "
     "the prefix of the installation, if it exists)",
     0},
    {"no-config", OPTION_NO_CONFIG, NULL, 0, "Read no configuration file", 0},
    {"socket", 's', "PATH", 0, "Listen on PATH instead of the configured socket", 0},
    {"backend", 'b', "SPEC", 0,
     "Compute on SPEC: auto, cpu, cpu:scalar|avx2|avx512, cuda, cuda:UUID or cuda:ORDINAL", 0},
    {"host-memory", OPTION_HOST_MEMORY, "SIZE", 0,
     "Use at most SIZE of host memory for results, such as 8Gi or 25%", 0},
    {"device-memory", OPTION_DEVICE_MEMORY, "SIZE", 0,
     "Use at most SIZE of the GPU's memory for results, such as 8Gi or 10%", 0},
    {"check", OPTION_CHECK, NULL, 0, "Check that the daemon could start, print its device and exit",
     0},
    {"print-config", OPTION_PRINT_CONFIG, NULL, 0,
     "Print the configuration that applies, with an explanation of each key, and exit", 0},
    SHUF__OPTION_HELP,
    {0},
};

struct arguments {
    struct shuf__config_source source;
    bool check, print_config;
};

static error_t take_option(int key, char *value, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case 'c':
        arguments->source.file = value;
        return 0;
    case OPTION_NO_CONFIG:
        arguments->source.file = NULL;
        arguments->source.no_file = true;
        return 0;
    case 's':
        arguments->source.socket = value;
        return 0;
    case 'b':
        arguments->source.backend = value;
        return 0;
    case OPTION_HOST_MEMORY:
        arguments->source.host_memory = value;
        return 0;
    case OPTION_DEVICE_MEMORY:
        arguments->source.device_memory = value;
        return 0;
    case OPTION_CHECK:
        arguments->check = true;
        return 0;
    case OPTION_PRINT_CONFIG:
        arguments->print_config = true;
        return 0;
    default:
        return shuf__option_common(key, value, state);
    }
}

/* The exit code; EX_IOERR if the output is incomplete. */
static int finish_output(const struct shuf__log *log)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EX_OK;
    shuf__log(log, SHUF__LOG_ERROR, "standard output: %s", strerror(errno));
    return EX_IOERR;
}

/* OpenMP's threads spin while they wait, unless the environment forbids it before the program
 * starts. On a node with busy processors that makes the CPU backend, and other programs, many times
 * slower. So shufd executes itself again with the right environment. If that fails, it serves
 * without. */
static void forbid_spinning(char **argv)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0 || getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "passive", 1))
        return;
    path[length] = '\0';
    execv(path, argv);
}

int main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = options,
        .parser = take_option,
        .doc = "Computes permutations and random numbers on a GPU or CPU for the processes of this "
               "machine, which connect to its Unix socket. Runs in the foreground.",
    };
    struct arguments arguments = {0};
    static struct shuf__config config;
    struct shuf__log log;
    struct shuf__error error;
    shuf__log_init(&log, SHUF__LOG_INFO);
    argp_err_exit_status = EX_USAGE;
    shuf__options_parse(&parser, argc, argv, &arguments);
    log.stamped &= !arguments.check && !arguments.print_config; /* a person reads it */
    int code = shuf__config_load(&config, &arguments.source, &error);
    if (code != EX_OK) {
        shuf__log(&log, SHUF__LOG_ERROR, "%s", error.text);
        return code;
    }
    log.level = (enum shuf__log_level)config.log_level;
    if (arguments.print_config) {
        shuf__config_print(&config, stdout);
        return finish_output(&log);
    }
    if (arguments.check) {
        code = shuf__check(&config, &log);
        return code == EX_OK ? finish_output(&log) : code;
    }
    forbid_spinning(argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN); /* until the server can reload; the default would end it */
    return shuf__server_run(&config, &log);
}
