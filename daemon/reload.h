/* SPDX-License-Identifier: MIT
 *
 * Reads the configuration again while the daemon runs.
 */
#ifndef SHUFD_RELOAD_H
#define SHUFD_RELOAD_H

#include "config/config.h"
#include "config/log.h"

/* Changes the keys of *config that can change, and logs one line for each key that differs. If
 * nothing changes, it logs the reason. The caller applies the new values. */
void shuf__reload(struct shuf__config *config, struct shuf__log *log);

#endif
