/* SPDX-License-Identifier: MIT
 *
 * See wanted_sockets.h.
 */
#include "wanted_sockets.h"

#include "socket.h"
#include "unit_files.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* shufd@NAME.socket makes NAME.sock, and shufd.socket makes shufd.sock. */
static bool find_path(const char *unit, struct sockaddr_un *address)
{
    char name[64];
    const char *at = strchr(unit, '@');
    if (sscanf(at ? at + 1 : unit, "%63[^.]", name) != 1 || strncmp(unit, "shufd", 5) != 0)
        return false;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(address->sun_path, sizeof address->sun_path, "%s/%s.sock",
                    shuf__socket_directory(), name) < (int)sizeof address->sun_path;
}

static bool has_path(const struct sockaddr_un *addresses, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(addresses[i].sun_path, path) == 0)
            return true;
    return false;
}

static size_t add_of_folder(size_t folder, struct sockaddr_un *addresses, size_t count, size_t most)
{
    char path[SHUF__UNIT_PATH];
    const struct dirent *entry;
    shuf__unit_path(path, folder, "shufd.target.wants");
    DIR *directory = opendir(path);
    while (directory && count < most && (entry = readdir(directory)) != NULL)
        if (strstr(entry->d_name, ".socket") && !shuf__unit_is_masked(entry->d_name) &&
            find_path(entry->d_name, &addresses[count]) &&
            !has_path(addresses, count, addresses[count].sun_path))
            count++;
    if (directory)
        closedir(directory);
    return count;
}

/* Sockets outside /run/shufd have no units, except in tests. */
static bool have_units(void)
{
    return getenv("SHUFD_UNITS") || strcmp(shuf__socket_directory(), SHUF__SOCKET_DIRECTORY) == 0;
}

/* Without an enabled target, an operator may run single sockets. */
size_t shuf__wanted_sockets_add(struct sockaddr_un *addresses, size_t count, size_t most)
{
    if (!have_units() || !shuf__units_are_enabled())
        return count;
    for (size_t i = 0; i < SHUF__UNIT_FOLDERS; i++)
        count = add_of_folder(i, addresses, count, most);
    return count;
}
