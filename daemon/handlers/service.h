/* SPDX-License-Identifier: MIT
 *
 * The parts of the daemon that request handlers use.
 */
#ifndef SHUFD_SERVICE_H
#define SHUFD_SERVICE_H

#include "cache/cache.h"
#include "cache/lease.h"
#include "config/config.h"
#include "config/log.h"
#include "engine/engines.h"
#include "keys/keyring.h"
#include "memory/client_process.h"
#include "memory/pool.h"
#include "memory/warm.h"
#include "net/session.h"
#include "stats/stats.h"

#include <stdbool.h>
#include <stddef.h>

/* The name of a daemon among the daemons of one machine: the name of its socket without .sock. The
 * daemons share one configuration file, in which %i stands for the name. */
enum { SHUF__SERVICE_NAME = 108, SHUF__SERVICE_UNIT = 128 };

void shuf__service_name_of(const char *socket, char name[SHUF__SERVICE_NAME]);

/* Writes the unit of systemd for this socket. type: "socket" or "service". */
void shuf__service_unit_of(const char *socket, const char *type, char unit[SHUF__SERVICE_UNIT]);

/* Copies `text` to `out` and replaces each %i by the name. If the copy does not fit, returns false
 * and sets `out` to "". */
bool shuf__service_name_expand(const char *text, const char *name, char *out, size_t size);

#define SHUF__DAEMON "shufd " SHUF_VERSION_TEXT

/* The places where the daemon publishes metrics. */
enum shuf__publication_kind { SHUF__PUBLICATION_HTTP, SHUF__PUBLICATION_FILE, SHUF__PUBLICATIONS };

struct shuf__publication {
    char place[120]; /* an address or a file; "": not configured */
    char fault[256]; /* "": it works */
};

struct shuf__service {
    const struct shuf__config *config;
    const struct shuf__log *log;
    uv_loop_t *loop;
    struct shuf__engine *engine;
    struct shuf__placement placement;
    struct shuf__allocations allocations;
    struct shuf__pool pool;
    struct shuf__shortage shortage;
    struct shuf__warm warm;
    struct shuf__dropped unlogged; /* memory given back since the last line about it in the log */
    uint64_t next_log_ms;
    struct shuf__keyring keyring;
    struct shuf__cache cache;
    struct shuf__process_watches process_watches;
    struct shuf__leases leases;
    struct shuf__stats stats;
    struct shuf__sessions sessions;
    uint64_t served, start_ms;
    double start_seconds;                /* the same time, in seconds since 1970 */
    char reload_fault[SHUF__ERROR_TEXT]; /* of the last reload, or "" */
    char gpu_fault[SHUF__ERROR_TEXT];    /* why backend = auto has not chosen the GPU, or "" */
    char name[SHUF__SERVICE_NAME], unit[SHUF__SERVICE_UNIT];
    struct shuf__publication publications[SHUF__PUBLICATIONS];
};

/* Call shuf__service_set_engine() before requests are handled. */
void shuf__service_init(struct shuf__service *service, uv_loop_t *loop,
                        const struct shuf__config *config, const struct shuf__log *log);

/* Closes the handles of all parts when the daemon ends. */
void shuf__service_close(struct shuf__service *service);

/* Applies the limits of the configuration, at the start and after a change of them. */
void shuf__service_configure(struct shuf__service *service);

/* The number of daemons that share the host memory of the machine. 0 and an error if the value of
 * $SHUFD_INSTANCES is wrong. */
uint64_t shuf__service_sharers(struct shuf__error *error);

/* Whether the named keys could be loaded. */
shuf_status shuf__service_check_keys(const struct shuf__config *config, struct shuf__error *error);

/* Reads the named keys at the start. A failure changes nothing. */
shuf_status shuf__service_load_keys(struct shuf__service *service, struct shuf__error *error);

/* Reads the named keys again, and logs the keys that have changed, or the failure. */
shuf_status shuf__service_reload_keys(struct shuf__service *service, struct shuf__error *error);

/* Call when the daemon begins to serve on that socket. */
void shuf__service_started(struct shuf__service *service, const char *socket, bool is_passed);

void shuf__service_set_engine(struct shuf__service *service, struct shuf__engine *engine);

static inline struct shuf__service *shuf__service_of(const struct shuf__session *session)
{
    return (struct shuf__service *)((char *)session->all -
                                    offsetof(struct shuf__service, sessions));
}

bool shuf__session_is_privileged(const struct shuf__session *session);

#endif
