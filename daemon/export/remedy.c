/* SPDX-License-Identifier: MIT
 *
 * See remedy.h.
 */
#include "remedy.h"

#include "cause.h"
#include "config/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* RestrictAddressFamilies= of the unit refuses the family. */
const char *shuf__remedy_of_port(int cause)
{
    if (cause == EADDRINUSE)
        return "; another program listens there, so choose another port";
    return cause == EAFNOSUPPORT && shuf__is_in_unit()
               ? "; its unit needs the drop-in metrics-port.conf, see shufd.service(8)"
               : "";
}

/* Names the first directory that the daemon may not search, or else the last one, in which it may
 * not make the file. */
static void write_permission(const char *path, char text[SHUF__REMEDY])
{
    char directory[SHUF__CONFIG_PATH] = "/";
    bool may_search = true;
    for (const char *slash = path; may_search && (slash = strchr(slash + 1, '/')) != NULL;) {
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
        may_search = access(directory, X_OK) == 0;
    }
    snprintf(text, SHUF__REMEDY,
             "; uid %u of the daemon may not %s %.56s: permit it, or choose another directory",
             (unsigned)geteuid(), may_search ? "write to" : "search", directory);
}

void shuf__remedy_of_file(int cause, const char *path, char text[SHUF__REMEDY])
{
    text[0] = '\0';
    const char *advice = shuf__advice_of_sandbox(path);
    if ((cause == EACCES || cause == ENOENT) && *advice)
        snprintf(text, SHUF__REMEDY, "%s", advice);
    else if (cause == EACCES)
        write_permission(path, text);
    else if (cause == EROFS && shuf__is_in_unit()) /* by ProtectSystem= */
        strcpy(text, "; its unit needs ReadWritePaths=, or write to /run/shufd-metrics with the "
                     "drop-in metrics-file.conf");
}
