/* SPDX-License-Identifier: MIT
 *
 * What all fuzz targets share: the interface of libFuzzer, and a reader of the input's bytes.
 */
#ifndef SHUF__TEST_FUZZ_H
#define SHUF__TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

/* Mutates the bytes. libFuzzer has this function; in the ordinary tests run_corpus.c has it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* Ends the process unless the condition holds. libFuzzer then keeps the input. */
#define fuzz_require(condition)                                                 \
    do {                                                                        \
        if (!(condition)) {                                                     \
            dprintf(2, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                            \
        }                                                                       \
    } while (0)

/* The rest of the input. A read beyond its end gives 0. */
struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->at++;
}

static inline uint64_t fuzz_u64(struct fuzz_bytes *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)fuzz_u8(bytes) << (8 * i);
    return value;
}

/* A number of at most `most`, of any magnitude. */
static inline uint64_t fuzz_number(struct fuzz_bytes *bytes, uint64_t most)
{
    const unsigned bits = fuzz_u8(bytes) % 65;
    uint64_t value = 0;
    for (unsigned i = 0; i < bits; i += 8)
        value |= (uint64_t)fuzz_u8(bytes) << i;
    if (bits < 64)
        value &= (UINT64_C(1) << bits) - 1;
    return most == UINT64_MAX ? value : value % (most + 1);
}

/* Whether text has no character that would break a line or control a terminal. */
static inline int fuzz_is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return 0;
    return 1;
}

/* ---- wire_mutator.c: mutations of protobuf messages and of streams of frames ---- */

/* The lengths of frames and of nested messages stay right. So the parser accepts the bytes, and the
 * mutated values reach further code. Both functions change the `size` bytes, which may grow to
 * `room` bytes, and return the new size. */
size_t wire_mutate_message(uint8_t *message, size_t size, size_t room, unsigned seed);
size_t wire_mutate_frames(uint8_t *stream, size_t size, size_t room, unsigned seed);

#endif
