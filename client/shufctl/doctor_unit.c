/* SPDX-License-Identifier: MIT
 *
 * The check of the systemd unit that starts the daemon: see doctor.h. It runs systemctl, because
 * only systemd knows why it does not start an ended daemon again.
 */
#include "doctor.h"
#include "start_command.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { UNIT = SHUF__UNIT_NAME + 16, VALUE = 64, FAULT = 256, SETTLE_TRIES = 20 };

struct unit_state {
    char active[VALUE], sub[VALUE], result[VALUE], code[VALUE];
    char fault[FAULT]; /* of the last reload */
};

static void read_property(const char *line, const char *key, char value[VALUE])
{
    const size_t length = strlen(key);
    if (strncmp(line, key, length) == 0)
        snprintf(value, VALUE, "%.*s", (int)strcspn(line + length, "\n"), line + length);
}

/* The daemon writes the reason into the status of its unit. */
static void read_fault(const char *line, char fault[FAULT])
{
    static const char *const words[] = {"; the last reload failed: ",
                                        "; named keys not reloaded: "};
    const bool is_status = strncmp(line, "StatusText=", 11) == 0;
    const char *found = is_status ? strstr(line, words[0]) : NULL;
    if (is_status && !found)
        found = strstr(line, words[1]);
    if (found)
        snprintf(fault, FAULT, "%.*s", (int)strcspn(found + 2, "\n"), found + 2);
}

static void read_state(FILE *properties, struct unit_state *state)
{
    char line[1200];
    while (fgets(line, sizeof line, properties)) {
        read_property(line, "ActiveState=", state->active);
        read_property(line, "SubState=", state->sub);
        read_property(line, "Result=", state->result);
        read_property(line, "ExecMainStatus=", state->code);
        read_fault(line, state->fault);
    }
}

/* How to learn why the unit has failed, and how to start it again. The socket may have failed too,
 * and starts the service. */
static void find_failure(struct shuf__finding *finding, const char *unit,
                         const struct unit_state *state)
{
    char advice[SHUF__FINDING_TEXT], again[4 * UNIT] = "";
    const int name = (int)strcspn(unit, ".");
    const bool has_failed = strcmp(state->active, "failed") == 0;
    if (has_failed)
        snprintf(again, sizeof again,
                 "; after the repair, systemctl reset-failed '%.*s.*'; systemctl restart "
                 "'%.*s.socket'",
                 name, unit, name, unit);
    snprintf(advice, sizeof advice, "as root: journalctl --unit '%s' --lines 20 says why%s", unit,
             again);
    shuf__find(finding, SHUF__FINDING_NOTE, advice, "%s: %s%s, result %s%s%s", unit, state->active,
               has_failed ? "" : " (auto-restart)", state->result,
               state->code[0] ? ", exit status " : "", state->code); /* a socket has none */
}

bool shuf__find_unit_state(struct shuf__finding *finding, const char *unit, FILE *properties)
{
    struct unit_state state = {0};
    char reload[SHUF__FINDING_TEXT];
    read_state(properties, &state);
    const bool restarts = strcmp(state.sub, "auto-restart") == 0;
    const bool is_of_keys = strncmp(state.fault, "named keys", 10) == 0; /* without the reason */
    snprintf(reload, sizeof reload, "%s%s%scorrect the file, then systemctl reload '%s', as root",
             is_of_keys ? "journalctl --unit '" : "", is_of_keys ? unit : "",
             is_of_keys ? "' --lines 20, as root, names it; " : "", unit);
    if (!state.active[0])
        shuf__find(finding, SHUF__FINDING_NOTE, NULL, "systemctl says nothing about %s", unit);
    else if (restarts || strcmp(state.active, "failed") == 0)
        find_failure(finding, unit, &state);
    else if (state.fault[0])
        shuf__find(finding, SHUF__FINDING_NOTE, reload, "%s: %s (%s), %s", unit, state.active,
                   state.sub, state.fault);
    else
        shuf__find(finding, SHUF__FINDING_OK, NULL, "%s: %s (%s)", unit, state.active, state.sub);
    return restarts || !strstr(state.active, "activating"); /* or "deactivating" */
}

/* Asks systemd for the state of a unit. Returns whether the unit neither starts nor stops. */
static bool ask_systemd(struct shuf__finding *finding, const char *unit)
{
    char command[2 * UNIT];
    snprintf(
        command, sizeof command,
        "systemctl show --property=ActiveState,SubState,Result,ExecMainStatus,StatusText '%s' 2>&1",
        unit);
    FILE *properties = popen(command, "r");
    if (!properties) {
        shuf__find(finding, SHUF__FINDING_NOTE, NULL, "systemctl could not be run");
        return true;
    }
    const bool is_settled = shuf__find_unit_state(finding, unit, properties);
    pclose(properties);
    return is_settled;
}

/* The state of NAME.TYPE. A daemon that has just refused this program ends some milliseconds
 * later, so a unit that starts or stops has two seconds. */
static void find_unit(struct shuf__finding *finding, const char *name, const char *type)
{
    static const struct timespec pause = {.tv_nsec = 100000000};
    char unit[UNIT];
    snprintf(unit, sizeof unit, "%s.%s", name, type);
    for (int i = 0; i < SETTLE_TRIES && !ask_systemd(finding, unit); i++)
        nanosleep(&pause, NULL);
}

/* A socket that fails leaves its service inactive, without a failure. */
void shuf__check_unit(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    char name[SHUF__UNIT_NAME];
    struct shuf__finding of_socket;
    if (!shuf__unit_of_socket(shuf_socket(patient->handle), name)) {
        shuf__find(finding, SHUF__FINDING_OK, NULL, "none: systemd has no unit for this socket");
        return;
    }
    if (!shuf__units_have_user()) {
        shuf__find(finding, SHUF__FINDING_NOTE, SHUF__MAKE_USER ", as root, makes them",
                   "%s.socket: it needs the user and the group shufd, and one of them is missing",
                   name);
        return;
    }
    find_unit(finding, name, "service");
    find_unit(&of_socket, name, "socket");
    if (finding->level == SHUF__FINDING_OK && of_socket.level != SHUF__FINDING_OK)
        *finding = of_socket;
}
