/* SPDX-License-Identifier: MIT
 *
 * The metrics as text. metrics.def has the table.
 */
#ifndef SHUFD_METRICS_TEXT_H
#define SHUFD_METRICS_TEXT_H

#include "service.h"
#include "stats/exposition.h"

/* The reader of a text. Users see only their own rows. */
struct shuf__metrics_reader {
    enum { SHUF__METRICS_NO_USER, SHUF__METRICS_ONE_USER, SHUF__METRICS_ALL_USERS } sees;
    uint32_t uid;       /* the user, for SHUF__METRICS_ONE_USER */
    const char *daemon; /* a label of every sample, for a reader that collects several daemons */
};

/* The reader with that uid. */
struct shuf__metrics_reader shuf__metrics_reader_of(uint32_t uid);

/* Returns a text from malloc() and sets *size; NULL when out of memory. Call on the loop's thread.
 */
char *shuf__metrics_text(struct shuf__service *service, struct shuf__metrics_reader reader,
                         enum shuf__exposition_format format, size_t *size);

#endif
