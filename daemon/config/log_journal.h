/* SPDX-License-Identifier: MIT
 *
 * Lines with fields, in the native protocol of the journal. A call may wait for the journal.
 */
#ifndef SHUFD_LOG_JOURNAL_H
#define SHUFD_LOG_JOURNAL_H

#include "log_fields.h"

#include <stdbool.h>

/* Returns false if the journal does not accept the line. */
bool shuf__log_journal(int priority, const char *text, const struct shuf__log_request *request);

#endif
