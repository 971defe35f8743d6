/* SPDX-License-Identifier: MIT
 *
 * See wanted_sockets.h. It reads the folders of systemd, because `systemctl` takes longer and needs
 * a running systemd.
 */
#include "wanted_sockets.h"

#include "socket.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UNIT_PATH = 512, ROOTS = 3 };

static const char *const machine[ROOTS] = {"/etc/systemd/system", "/run/systemd/system",
                                           "/run/systemd/generator"};

/* SHUFD_UNITS replaces the folders for tests. Sockets outside /run/shufd have no units. */
static size_t list_roots(const char *roots[ROOTS])
{
    roots[0] = getenv("SHUFD_UNITS");
    if (roots[0])
        return 1;
    memcpy(roots, machine, sizeof machine);
    return strcmp(shuf__socket_directory(), SHUF__SOCKET_DIRECTORY) == 0 ? ROOTS : 0;
}

/* An operator may run single sockets without the target. */
static bool is_target_enabled(const char *const roots[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char path[UNIT_PATH], target[2];
        snprintf(path, sizeof path, "%s/multi-user.target.wants/shufd.target", roots[i]);
        if (readlink(path, target, sizeof target) > 0)
            return true;
    }
    return false;
}

static bool is_masked(const char *unit)
{
    const char *roots[ROOTS];
    const size_t count = list_roots(roots);
    for (size_t i = 0; i < count; i++) {
        char path[UNIT_PATH], target[16] = "";
        snprintf(path, sizeof path, "%s/%s", roots[i], unit);
        if (readlink(path, target, sizeof target - 1) > 0 && strcmp(target, "/dev/null") == 0)
            return true;
    }
    return false;
}

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

static size_t add_of_root(const char *root, struct sockaddr_un *addresses, size_t count,
                          size_t most)
{
    char path[UNIT_PATH];
    const struct dirent *entry;
    snprintf(path, sizeof path, "%s/shufd.target.wants", root);
    DIR *directory = opendir(path);
    while (directory && count < most && (entry = readdir(directory)) != NULL)
        if (strstr(entry->d_name, ".socket") && !is_masked(entry->d_name) &&
            find_path(entry->d_name, &addresses[count]) &&
            !has_path(addresses, count, addresses[count].sun_path))
            count++;
    if (directory)
        closedir(directory);
    return count;
}

size_t shuf__wanted_sockets_add(struct sockaddr_un *addresses, size_t count, size_t most)
{
    const char *roots[ROOTS];
    const size_t number = list_roots(roots);
    if (!is_target_enabled(roots, number))
        return count;
    for (size_t i = 0; i < number; i++)
        count = add_of_root(roots[i], addresses, count, most);
    return count;
}
