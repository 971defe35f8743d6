/* SPDX-License-Identifier: MIT
 *
 * Causes of failures: those of the system, those of an object such as a missing file, and those of
 * the sandbox of a unit.
 */
#ifndef SHUF__CAUSE_H
#define SHUF__CAUSE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a call failed for lack of memory or descriptors, or by an error of a device (EIO). The
 * object of the call then may exist, so it must not count as missing. */
static inline bool shuf__is_system_failure(int cause)
{
    return cause == ENOMEM || cause == EMFILE || cause == ENFILE || cause == EIO;
}

/* Whether this process is the service of a unit: systemd sets the variable for each service. */
static inline bool shuf__is_in_unit(void)
{
    return getenv("INVOCATION_ID") != NULL;
}

/* Advice to append to a failure at this path: "", or that the sandbox of the unit may hide it. */
static inline const char *shuf__advice_of_sandbox(const char *path)
{
    static const char *const hidden[] = {"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"};
    for (size_t i = 0; shuf__is_in_unit() && i < sizeof hidden / sizeof *hidden; i++)
        if (strncmp(path, hidden[i], strlen(hidden[i])) == 0)
            return "; the unit may hide it (ProtectHome=, PrivateTmp=): choose another directory";
    return "";
}

#ifdef __cplusplus
}
#endif

#endif
