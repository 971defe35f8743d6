/* SPDX-License-Identifier: MIT
 *
 * See provenance.h.
 */
#include "provenance.h"

#include "commit.h"
#include "json.h"

#include <stdio.h>
#include <time.h>

static struct {
    json_t *command;               /* NULL: none */
    char backend[16], device[128]; /* empty: the CPU */
} provenance;

void shuf__provenance_begin(int argc, char **argv)
{
    provenance.command = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(provenance.command, json_string(i == 0 ? "shuf-quality" : argv[i]));
}

void shuf__provenance_device(const char *backend, const char *device)
{
    snprintf(provenance.backend, sizeof provenance.backend, "%s", backend);
    snprintf(provenance.device, sizeof provenance.device, "%s", device);
}

/* The name that the kernel gives the first processor. */
static void find_processor(char name[128])
{
    char line[256];
    FILE *from = fopen("/proc/cpuinfo", "r");
    snprintf(name, 128, "unknown");
    while (from && fgets(line, sizeof line, from))
        if (sscanf(line, "model name : %127[^\n]", name) == 1)
            break;
    if (from)
        fclose(from);
}

void shuf__provenance_json(json_t *object)
{
    char date[32], processor[128];
    const time_t now = time(NULL);
    find_processor(processor);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    shuf__json_text(object, "commit", SHUF_COMMIT);
    shuf__json_text(object, "date", date);
    shuf__json_text(object, "backend", *provenance.backend ? provenance.backend : "cpu");
    shuf__json_text(object, "device", *provenance.device ? provenance.device : processor);
    json_object_set_new(object, "command",
                        provenance.command ? json_incref(provenance.command) : json_array());
}
