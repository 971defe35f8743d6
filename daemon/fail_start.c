/* SPDX-License-Identifier: MIT
 *
 * See fail_start.h.
 */
#include "fail_start.h"

#include "end_guard.h"
#include "net/refusals.h"

#include <stdbool.h>
#include <stddef.h>
#include <sysexits.h>

/* As RestartPreventExitStatus= of the units. */
static bool is_final(int exit_code)
{
    return exit_code == EX_USAGE || exit_code == EX_UNAVAILABLE || exit_code == EX_CONFIG;
}

static void refuse_clients(int listening, const struct shuf__error *error)
{
    if (listening >= 0)
        shuf__refuse_backlog(listening, error);
    else
        shuf__refuse_passed(error);
}

int shuf__fail_start(const struct shuf__config *config, const struct shuf__log *log, int listening,
                     int exit_code, struct shuf__error *error)
{
    shuf__log(log, SHUF__LOG_ERROR, "%s", shuf__config_locate(config, error));
    if (is_final(exit_code))
        refuse_clients(listening, error);
    shuf__end_guard_start(SHUF__END_MS, exit_code, NULL, NULL);
    return exit_code;
}

int shuf__fail_start_of_keys(const struct shuf__config *config, const struct shuf__log *log,
                             int listening, struct shuf__error *error)
{
    shuf__log(log, SHUF__LOG_ERROR, "%s", shuf__config_locate(config, error));
    shuf__fail(error, error->status,
               "keys: a named key cannot be loaded; the log of the daemon names the reason");
    refuse_clients(listening, error);
    shuf__end_guard_start(SHUF__END_MS, EX_CONFIG, NULL, NULL);
    return EX_CONFIG;
}

void shuf__fail_start_of_options(const char *mistake)
{
    struct shuf__error error;
    shuf__fail(&error, SHUF_INVALID, "%s", mistake);
    shuf__refuse_passed(&error);
}
