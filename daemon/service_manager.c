/* SPDX-License-Identifier: MIT
 *
 * See service_manager.h. Errors are ignored, because a lost message changes nothing for the
 * clients.
 */
#include "service_manager.h"

#ifdef SHUF_HAVE_SYSTEMD

#include <inttypes.h>
#include <systemd/sd-daemon.h>
#include <time.h>

static const uint64_t us_per_ms = 1000;

void shuf__service_manager_ready(const char *status)
{
    sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

/* systemd tells this reload from earlier ones by the time. */
void shuf__service_manager_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notifyf(0, "RELOADING=1\nSTATUS=Reading the configuration\nMONOTONIC_USEC=%" PRIu64,
               (uint64_t)now.tv_sec * 1000 * us_per_ms + (uint64_t)now.tv_nsec / 1000);
}

void shuf__service_manager_stopping(const char *status, uint64_t most_ms)
{
    sd_notifyf(0, "STOPPING=1\nSTATUS=%s\nEXTEND_TIMEOUT_USEC=%" PRIu64, status,
               most_ms * us_per_ms);
}

void shuf__service_manager_alive(void)
{
    sd_notify(0, "WATCHDOG=1");
}

uint64_t shuf__service_manager_watchdog_ms(void)
{
    uint64_t us;
    return sd_watchdog_enabled(0, &us) > 0 ? us / us_per_ms : 0;
}

#else

void shuf__service_manager_ready(const char *status)
{
    (void)status;
}

void shuf__service_manager_reloading(void)
{
}

void shuf__service_manager_stopping(const char *status, uint64_t most_ms)
{
    (void)status;
    (void)most_ms;
}

void shuf__service_manager_alive(void)
{
}

uint64_t shuf__service_manager_watchdog_ms(void)
{
    return 0;
}

#endif
