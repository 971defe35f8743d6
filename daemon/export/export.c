/* SPDX-License-Identifier: MIT
 *
 * See export.h.
 */
#include "export.h"

#include "handlers/service_name.h"

void shuf__exports_start(struct shuf__exports *exports, struct shuf__service *service)
{
    char place[sizeof service->config->metrics + SHUF__SERVICE_NAME];
    struct shuf__error error;
    exports->started = true;
    if (shuf__http_start(&exports->http, service, &error))
        shuf__log(service->log, SHUF__LOG_WARNING, "%s; serving without HTTP", error.text);
    else if (exports->http && shuf__service_name_expand(service->config->metrics, service->name,
                                                        place, sizeof place))
        shuf__log(service->log, SHUF__LOG_INFO, "metrics on %s", place);
    shuf__textfile_init(&exports->file, service);
    shuf__textfile_start(&exports->file);
}

void shuf__exports_stop(struct shuf__exports *exports)
{
    if (!exports->started)
        return;
    shuf__http_stop(exports->http);
    shuf__textfile_stop(&exports->file);
    uv_close((uv_handle_t *)&exports->file.timer, NULL);
}
