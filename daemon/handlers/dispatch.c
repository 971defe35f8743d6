/* SPDX-License-Identifier: MIT
 *
 * See dispatch.h.
 */
#include "dispatch.h"

#include "handlers.h"
#include "request_kinds.h"

#define WORD(NAME, name) " " #name

typedef void handler(struct shuf__session *session, const Shuf__Request *request);

static handler *find_handler(const Shuf__Request *request)
{
    static handler *const handlers[] = {
#define HANDLER(NAME, name) [SHUF__REQUEST__BODY_##NAME] = shuf__handle_##name,
        SHUF__OTHER_KINDS(HANDLER)
#undef HANDLER
            [SHUF__REQUEST__BODY_RESULT] = shuf__handle_result,
    };
    const size_t body = (size_t)request->body_case;
    return body < sizeof handlers / sizeof handlers[0] ? handlers[body] : NULL;
}

static void refuse_request(struct shuf__session *session, const char *text)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    struct shuf__error error;
    shuf__fail(&error, SHUF_PROTOCOL, "%s", text);
    shuf__session_refuse(session, &reply, &error);
}

void shuf__dispatch(struct shuf__session *session, const Shuf__Request *request)
{
    handler *handle = find_handler(request);
    const bool hello = request->body_case == SHUF__REQUEST__BODY_HELLO;
    if (!handle)
        refuse_request(session,
                       "request: unknown kind, expected one of result" SHUF__OTHER_KINDS(WORD));
    else if (!session->greeted && !hello)
        refuse_request(session, "first request: expected hello");
    else if (session->greeted && hello)
        refuse_request(session, "hello: expected once");
    else
        handle(session, request);
}
