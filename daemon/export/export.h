/* SPDX-License-Identifier: MIT
 *
 * The ways of the metrics out of the daemon, beside its own socket: HTTP and a file. A way that
 * fails costs a warning, not the daemon.
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

/* Starts those that the configuration names. service->name replaces %i in their paths. */
void shuf__exports_start(struct shuf__exports *exports, struct shuf__service *service);

/* Ends them and closes their handles. Does nothing unless they are started. */
void shuf__exports_stop(struct shuf__exports *exports);

#endif
