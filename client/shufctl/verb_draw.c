/* SPDX-License-Identifier: MIT
 *
 * `shufctl gauss` and `shufctl uniform`: compute random numbers of a stream.
 */
#include "draw_options.h"
#include "run_request.h"
#include "verbs.h"

static int run_draw(int argc, char **argv, shuf_distribution distribution)
{
    shuf_numbers numbers = {.distribution = distribution};
    struct shuf__output_options options;
    shuf__draw_options(argc, argv, &numbers, &options);
    return shuf__run_request(&options);
}

int shuf__verb_gauss(int argc, char **argv)
{
    return run_draw(argc, argv, SHUF_GAUSS);
}

int shuf__verb_uniform(int argc, char **argv)
{
    return run_draw(argc, argv, SHUF_UNIFORM);
}
