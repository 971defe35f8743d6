/* SPDX-License-Identifier: MIT
 *
 * A libshuf-cuda12.so.0 or libshuf-cuda13.so.0 of this version whose table has one function less,
 * as one of another build may have. A call of the missing one would crash.
 */
#include "cuda_library.h"

__attribute__((visibility("default"))) const struct shuf__cuda_library shuf__cuda = {
    .version = SHUF_VERSION_TEXT,
    .sizes = {sizeof(struct shuf__cuda_library) - sizeof(void (*)(void))},
};
