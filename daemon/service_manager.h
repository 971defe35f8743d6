/* SPDX-License-Identifier: MIT
 *
 * Reports of the daemon to its service manager (sd_notify(3)). Without a service manager, and in
 * a build without libsystemd, these functions do nothing.
 */
#ifndef SHUFD_SERVICE_MANAGER_H
#define SHUFD_SERVICE_MANAGER_H

#include <stdint.h>

/* The daemon serves; `status` is one line for people. Also ends a reload. */
void shuf__service_manager_ready(const char *status);

/* The daemon reads its configuration again; shuf__service_manager_ready() ends it. */
void shuf__service_manager_reloading(void);

/* The daemon ends within `most_ms`, which may be more than the unit's TimeoutStopSec. */
void shuf__service_manager_stopping(const char *status, uint64_t most_ms);

/* The daemon and its device are alive. */
void shuf__service_manager_alive(void);

/* The interval in which the service manager expects shuf__service_manager_alive(), else it kills
 * the daemon; 0: none. */
uint64_t shuf__service_manager_watchdog_ms(void);

#endif
