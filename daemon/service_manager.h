/* SPDX-License-Identifier: MIT
 *
 * Reports of the daemon to its service manager, by the protocol of sd_notify(3). None of these
 * functions waits. Without a service manager they do nothing.
 */
#ifndef SHUFD_SERVICE_MANAGER_H
#define SHUFD_SERVICE_MANAGER_H

#include <stdint.h>

/* Reports that the daemon serves, and that a reload has ended. `status` is one line for people. */
void shuf__service_manager_ready(const char *status);

/* Reports that a reload has begun. shuf__service_manager_ready() reports its end. */
void shuf__service_manager_reloading(void);

/* Reports that the daemon will end within `most_ms`, which may be longer than the unit's
 * TimeoutStopSec. */
void shuf__service_manager_stopping(const char *status, uint64_t most_ms);

/* Reports that the daemon and its device work: the heartbeat. */
void shuf__service_manager_alive(void);

/* The service manager kills the daemon if it gets no shuf__service_manager_alive() for this time.
 * 0: it has no watchdog. */
uint64_t shuf__service_manager_watchdog_ms(void);

#endif
