/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD that hangs when shufd ends, as a driver may.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void hang(void)
{
    while (!strcmp(program_invocation_short_name, "shufd"))
        pause();
}
