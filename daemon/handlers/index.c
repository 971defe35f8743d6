/* SPDX-License-Identifier: MIT
 *
 * Index: look-ups of single values or positions of a permutation. With a random-access algorithm,
 * the loop looks up a few of them at once, because waking another thread would take longer. A
 * request for many is a job, so that the loop does not wait. The other algorithms always need a job
 * and a rank index.
 */
#include "algorithm.h"
#include "cache/cache.h"
#include "handlers.h"
#include "result_message.h"
#include "service.h"
#include "session_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The most look-ups that the loop's thread does itself. They take 30 us, or 120 us if the prime is
 * hard to find. So with several users they may take longer than shuf__ready_turn_ns(). In a
 * windowed order each look-up finds a prime. */
enum { ON_LOOP = 1024, ON_LOOP_WINDOWED = 1 };

struct look_up_job {
    struct shuf__session_job job;
    struct shuf__cache *cache;
    /* A reference while the job runs. NULL: the job needs no rank index. */
    struct shuf__cache_entry *rank_index;
    struct shuf__request request; /* a LOOK_UP */
    uint32_t uid;
    size_t count;
    uint64_t place[]; /* the positions or values of the request; the answers replace them */
};

static shuf_status look_up(const struct shuf__cache *cache, struct shuf__backend *backend,
                           struct shuf__computation *computation, uint64_t *place, size_t count,
                           struct shuf__error *error)
{
    if (shuf__keyring_reveal(cache->keyring, &computation->request, error))
        return error->status;
    const shuf_status status = backend->ops->look_up(backend, computation, place, count, error);
    shuf__keyring_conceal(&computation->request);
    return status;
}

/* ---- On a lane's thread ---- */

static struct look_up_job *look_up_job_of(struct shuf__engine_job *engine_job)
{
    return (struct look_up_job *)shuf__session_job_of(engine_job);
}

static struct shuf__computation look_up_computation(struct look_up_job *l)
{
    return (struct shuf__computation){
        .request = l->request,
        .cancelled = shuf__engine_job_is_cancelled,
        .cancel_context = &l->job.engine_job,
    };
}

static void run_look_up(struct shuf__engine_job *engine_job, struct shuf__backend *backend)
{
    struct look_up_job *l = look_up_job_of(engine_job);
    struct shuf__error *error = &l->job.error;
    struct shuf__computation computation = look_up_computation(l);
    if (l->rank_index &&
        !(computation.rank_index = shuf__rank_entry_open(l->rank_index, backend, error)))
        return;
    error->status = look_up(l->cache, backend, &computation, l->place, l->count, error);
}

/* ---- On the loop's thread ---- */

static enum shuf__begin begin_look_up(struct shuf__engine_job *engine_job)
{
    struct look_up_job *l = look_up_job_of(engine_job);
    const struct shuf__permutation *p = &l->request.look_up.permutation;
    if (shuf__rank_index_bytes(p->algorithm, p->n) == 0)
        return SHUF__BEGIN_DONE;
    l->rank_index =
        shuf__rank_entry_acquire(l->cache, engine_job->engine, l->uid, &l->request, &l->job.error);
    return l->rank_index ? SHUF__BEGIN_DONE : shuf__pool_fail_begin(&l->job.error);
}

static void release_look_up(struct shuf__session_job *job)
{
    shuf__rank_entry_release(((struct look_up_job *)job)->rank_index);
}

static void reply_places(struct shuf__session *session, enum shuf_algorithm algorithm,
                         uint64_t *place, size_t count)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__IndexReply body = SHUF__INDEX_REPLY__INIT;
    reply.body_case = SHUF__REPLY__BODY_INDEX;
    reply.index = &body;
    body.algorithm = (char *)(uintptr_t)shuf__algorithm_name(algorithm);
    body.n_value = count;
    body.value = place;
    shuf__session_reply(session, &reply, NULL, NULL);
}

static void reply_look_up(const struct shuf__session_job *job)
{
    const struct look_up_job *l = (const struct look_up_job *)job;
    reply_places(job->session, l->request.look_up.permutation.algorithm,
                 (uint64_t *)(uintptr_t)l->place, l->count);
}

static bool has_random_access(const struct shuf__look_up *request)
{
    return shuf_algorithm_has_random_access(request->permutation.algorithm);
}

