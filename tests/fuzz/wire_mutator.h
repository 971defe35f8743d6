/* SPDX-License-Identifier: MIT
 *
 * Mutations of protobuf messages and of streams of frames. The lengths of frames and of nested
 * messages stay right. So the parser accepts the bytes, and the mutated values reach further code.
 */
#ifndef SHUF__TEST_WIRE_MUTATOR_H
#define SHUF__TEST_WIRE_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* Both functions change the `size` bytes, which may grow to `room` bytes, and return the new size.
 */
size_t wire_mutate_message(uint8_t *message, size_t size, size_t room, unsigned seed);
size_t wire_mutate_frames(uint8_t *stream, size_t size, size_t room, unsigned seed);

#endif
