/* SPDX-License-Identifier: MIT
 *
 * `shufctl gauss` and `shufctl uniform`: random numbers of a stream.
 */
#include "deliver.h"
#include "draw_options.h"
#include "verb.h"

static int draw(int argc, char **argv, shuf_distribution distribution)
{
    shuf_numbers what = {.distribution = distribution};
    struct shuf__order order;
    shuf__draw_options(argc, argv, &what, &order);
    return shuf__deliver(&order);
}

int shuf__verb_gauss(int argc, char **argv)
{
    return draw(argc, argv, SHUF_GAUSS);
}

int shuf__verb_uniform(int argc, char **argv)
{
    return draw(argc, argv, SHUF_UNIFORM);
}