static struct look_up_job *make_look_up_job(const struct shuf__session *session,
                                            const struct shuf__request *request,
                                            const Shuf__Index *message)
{
    const size_t bytes = message->n_at * sizeof *message->at;
    struct look_up_job *l = malloc(sizeof *l + bytes);
    if (!l)
        return NULL;
    *l = (struct look_up_job){
        .job = {.engine_job = {.name = "shufd: look up",
                               .begin = begin_look_up,
                               .run = run_look_up},
                .release = release_look_up,
                .reply = reply_look_up},
        .cache = &shuf__service_of(session)->cache,
        .request = *request,
        .uid = session->client.uid,
        .count = message->n_at,
    };
    if (bytes > 0) /* with 0 bytes the message has no array to copy from */
        memcpy(l->place, message->at, bytes);
    return l;
}

static shuf_status submit_look_up(struct shuf__session *session,
                                  const struct shuf__request *request, const Shuf__Index *message,
                                  struct shuf__error *error)
{
    struct look_up_job *l = make_look_up_job(session, request, message);
    if (!l)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    shuf_status status =
        shuf__session_job_submit(&l->job, shuf__engines_host(session->all->engine), session, error);
    if (status)
        free(l);
    return status;
}

/* ---- The request ---- */

/* Whether the loop's thread looks the values up itself. */
static bool is_for_loop(const struct shuf__look_up *request, size_t count)
{
    const size_t most = request->permutation.window ? ON_LOOP_WINDOWED : ON_LOOP;
    return has_random_access(request) && count <= most;
}

static shuf_status parse_index(const Shuf__Index *message, struct shuf__request *request,
                               struct shuf__error *error)
{
    const struct shuf__permutation *p = &request->look_up.permutation;
    if (shuf__parse_index(message, request, error))
        return error->status;
    if (p->n <= SHUF__RANK_INDEX_N_MAX || shuf__rank_index_bytes(p->algorithm, p->n) == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "n %" PRIu64
                      ": expected at most 2^36 or a power of two for an index with %s, "
                      "which must count the values before a position",
                      p->n, shuf__algorithm_name(p->algorithm));
}

static shuf_status admit_key(const struct shuf__session *session, struct shuf__request *request,
                             struct shuf__error *error)
{
    return shuf__keyring_admit(&shuf__service_of(session)->keyring, session->client.uid,
                               session->fd, &request->key, error);
}

static void log_request(const struct shuf__session *session, const struct shuf__request *request,
                        size_t count)
{
    char text[SHUF__REQUEST_TEXT];
    if (session->all->log->level < SHUF__LOG_DEBUG)
        return;
    shuf__log_client(session->all->log, SHUF__LOG_DEBUG,
                     "client pid %ld, uid %ld: request %" PRIu64 ": %s, %zu %s",
                     (long)session->client.pid, (long)session->client.uid, session->id,
                     shuf__request_describe(request, true, text), count,
                     request->look_up.inverse ? "values" : "positions");
}

/* Overwrites the array of the message, which is in the session's arena, with the answers. */
static shuf_status look_up_at_once(struct shuf__session *session,
                                   const struct shuf__request *request, const Shuf__Index *message,
                                   struct shuf__error *error)
{
    struct shuf__backend *backend = shuf__engine_backend(shuf__engines_host(session->all->engine));
    struct shuf__computation computation = {.request = *request};
    if (look_up(&shuf__service_of(session)->cache, backend, &computation, message->at,
                message->n_at, error))
        return error->status;
    reply_places(session, request->look_up.permutation.algorithm, message->at, message->n_at);
    return SHUF_OK;
}

void shuf__handle_index(struct shuf__session *session, const Shuf__Request *message)
{
    struct shuf__error error;
    struct shuf__request request;
    const Shuf__Index *index = message->index;
    if (parse_index(index, &request, &error) || admit_key(session, &request, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    session->record.n = request.look_up.permutation.n;
    session->record.values = index->n_at;
    log_request(session, &request, index->n_at);
    if (is_for_loop(&request.look_up, index->n_at)
            ? look_up_at_once(session, &request, index, &error)
            : submit_look_up(session, &request, index, &error))
        shuf__session_fail(session, &error);
}
