/* SPDX-License-Identifier: MIT
 *
 * See python_peer.h. A script prints {"absent": "why"} if its library is not installed.
 */
#include "python_peer.h"

#include "process.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARGUMENTS = 12 };

static char *output_of(const char *script, const char *const *arguments)
{
    char path[512];
    const char *argv[ARGUMENTS + 3] = {"python3", path};
    snprintf(path, sizeof path, "%s/%s", BENCH_PEERS, script);
    for (int i = 0; i < ARGUMENTS && arguments[i]; i++)
        argv[2 + i] = arguments[i];
    return process_output(argv);
}

json_t *python_peer_run(struct report *report, const char *script, const char *const *arguments)
{
    char *text = output_of(script, arguments);
    json_t *object = text ? json_loads(text, 0, NULL) : NULL;
    const char *absent = "python3 is not installed, or the script failed";
    free(text);
    json_unpack(object, "{s:s}", "absent", &absent);
    if (object && !json_object_get(object, "absent"))
        return object;
    report_fact(report, script, absent);
    json_decref(object);
    return NULL;
}

size_t python_peer_numbers(const json_t *object, const char *member, double **numbers)
{
    const json_t *list = json_object_get(object, member);
    size_t count = json_array_size(list);
    if (count == 0 || !(*numbers = malloc(count * sizeof **numbers)))
        die("peer: its output has no member \"%s\"", member);
    for (size_t i = 0; i < count; i++)
        (*numbers)[i] = json_number_value(json_array_get(list, i));
    return count;
}
