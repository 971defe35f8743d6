/* SPDX-License-Identifier: MIT
 *
 * Release: gives leases back.
 */
#include "handlers.h"

void shuf__handle_release(struct shuf__session *session, const Shuf__Request *request)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__ReleaseReply body = SHUF__RELEASE_REPLY__INIT;
    struct shuf__error error;
    if (shuf__leases_release(&session->leases, request->release, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    reply.body_case = SHUF__REPLY__BODY_RELEASE;
    reply.release = &body;
    shuf__session_reply(session, &reply, NULL, NULL);
}
