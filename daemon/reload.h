/* SPDX-License-Identifier: MIT
 *
 * Reads the configuration again while the daemon runs.
 */
#ifndef SHUFD_RELOAD_H
#define SHUFD_RELOAD_H

#include "config/config.h"
#include "config/log.h"
#include "handlers/service.h"
#include "net/listener.h"

/* Changes the keys of *config that can change, and logs one line for each key that differs. Gives
 * the new values to the service, and reads the named keys again. If something cannot be read, or if
 * the next start would fail, keeps the old values, logs the reason and writes the failure to
 * *fault. Otherwise sets fault->text to "". */
void shuf__reload(struct shuf__config *config, struct shuf__service *service,
                  const struct shuf__listener *listener, struct shuf__log *log,
                  struct shuf__error *fault);

#endif
