/* SPDX-License-Identifier: MIT
 *
 * Tells the failures of the system from those of an object, such as a missing file.
 */
#ifndef SHUF__CAUSE_H
#define SHUF__CAUSE_H

#include <errno.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a call failed for lack of memory or descriptors, or by an error of a device (EIO). The
 * object of the call then may exist, so it must not count as missing. */
static inline bool shuf__is_system_failure(int cause)
{
    return cause == ENOMEM || cause == EMFILE || cause == ENFILE || cause == EIO;
}

#ifdef __cplusplus
}
#endif

#endif
