/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD. shufd hangs when it ends ($SHUF_HANG is "end"), as a driver may, or
 * when it has written its file of metrics ("file"), as a disk may.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang_at(const char *place)
{
    const char *chosen = getenv("SHUF_HANG");
    while (chosen && !strcmp(chosen, place) && !strcmp(program_invocation_short_name, "shufd"))
        pause();
}

__attribute__((destructor)) static void end(void)
{
    hang_at("end");
}

__attribute__((visibility("default"))) int rename(const char *old, const char *new)
{
    int (*const next)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    hang_at("file");
    return next(old, new);
}
