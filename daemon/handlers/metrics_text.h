/* SPDX-License-Identifier: MIT
 *
 * The metrics as text. metrics.def has the table.
 */
#ifndef SHUFD_METRICS_TEXT_H
#define SHUFD_METRICS_TEXT_H

#include "service.h"
#include "stats/exposition.h"

/* Who reads: users see their own rows only. */
struct shuf__metrics_reader {
    enum { SHUF__METRICS_NO_USER, SHUF__METRICS_ONE_USER, SHUF__METRICS_ALL_USERS } sees;
    uint32_t uid;       /* of SHUF__METRICS_ONE_USER */
    const char *daemon; /* a label of every sample, where the reader collects several daemons */
};

/* The reader with that uid. */
struct shuf__metrics_reader shuf__metrics_reader_of(uint32_t uid);

/* A text from malloc() with its length; NULL when out of memory. On the loop's thread. */
char *shuf__metrics_text(struct shuf__service *service, struct shuf__metrics_reader reader,
                         enum shuf__exposition_format format, size_t *size);

#endif
