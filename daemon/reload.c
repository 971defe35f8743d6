/* SPDX-License-Identifier: MIT
 *
 * See reload.h. A file with a mistake changes nothing, not even the named keys, because half of a
 * new configuration may be worse than the old one.
 */
#include "reload.h"

#include "backend.h"
#include "start_report.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION = 64 };

static void log_change(const struct shuf__config_change *change,
                       const struct shuf__listener *listener, const struct shuf__log *log)
{
    char unused[SHUF__UNUSED_TEXT];
    if (shuf__socket_key_is_unused(listener, change->number, unused))
        shuf__log(log, SHUF__LOG_WARNING, "reload: %s = %s: even after a restart it %s",
                  change->key, change->to, unused);
    else if (change->needs_restart)
        shuf__log(log, SHUF__LOG_WARNING,
                  "reload: %s = %s takes effect only after a restart, now %s", change->key,
                  change->to, change->from);
    else
        shuf__log(log, SHUF__LOG_INFO, "reload: %s = %s, before %s", change->key, change->to,
                  change->from);
}

/* Returns the number of keys that differ. */
static unsigned log_changes(const struct shuf__config *config, const struct shuf__config *fresh,
                            const struct shuf__listener *listener, const struct shuf__log *log)
{
    struct shuf__config_change change;
    unsigned count = 0;
    for (size_t next = 0; shuf__config_diff(config, fresh, &next, &change); count++)
        log_change(&change, listener, log);
    return count;
}

/* "--host-cache" for host_cache. */
static void write_option(const char *key, char option[OPTION])
{
    snprintf(option, OPTION, "--%s", key);
    for (char *c = option; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

/* Logs the keys of the file that an option overrides with another value. Returns their number. A
 * key with its default value needs no warning, because nobody chose this value. */
static unsigned log_overridden(const struct shuf__config *file, const struct shuf__config *fresh,
                               const struct shuf__log *log)
{
    struct shuf__config_change change;
    char option[OPTION];
    unsigned count = 0;
    for (size_t next = 0; shuf__config_diff(file, fresh, &next, &change);) {
        if (!file->line[change.number] || shuf__config_is_default(file, change.number))
            continue;
        write_option(change.key, option);
        shuf__log(log, SHUF__LOG_WARNING,
                  "reload: %s:%d: %s = %s is not used: the option %s %s of the command line "
                  "overrides it; start shufd without the option to use the file",
                  file->file, file->line[change.number], change.key, change.from, option,
                  change.to);
        count++;
    }
    return count;
}

static void take_over(struct shuf__config *config, const struct shuf__config *file,
                      const struct shuf__config *fresh, const struct shuf__listener *listener,
                      struct shuf__log *log)
{
    const unsigned count =
        log_changes(config, fresh, listener, log) + log_overridden(file, fresh, log);
    if (!fresh->file[0])
        shuf__log(log, SHUF__LOG_INFO, "reload: there is no configuration file, only keys");
    else if (count == 0)
        shuf__log(log, SHUF__LOG_INFO, "reload: %s: nothing has changed", fresh->file);
    shuf__config_update(config, fresh);
    log->level = (enum shuf__log_level)config->log_level;
    log->rate = config->log_rate;
}

static shuf_status keep(struct shuf__log *log, enum shuf__log_level level,
                        const struct shuf__error *fault)
{
    shuf__log(log, level, "reload: %s; nothing changes", fault->text);
    return fault->status;
}

static shuf_status check_socket(const struct shuf__config *config, const struct shuf__config *fresh,
                                const struct shuf__listener *listener, struct shuf__error *fault)
{
    /* Without a change of its keys, a mistake of the socket would be none of the file. */
    const bool is_same = strcmp(config->socket, fresh->socket) == 0 &&
                         strcmp(config->socket_group, fresh->socket_group) == 0;
    return is_same || listener->is_passed
               ? SHUF_OK
               : shuf__listener_check(fresh->socket, fresh->socket_group, fault);
}

/* Checks the keys that only a start uses, so that a mistake is found now and not at that start. */
static shuf_status check_start(const struct shuf__config *config, const struct shuf__config *fresh,
                               const struct shuf__listener *listener, struct shuf__error *fault)
{
    if (shuf__backend_check(fresh->backend, fault) == SHUF_OK &&
        check_socket(config, fresh, listener, fault) == SHUF_OK)
        return SHUF_OK;
    shuf__config_locate(fresh, fault);
    return fault->status;
}

/* The options were accepted at the start, so setting them again cannot fail. */
static shuf_status reload(struct shuf__config *config, struct shuf__config *file,
                          struct shuf__config *fresh, const struct shuf__listener *listener,
                          struct shuf__log *log, struct shuf__error *fault)
{
    if (shuf__config_load_file(file, &config->source, fault))
        return keep(log, SHUF__LOG_ERROR, fault);
    if (!file->file[0] && config->file[0]) { /* perhaps an editor is about to write it */
        shuf__fail(fault, SHUF_IO, "there is no configuration file");
        return keep(log, SHUF__LOG_WARNING, fault);
    }
    *fresh = *file;
    const shuf_status status = shuf__config_set_options(fresh, fault);
    assert(status == SHUF_OK);
    (void)status;
    if (check_start(config, fresh, listener, fault))
        return keep(log, SHUF__LOG_ERROR, fault);
    take_over(config, file, fresh, listener, log);
    return SHUF_OK;
}

static shuf_status reload_file(struct shuf__config *config, const struct shuf__listener *listener,
                               struct shuf__log *log, struct shuf__error *fault)
{
    struct shuf__config *both = malloc(2 * sizeof *both);
    if (!both) {
        shuf__fail(fault, SHUF_NO_MEMORY, "out of memory");
        return keep(log, SHUF__LOG_ERROR, fault);
    }
    const shuf_status status = reload(config, &both[0], &both[1], listener, log, fault);
    free(both);
    return status;
}

void shuf__reload(struct shuf__config *config, struct shuf__service *service,
                  const struct shuf__listener *listener, struct shuf__log *log,
                  struct shuf__error *fault)
{
    struct shuf__error error;
    if (reload_file(config, listener, log, &error)) {
        shuf__fail(fault, error.status, "the last reload failed: %.480s", error.text);
        return;
    }
    fault->text[0] = '\0';
    shuf__service_configure(service);
    if (shuf__service_reload_keys(service, &error)) /* its text may have the name of a key */
        shuf__fail(fault, error.status, "named keys not reloaded: the log names the reason");
}
