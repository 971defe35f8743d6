/* SPDX-License-Identifier: MIT
 *
 * Exports of the metrics by HTTP and to a file. If one of them fails, the daemon logs a warning and
 * continues.
 */
#ifndef SHUFD_EXPORT_H
#define SHUFD_EXPORT_H

#include "http.h"
#include "textfile.h"

struct shuf__exports {
    struct shuf__http *http;
    struct shuf__textfile file;
    bool started;
};

/* Starts the exports in the configuration. service->name replaces %i in the path of the file. */
void shuf__exports_start(struct shuf__exports *exports, struct shuf__service *service);

/* Call after a reload of the configuration. */
void shuf__exports_configure(struct shuf__exports *exports);

/* Ends the exports and closes their handles. Does nothing if they are not started. */
void shuf__exports_stop(struct shuf__exports *exports);

#endif
