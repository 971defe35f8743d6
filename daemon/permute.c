/* SPDX-License-Identifier: MIT
 *
 * Permute: what it asks for, and the names of the algorithms.
 */
#include "ask.h"
#include "handlers.h"
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const algorithm_names[] = {
#define X(name, text, what) [SHUF_ALGORITHM_##name] = text,
    SHUF_ALGORITHM_MAP(X)
#undef X
};

const char *shuf__permute_algorithm_name(uint32_t algorithm)
{
    return algorithm_names[algorithm];
}

static shuf_status unknown_algorithm(const char *name, struct shuf__error *error)
{
    char expected[128] = "";
    size_t used = 0;
    for (int i = 0; i < SHUF_ALGORITHM_COUNT && used < sizeof expected; i++) {
        const char *between = i == 0 ? "" : i + 1 == SHUF_ALGORITHM_COUNT ? " or " : ", ";
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s", between,
                                 algorithm_names[i]);
    }
    return shuf__fail(error, SHUF_INVALID, "algorithm \"%.64s\": expected %s", name, expected);
}

shuf_status shuf__permute_algorithm(const char *name, enum shuf_algorithm *algorithm,
                                    struct shuf__error *error)
{
    for (int i = 0; i < SHUF_ALGORITHM_COUNT; i++)
        if (*name == '\0' || strcmp(name, algorithm_names[i]) == 0) {
            *algorithm = (enum shuf_algorithm)i;
            return SHUF_OK;
        }
    return unknown_algorithm(name, error);
}

static void tell(const struct shuf__key *key, bool whole, char text[SHUF__ASKED_TEXT])
{
    const char *algorithm = algorithm_names[key->algorithm];
    if (whole)
        snprintf(text, SHUF__ASKED_TEXT,
                 "permute n %" PRIu64 ", %s, seed %" PRIu64 ", epoch %" PRIu64 ", %" PRIu64
                 " x %" PRIu64 " values",
                 key->n, algorithm, key->seed, key->epoch, key->rows, key->count);
    else
        snprintf(text, SHUF__ASKED_TEXT, "n %" PRIu64 ", %s", key->n, algorithm);
}

static shuf_status understand(const Shuf__Permute *request, struct shuf__asked *what,
                              struct shuf__error *error)
{
    struct shuf__plan plan;
    enum shuf_algorithm algorithm;
    if (shuf__permute_algorithm(request->algorithm, &algorithm, error) ||
        shuf__plan_make(request, &plan, error))
        return error->status;
    *what = (struct shuf__asked){
        .key =
            {
                .n = plan.n,
                .seed = plan.seed,
                .epoch = plan.epoch,
                .rows = plan.rows,
                .offset = plan.offset,
                .count = plan.count,
                .stride = plan.stride,
                .algorithm = (uint32_t)algorithm,
                .width = plan.width,
            },
        .dtype = plan.dtype,
        .bytes = plan.bytes,
        .tell = tell,
    };
    return SHUF_OK;
}

void shuf__handle_permute(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    struct shuf__asked what;
    const Shuf__Permute *permute = request->permute;
    const struct shuf__terms terms = {
        .accepted = {permute->accept, permute->n_accept},
        .fingerprint = permute->fingerprint,
        .prefetch = permute->prefetch,
        .event = permute->event,
    };
    if ((permute->give_back && shuf__lease_give_back(session, permute->give_back, &error)) ||
        understand(permute, &what, &error))
        shuf__session_fail(session, &error);
    else
        shuf__ask(session, &what, &terms);
}
