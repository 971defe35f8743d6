/* SPDX-License-Identifier: MIT
 *
 * Allocate, Write and Shuffle by hand, for the tests of each: what wire.h is to
 * Permute. Everything that goes wrong fails the running cmocka test.
 */
#ifndef TESTS_WIRE_SHUFFLE_H
#define TESTS_WIRE_SHUFFLE_H

#include "wire.h"

/* Requests a buffer of so many bytes; the second function also checks the reply. */
void wire_send_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport);
Shuf__ResultReply wire_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport);

void wire_send_write(struct wire *w, uint64_t lease, uint64_t offset, const void *data,
                     size_t size);

/* "n records of that buffer, from seed 7, epoch 0". */
Shuf__Shuffle wire_shuffle_of(uint64_t lease, uint64_t n, uint64_t record,
                              Shuf__Transport transport);
void wire_send_shuffle(struct wire *w, Shuf__Shuffle *shuffle);
/* Sends it; the reply, which has all of it. Valid until the next one. */
const Shuf__Reply *wire_shuffle(struct wire *w, Shuf__Shuffle *shuffle);

/* Maps the buffer whose descriptor came with the last reply, and closes that; for wire_unmap. */
void *wire_map_writable(struct wire *w, uint64_t bytes);

bool wire_all_zero(const uint8_t *bytes, uint64_t count);

#endif
