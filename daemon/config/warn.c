/* SPDX-License-Identifier: MIT
 *
 * Warnings about keys of the configuration: see config.h.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

void shuf__warn_of_config(const struct shuf__config *config, const struct shuf__log *log,
                          const char *format, ...)
{
    struct shuf__error warning = {.status = SHUF_INVALID};
    va_list args;
    va_start(args, format);
    vsnprintf(warning.text, sizeof warning.text, format, args);
    va_end(args);
    shuf__log(log, SHUF__LOG_WARNING, "%s", shuf__config_locate(config, &warning));
}
