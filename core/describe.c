/* SPDX-License-Identifier: MIT
 *
 * Requests in words: see request.h.
 */
#include "algorithm.h"
#include "request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* At the end of the text. */
#define ADD(text, ...) \
    snprintf((text) + strlen(text), SHUF__REQUEST_TEXT - strlen(text), __VA_ARGS__)

static void describe_permutation(const struct shuf__permutation *p, bool all, char *text)
{
    const char *algorithm = shuf__algorithm_name(p->algorithm);
    if (all)
        snprintf(text, SHUF__REQUEST_TEXT,
                 "permute n %" PRIu64 ", %s, seed %" PRIu64 ", epoch %" PRIu64 ", %" PRIu64
                 " x %" PRIu64 " values",
                 p->n, algorithm, p->seed, p->epoch, p->rows, p->count);
    else
        snprintf(text, SHUF__REQUEST_TEXT, "n %" PRIu64 ", %s", p->n, algorithm);
}

static void describe_stream(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__stream *s = &request->stream;
    snprintf(text, SHUF__REQUEST_TEXT, "%s, %s, stream %" PRIu64,
             shuf__distribution_name(s->distribution), shuf__dtype_name((int)request->dtype),
             s->stream);
    if (all)
        ADD(text, ", seed %" PRIu64 ", %" PRIu64 " values from %" PRIu64, s->seed, s->count,
            s->offset);
    if (all && shuf__distribution_is_normal(s->distribution))
        ADD(text, ", mean %.17g, std %.17g", s->mean, s->std);
}

static void add_key(const struct shuf__permutation *p, char *text)
{
    ADD(text, ", %s, seed %" PRIu64 ", epoch %" PRIu64, shuf__algorithm_name(p->algorithm), p->seed,
        p->epoch);
}

static void describe_shuffle(const struct shuf__shuffle *s, bool all, char *text)
{
    snprintf(text, SHUF__REQUEST_TEXT, "%s n %" PRIu64 ", records of %" PRIu64 " byte%s",
             s->inverse ? "inverse shuffle" : "shuffle", s->permutation.n, s->record,
             shuf__plural(s->record));
    if (all)
        add_key(&s->permutation, text);
}

const char *shuf__request_describe(const struct shuf__request *request, bool all,
                                   char text[SHUF__REQUEST_TEXT])
{
    switch (request->kind) {
    case SHUF__PERMUTATION:
        describe_permutation(&request->permutation, all, text);
        break;
    case SHUF__STREAM:
        describe_stream(request, all, text);
        break;
    case SHUF__SHUFFLE:
        describe_shuffle(&request->shuffle, all, text);
        break;
    case SHUF__LOOK_UP:
        snprintf(text, SHUF__REQUEST_TEXT, "index n %" PRIu64, request->look_up.permutation.n);
        if (all)
            add_key(&request->look_up.permutation, text);
        break;
    case SHUF__BUFFER:
        snprintf(text, SHUF__REQUEST_TEXT, "buffer of %" PRIu64, request->buffer.bytes);
        break;
    }
    return text;
}
