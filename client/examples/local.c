/* SPDX-License-Identifier: MIT
 *
 * The order of an epoch, and noise, computed by this process: no daemon has to run.
 */
#include <err.h>
#include <shuf.h>
#include <stdio.h>

int main(void)
{
    static uint32_t order[1000000];
    static float noise[1000000];
    const unsigned alone = 1, all_processors = 0;
    shuf_request request = {.permutation = {.n = 1000000, .seed = 7, .epoch = 3}};
    if (shuf_host_fill(&request, alone, order, sizeof order) != SHUF_OK)
        errx(1, "%s", shuf_message(NULL));

    request = (shuf_request){.kind = SHUF_NUMBERS};
    request.numbers = (shuf_numbers){
        .distribution = SHUF_GAUSS, .seed = 7, .count = 1000000, .std = 0.1, .dtype = SHUF_F32};
    if (shuf_host_fill(&request, all_processors, noise, sizeof noise) != SHUF_OK)
        errx(1, "%s", shuf_message(NULL));
    printf("the first sample is %u, its noise %g\n", order[0], noise[0]);
}
