/* SPDX-License-Identifier: MIT
 *
 * `shufctl drop`: frees the memory of unused results.
 */
#include "connect.h"
#include "json.h"
#include "option.h"
#include "units.h"
#include "user.h"
#include "verb_options.h"
#include "verbs.h"

#include <inttypes.h>
#include <sysexits.h>

enum key { KEY_USER = 0x400, KEY_ALL };

struct drop_options {
    struct shuf__daemon_options daemon;
    shuf_owner owner;
    uint32_t uid;
};

static const struct argp_option option_table[] = {
    {"user", KEY_USER, "NAME|UID", 0,
     "Free the results of this user. Root and the daemon's user may name another user", 0},
    {"all", KEY_ALL, NULL, 0,
     "Free the results of all users. Only root and the daemon's user may do so", 0},
    {0},
};

static void set_owner(struct argp_state *state, struct drop_options *options, shuf_owner owner)
{
    if (options->owner != SHUF_OWN)
        shuf__option_fail(state, EX_USAGE, "--user and --all: expected one of them, once");
    options->owner = owner;
}

static error_t parse_drop_option(int key, char *text, struct argp_state *state)
{
    struct drop_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case KEY_USER:
        set_owner(state, options, SHUF_USER);
        if (*text == '-')
            shuf__option_fail(state, EX_USAGE, "--user: expected a name or a number before %.64s",
                              text);
        if (!shuf__user_find(text, &options->uid))
            shuf__option_fail(state, EX_USAGE,
                              "--user %.64s: no such user, expected a name or a number", text);
        return 0;
    case KEY_ALL:
        set_owner(state, options, SHUF_ALL);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_dropped(const shuf_dropped *d)
{
    char host[SHUF__UNITS_TEXT], device[SHUF__UNITS_TEXT], mapped[SHUF__UNITS_TEXT];
    printf("freed       %" PRIu64 " result%s, %s of host memory, %s of device memory\n", d->results,
           d->results == 1 ? "" : "s", shuf__units_memory(host, d->host_bytes),
           shuf__units_memory(device, d->device_bytes));
    if (d->mapped_bytes > 0)
        printf("later       %s, when no process has them mapped (see shufctl status)\n",
               shuf__units_memory(mapped, d->mapped_bytes));
}

/* Explains why nothing was freed although there are results: processes hold leases on them. */
static void print_in_use(shuf *handle)
{
    shuf_daemon daemon;
    if (shuf_daemon_status(handle, &daemon) == SHUF_OK && daemon.leases > 0)
        printf("in use      %" PRIu64 " lease%s: shufctl leases names the processes\n",
               daemon.leases, daemon.leases == 1 ? "" : "s");
}

static void print_dropped_json(const shuf_dropped *d)
{
    json_t *object = json_object();
    shuf__json_integer(object, "results", d->results);
    shuf__json_integer(object, "host_bytes", d->host_bytes);
    shuf__json_integer(object, "device_bytes", d->device_bytes);
    shuf__json_integer(object, "mapped_bytes", d->mapped_bytes);
    shuf__json_print(object, stdout);
}

static int drop(shuf *handle, const struct drop_options *options)
{
    shuf_dropped dropped;
    shuf_status status = shuf_drop(handle, options->owner, options->uid, &dropped);
    if (status != SHUF_OK)
        return shuf__fail_call(handle, status, &options->daemon);
    if (options->daemon.json)
        print_dropped_json(&dropped);
    else if (!options->daemon.quiet) {
        print_dropped(&dropped);
        if (dropped.results == 0)
            print_in_use(handle);
    }
    return EX_OK;
}

int shuf__verb_drop(int argc, char **argv)
{
    static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_drop_option,
        .doc = "Frees the memory of unused results. A later equal request computes its result "
               "again.",
        .children = children,
    };
    struct drop_options options = {0};
    shuf *handle;
    shuf__options_parse(&argp, argc, argv, &options);
    int code = shuf__connect_or_fail(&handle, &options.daemon);
    if (code == EX_OK)
        code = drop(handle, &options);
    shuf_close(handle);
    return code;
}
