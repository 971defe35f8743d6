/* SPDX-License-Identifier: MIT
 *
 * Sends Buffer, Write and Shuffle messages without libshuf, in the same way as wire.h sends
 * Permute messages. Every failure fails the running cmocka test.
 */
#ifndef TESTS_WIRE_SHUFFLE_H
#define TESTS_WIRE_SHUFFLE_H

#include "support/wire.h"

/* Requests a buffer of this size; the second function also checks the reply. */
void wire_send_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport);
Shuf__ResultReply wire_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport);

void wire_send_write(struct wire *w, uint64_t lease, uint64_t offset, const void *data,
                     size_t size);

/* Makes a request for a shuffle of n records of that buffer, with seed 7 and epoch 0. */
struct shuf__result_message wire_shuffle_of(uint64_t lease, uint64_t n, uint64_t record,
                                            Shuf__Transport transport);
/* Sends the request and returns the reply, with its descriptor. Both are valid until the next
 * reply. */
const Shuf__Reply *wire_shuffle(struct wire *w, struct shuf__result_message *shuffle);

/* Maps the buffer whose descriptor came with the last reply, and closes the descriptor.
 * wire_unmap() removes the mapping. */
void *wire_map_writable(struct wire *w, uint64_t bytes);

bool wire_is_zero(const uint8_t *bytes, uint64_t count);

#endif
