/* SPDX-License-Identifier: MIT
 *
 * See search_path.h.
 */
#include "search_path.h"

#include <stdlib.h>
#include <string.h>

/* Without PATH, libc and the shell search the folders of the system. */
void shuf__search_path_clean(void)
{
    char *path = getenv("PATH"), *end = path;
    for (char *folder = path, *next; folder; folder = next) {
        next = strchr(folder, ':');
        if (next)
            *next++ = '\0';
        if (*folder != '/')
            continue;
        const size_t length = strlen(folder);
        if (end > path)
            *end++ = ':';
        memmove(end, folder, length + 1);
        end += length;
    }
    if (end == path)
        unsetenv("PATH");
}
