/* SPDX-License-Identifier: MIT
 *
 * Handles a Permute, Stream, Shuffle, Exchange or Allocate, from its message to its reply.
 */
#ifndef SHUFD_RESULT_H
#define SHUFD_RESULT_H

#include "result_request.h"

/* Fills key.request, options, give_back and input from a message of one kind, and checks all
 * values. A function that fails must have set give_back. */
typedef shuf_status shuf__parse_function(struct shuf__result_request *r,
                                         const Shuf__Request *message, struct shuf__error *error);

/* Replies at once, or when the result is computed. */
void shuf__serve_result(struct shuf__session *session, const Shuf__Request *message,
                        shuf__parse_function *parse);

#endif
