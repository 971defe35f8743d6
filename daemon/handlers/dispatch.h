/* SPDX-License-Identifier: MIT
 *
 * Finds the handler of a request.
 */
#ifndef SHUFD_DISPATCH_H
#define SHUFD_DISPATCH_H

#include "net/session.h"

/* Handles the request. Refuses it if its kind is unknown, or if it comes before Hello. */
void shuf__dispatch(struct shuf__session *session, const Shuf__Request *request);

#endif
