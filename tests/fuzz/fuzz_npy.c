/* SPDX-License-Identifier: MIT
 *
 * The header of an .npy file. The parser refuses it with one printable line, or returns sizes that
 * fit together.
 */
#include "error.h"
#include "fuzz.h"
#include "npy.h"

/* The line is printed as shuf__fail_with() does: it may quote the file. */
static void check_why(char why[SHUF__NPY_WHY])
{
    fuzz_require(why[0]);
    fuzz_require(memchr(why, '\0', SHUF__NPY_WHY) != NULL);
    shuf__make_printable(why);
    fuzz_require(fuzz_is_printable(why));
}

static void check_sizes(const struct shuf__npy *npy)
{
    uint64_t bytes;
    fuzz_require(!__builtin_mul_overflow(npy->records, npy->record, &bytes));
    fuzz_require(bytes == npy->bytes);
}

/* The file as shufctl reads it: the front, then the dict between the two offsets. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[SHUF__NPY_WHY] = "";
    struct shuf__npy npy;
    const size_t front = size < SHUF__NPY_FRONT ? size : SHUF__NPY_FRONT;
    if (!shuf__npy_begins(data, front, &npy, why))
        return 0;
    if (npy.header == 0) {
        fuzz_require(npy.dict == 0);
        check_why(why);
        return 0;
    }
    fuzz_require(npy.dict <= npy.header && npy.dict <= SHUF__NPY_FRONT);
    if (npy.header > size)
        npy.header = size;
    if (npy.header < npy.dict)
        return 0;
    const size_t length = npy.header - npy.dict;
    char *dict = malloc(length + 1); /* no larger, so a sanitizer finds reads beyond it */
    fuzz_require(dict != NULL);
    memcpy(dict, data + npy.dict, length);
    if (shuf__npy_read(dict, length, &npy, why))
        check_sizes(&npy);
    else
        check_why(why);
    free(dict);
    return 0;
}
