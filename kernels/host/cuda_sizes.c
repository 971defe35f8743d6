/* SPDX-License-Identifier: MIT
 *
 * The sizes of the structs that libshuf-cuda shares with its users (cuda_library.h). This file
 * sees all of them.
 */
#include "cuda_library.h"
#include "host/mixture.h"
#include "host/weights.h"
#include "rank_index.h"

const size_t shuf__cuda_sizes[] = {SHUF__CUDA_STRUCTS(SHUF__CUDA_SIZE_OF)};
