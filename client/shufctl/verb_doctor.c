/* SPDX-License-Identifier: MIT
 *
 * `shufctl doctor`: checks the machine and the daemon, and says what to do.
 */
#include "connect.h"
#include "daemon_options.h"
#include "doctor.h"
#include "json.h"
#include "verbs.h"

#include <stdio.h>
#include <sysexits.h>

static const char *const level_names[] = {"ok", "note", "FAULT"};

static void print_finding(const char *name, const struct shuf__finding *finding)
{
    printf("%-6s %-11s %s\n", level_names[finding->level], name, finding->text);
    if (finding->advice[0])
        printf("%-6s %-11s -> %s\n", "", "", finding->advice);
}

static void add_finding(json_t *to, const char *name, const struct shuf__finding *finding)
{
    static const char *const levels[] = {"ok", "note", "fault"};
    json_t *object = json_object();
    shuf__json_text(object, "check", name);
    shuf__json_text(object, "level", levels[finding->level]);
    shuf__json_text(object, "text", finding->text);
    shuf__json_text(object, "advice", finding->advice);
    json_array_append_new(to, object);
}

/* Runs the checks, with `stop_at_fault` only up to the first fault. Returns the number of
 * faults. */
static unsigned run_checks(const struct shuf__patient *patient, const struct shuf__check *checks,
                           bool stop_at_fault, json_t *json)
{
    unsigned faults = 0;
    for (; checks->name && !(stop_at_fault && faults); checks++) {
        struct shuf__finding finding = {0};
        checks->run(patient, &finding);
        faults += finding.level == SHUF__FINDING_FAULT;
        if (json)
            add_finding(json, checks->name, &finding);
        else
            print_finding(checks->name, &finding);
    }
    return faults;
}

/* Checks the machine first. The checks of the daemon stop at the first fault, because later ones
 * need a daemon that answers. */
static unsigned examine(const struct shuf__patient *patient, bool json)
{
    json_t *findings = json ? json_array() : NULL;
    unsigned faults = run_checks(patient, shuf__machine_checks, false, findings);
    faults += run_checks(patient, shuf__daemon_checks, true, findings);
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "findings", findings);
        shuf__json_integer(object, "faults", faults);
        shuf__json_print(object, stdout);
    }
    return faults;
}

int shuf__verb_doctor(int argc, char **argv)
{
    struct shuf__daemon_options options;
    struct shuf__patient patient = {.root = ""};
    shuf__daemon_options(argc, argv,
                         "Checks the driver, device files, limits, huge pages and the daemon with "
                         "its version and sandbox, and says what to do. Exit status: 0 without a "
                         "FAULT, whatever the notes; else 69.",
                         &options);
    patient.given_socket = options.socket;
    patient.status = shuf__connect(&patient.handle, &options);
    if (patient.status == SHUF_OK)
        patient.status = shuf_daemon_status(patient.handle, &patient.daemon);
    const unsigned faults = examine(&patient, options.json);
    shuf_close(patient.handle);
    return faults ? EX_UNAVAILABLE : EX_OK;
}
