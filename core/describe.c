/* SPDX-License-Identifier: MIT
 *
 * Requests in words: see request.h.
 */
#include "algorithm.h"
#include "request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Appends to the text. */
#define ADD(text, ...) \
    snprintf((text) + strlen(text), SHUF__REQUEST_TEXT - strlen(text), __VA_ARGS__)

static void add_key(const struct shuf__request *request, uint64_t seed, char *text)
{
    if (request->key.name[0])
        ADD(text, ", key %s", request->key.name);
    else
        ADD(text, ", seed %" PRIu64, seed);
}

static void add_permutation(const struct shuf__request *request, char *text)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    ADD(text, ", %s", shuf__algorithm_name(p->algorithm));
    add_key(request, p->seed, text);
    ADD(text, ", epoch %" PRIu64, p->epoch);
}

static void describe_permutation(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__permutation *p = &request->permutation;
    snprintf(text, SHUF__REQUEST_TEXT, "%sn %" PRIu64, all ? "permute " : "", p->n);
    if (!all) {
        ADD(text, ", %s", shuf__algorithm_name(p->algorithm));
        return;
    }
    add_permutation(request, text);
    ADD(text, ", %" PRIu64 " x %" PRIu64 " value%s", p->rows, p->count, shuf__plural(p->count));
}

static void describe_stream(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__stream *s = &request->stream;
    snprintf(text, SHUF__REQUEST_TEXT, "%s, %s, stream %" PRIu64,
             shuf__distribution_name(s->distribution), shuf__dtype_name((int)request->dtype),
             s->stream);
    if (!all)
        return;
    add_key(request, s->seed, text);
    ADD(text, ", %" PRIu64 " value%s from %" PRIu64, s->count, shuf__plural(s->count), s->offset);
    if (shuf__distribution_is_normal(s->distribution))
        ADD(text, ", mean %.17g, std %.17g", s->mean, s->std);
}

static void describe_shuffle(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__shuffle *s = &request->shuffle;
    snprintf(text, SHUF__REQUEST_TEXT, "%s n %" PRIu64 ", records of %" PRIu64 " byte%s",
             s->inverse ? "inverse shuffle" : "shuffle", s->permutation.n, s->record,
             shuf__plural(s->record));
    if (all)
        add_permutation(request, text);
}

static void describe_plan(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__plan *plan = &request->plan;
    snprintf(text, SHUF__REQUEST_TEXT,
             "exchange n %" PRIu64 ", rank %" PRIu64 " of %" PRIu64 "%s%s", plan->permutation.n,
             plan->rank, plan->world, plan->inverse ? ", inverse" : "",
             plan->part ? ", one-sided" : "");
    if (!all)
        return;
    add_permutation(request, text);
    if (plan->part)
        ADD(text, ", parts of %" PRIu64, plan->part);
}

const char *shuf__request_describe(const struct shuf__request *request, bool all,
                                   char text[SHUF__REQUEST_TEXT])
{
    switch (request->kind) {
    case SHUF__PERMUTATION:
        describe_permutation(request, all, text);
        break;
    case SHUF__STREAM:
        describe_stream(request, all, text);
        break;
    case SHUF__SHUFFLE:
        describe_shuffle(request, all, text);
        break;
    case SHUF__LOOK_UP:
        snprintf(text, SHUF__REQUEST_TEXT, "index n %" PRIu64, request->look_up.permutation.n);
        if (all)
            add_permutation(request, text);
        break;
    case SHUF__EXCHANGE:
        describe_plan(request, all, text);
        break;
    case SHUF__BUFFER:
        snprintf(text, SHUF__REQUEST_TEXT, "buffer of %" PRIu64, request->buffer.bytes);
        break;
    }
    return text;
}
