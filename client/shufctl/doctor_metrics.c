/* SPDX-License-Identifier: MIT
 *
 * The check of the metrics: see doctor.h. The keys metrics and metrics_file take effect at a start
 * of the daemon, so the check also looks into the configuration file for values that wait for a
 * start.
 */
#include "doctor.h"
#include "start_command.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { KEY = 32, VALUE = 108, WAITING = 2 * (KEY + VALUE) };

static const char *const keys[] = {"metrics", "metrics_file"};

/* Finds the value of a key in the file: the last one. "": the file does not set the key. */
static void find_value(FILE *file, const char *key, char value[VALUE])
{
    char line[1024], found[KEY], text[VALUE];
    *value = '\0';
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        const int count = sscanf(line, " %31[a-z_] = %107s", found, text);
        if (count >= 1 && strcmp(found, key) == 0)
            strcpy(value, count == 2 && *text != '#' ? text : "");
    }
}

/* True if `places`, "PLACE, PLACE", has the value. %i in the value stands for any name. */
static bool is_among(const char *value, const char *places)
{
    const char *name = strstr(value, "%i");
    const size_t length = name ? (size_t)(name - value) : strlen(value);
    for (const char *place = places; place; place = strstr(place, ", ")) {
        place += strspn(place, ", ");
        if (strncmp(place, value, length) == 0 &&
            (name || place[length] == '\0' || place[length] == ','))
            return true;
    }
    return false;
}

static bool is_off(const char *value)
{
    return *value == '\0' || strcmp(value, "off") == 0;
}

/* Writes "KEY = VALUE, ..." of the keys whose values in the file the daemon does not use yet.
 * False: there are none, or the file cannot be read. */
static bool find_waiting(const struct shuf__patient *patient, char waiting[WAITING])
{
    char path[PATH_MAX], value[VALUE];
    size_t used = 0;
    snprintf(path, sizeof path, "%.256s%s", patient->root, patient->daemon.configuration);
    FILE *file = *patient->daemon.configuration ? shuf__patient_open(path) : NULL;
    for (size_t i = 0; file && i < sizeof keys / sizeof *keys; i++) {
        find_value(file, keys[i], value);
        if (!is_off(value) && !is_among(value, patient->daemon.metrics))
            used += (size_t)snprintf(waiting + used, WAITING - used, "%s%s = %s", used ? ", " : "",
                                     keys[i], value);
    }
    if (file)
        fclose(file);
    return used > 0;
}

static void find_not_started(const struct shuf__patient *patient, const char *waiting,
                             struct shuf__finding *finding)
{
    char unit[SHUF__UNIT_NAME],
        advice[SHUF__FINDING_TEXT] = "restart the daemon; an option overrides the file";
    if (shuf__unit_of_socket(shuf_socket(patient->handle), unit))
        snprintf(advice, sizeof advice, "systemctl restart '%s.service', as root", unit);
    shuf__find(finding, SHUF__FINDING_NOTE, advice,
               "%.200s has %s, which the daemon reads only at its start; now it publishes %s%s",
               patient->daemon.configuration, waiting, *patient->daemon.metrics ? "on " : "nothing",
               patient->daemon.metrics);
}

void shuf__check_metrics(const struct shuf__patient *patient, struct shuf__finding *finding)
{
    const shuf_daemon *d = &patient->daemon;
    char waiting[WAITING];
    if (d->metrics_fault[0])
        shuf__find(
            finding, SHUF__FINDING_NOTE,
            "correct it, then restart the daemon, except for metrics_file, which it tries again by "
            "itself; shufctl metrics works without both",
            "the daemon does not publish metrics as configured: %s", d->metrics_fault);
    else if (find_waiting(patient, waiting))
        find_not_started(patient, waiting, finding);
    else if (d->metrics[0])
        shuf__find(finding, SHUF__FINDING_OK, NULL, "published on %s", d->metrics);
    else
        shuf__find(finding, SHUF__FINDING_OK, NULL,
                   "not configured: only shufctl metrics prints them; the keys metrics and "
                   "metrics_file of shufd.conf publish them");
}
