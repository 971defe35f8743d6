/* SPDX-License-Identifier: MIT
 *
 * See reload.h. A file with a mistake changes nothing: half of a configuration may be worse than
 * the old one.
 */
#include "reload.h"

#include <stdlib.h>
#include <sysexits.h>

/* Returns the number of keys that differ. */
static unsigned log_changes(const struct shuf__config *config, const struct shuf__config *fresh,
                            const struct shuf__log *log)
{
    struct shuf__config_change change;
    unsigned count = 0;
    for (size_t next = 0; shuf__config_diff(config, fresh, &next, &change); count++)
        if (change.needs_restart)
            shuf__log(log, SHUF__LOG_WARNING,
                      "reload: %s = %s takes effect only after a restart, now %s", change.key,
                      change.to, change.from);
        else
            shuf__log(log, SHUF__LOG_INFO, "reload: %s = %s, before %s", change.key, change.to,
                      change.from);
    return count;
}

static void take_over(struct shuf__config *config, const struct shuf__config *fresh,
                      struct shuf__log *log)
{
    if (log_changes(config, fresh, log) == 0)
        shuf__log(log, SHUF__LOG_INFO, "reload: %s: nothing has changed", fresh->file);
    shuf__config_update(config, fresh);
    log->level = (enum shuf__log_level)config->log_level;
    log->rate = config->log_rate;
}

void shuf__reload(struct shuf__config *config, struct shuf__log *log)
{
    struct shuf__error error;
    struct shuf__config *fresh = malloc(sizeof *fresh);
    if (!fresh)
        shuf__log(log, SHUF__LOG_ERROR, "reload: out of memory; nothing changes");
    else if (shuf__config_load(fresh, &config->source, &error) != EX_OK)
        shuf__log(log, SHUF__LOG_ERROR, "reload: %s; nothing changes", error.text);
    else if (!fresh->file[0]) /* perhaps an editor is about to write it */
        shuf__log(log, SHUF__LOG_WARNING,
                  "reload: there is no configuration file; nothing changes");
    else
        take_over(config, fresh, log);
    free(fresh);
}
