/* SPDX-License-Identifier: MIT
 *
 * `shufctl permute`: a permutation, or a part of one.
 */
#include "deliver.h"
#include "permute_options.h"
#include "verb.h"

int shuf__verb_permute(int argc, char **argv)
{
    shuf_permutation what;
    struct shuf__order order;
    shuf__permute_options(argc, argv, &what, &order);
    return shuf__deliver(&order);
}
