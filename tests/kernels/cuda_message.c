/* SPDX-License-Identifier: MIT
 *
 * Prints the message with which shuf_cuda_fill() fails in this process.
 */
#include <shuf.h>
#include <stdio.h>

int main(void)
{
    _Alignas(16) uint32_t out[8];
    const shuf_request request = {.permutation = {.n = 8}};
    const shuf_status status = shuf_cuda_fill(&request, out, sizeof out, NULL, 0, NULL);
    printf("%s: %s\n", shuf_status_name(status), shuf_message(NULL));
    return 0;
}
