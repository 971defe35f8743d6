/* SPDX-License-Identifier: MIT
 *
 * `shufctl permute`: computes a permutation, or a part of one.
 */
#include "permute_options.h"
#include "run_request.h"
#include "verbs.h"

int shuf__verb_permute(int argc, char **argv)
{
    shuf_permutation permutation;
    struct shuf__output_options options;
    shuf__permute_options(argc, argv, &permutation, &options);
    return shuf__run_request(&options);
}
