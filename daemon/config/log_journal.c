/* SPDX-License-Identifier: MIT
 *
 * See log_journal.h.
 */
#include "log_journal.h"

#ifdef SHUF_HAVE_SYSTEMD

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define SOCKET "/run/systemd/journal/socket"

enum { FIELDS = 9, FIELD_TEXT = 560 };

struct fields {
    struct iovec part[FIELDS];
    char text[FIELDS][FIELD_TEXT];
    int count;
};

static void add(struct fields *fields, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct fields *fields, const char *format, ...)
{
    va_list args;
    char *text = fields->text[fields->count];
    va_start(args, format);
    vsnprintf(text, FIELD_TEXT, format, args);
    va_end(args);
    fields->part[fields->count++] = (struct iovec){text, strlen(text)};
}

bool shuf__log_journal(int priority, const char *text, const struct shuf__log_request *request)
{
    struct fields fields = {.count = 0};
    if (access(SOCKET, W_OK) != 0) /* sd_journal_sendv() would lose the line without an error */
        return false;
    add(&fields, "MESSAGE=%s", text);
    add(&fields, "PRIORITY=%d", priority);
    add(&fields, "SYSLOG_IDENTIFIER=shufd");
    add(&fields, "REQUEST_ID=%s", request->id);
    add(&fields, "PEER_PID=%ld", (long)request->pid);
    add(&fields, "PEER_UID=%lu", (unsigned long)request->uid);
    add(&fields, "KIND=%s", request->kind);
    if (request->n)
        add(&fields, "N=%" PRIu64, request->n);
    if (request->duration_us)
        add(&fields, "DURATION_US=%" PRIu64, request->duration_us);
    return sd_journal_sendv(fields.part, fields.count) >= 0;
}

#else

bool shuf__log_journal(int priority, const char *text, const struct shuf__log_request *request)
{
    (void)priority;
    (void)text;
    (void)request;
    return false;
}

#endif
