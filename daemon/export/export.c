/* SPDX-License-Identifier: MIT
 *
 * See export.h.
 */
#include "export.h"

#include <stdio.h>

void shuf__exports_start(struct shuf__exports *exports, struct shuf__service *service)
{
    struct shuf__publication *http = &service->publications[SHUF__PUBLICATION_HTTP];
    struct shuf__error error;
    exports->started = true;
    if (shuf__http_start(&exports->http, service, &error)) {
        shuf__log(service->log, SHUF__LOG_WARNING, "%s; serving without HTTP", error.text);
        snprintf(http->fault, sizeof http->fault, "%.*s", (int)sizeof http->fault - 1, error.text);
    } else if (exports->http) {
        snprintf(http->place, sizeof http->place, "%s", service->config->metrics);
        shuf__log(service->log, SHUF__LOG_INFO, "metrics on %s", http->place);
    }
    shuf__textfile_init(&exports->file, service);
    shuf__textfile_start(&exports->file);
}

void shuf__exports_configure(struct shuf__exports *exports)
{
    if (exports->started)
        shuf__textfile_configure(&exports->file);
}

void shuf__exports_stop(struct shuf__exports *exports)
{
    if (!exports->started)
        return;
    shuf__http_stop(exports->http);
    shuf__textfile_stop(&exports->file);
    uv_close((uv_handle_t *)&exports->file.timer, NULL);
}
