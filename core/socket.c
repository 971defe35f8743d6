/* SPDX-License-Identifier: MIT
 *
 * See socket.h.
 */
#include "socket.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* systemd sets a list with a colon after each directory but the last one. Returns its first
 * directory, or NULL if there is none. */
static const char *service_directory(char first[PATH_MAX])
{
    const char *list = variable("RUNTIME_DIRECTORY");
    snprintf(first, PATH_MAX, "%.*s", list ? (int)strcspn(list, ":") : 0, list ? list : "");
    return *first ? first : NULL;
}

const char *shuf__socket_directory(void)
{
    const char *directory = variable("SHUFD_RUNTIME_DIR");
    return directory ? directory : SHUF__SOCKET_DIRECTORY;
}

static shuf_status set_path(struct sockaddr_un *address, struct shuf__error *error,
                            const char *directory, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path, sizeof address->sun_path, "%s%s", directory, path);
    if (length < 0 || (size_t)length >= sizeof address->sun_path)
        return shuf__fail(error, SHUF_INVALID,
                          "socket %.100s%.100s: %d bytes, expected at most %zu", directory, path,
                          length, sizeof address->sun_path - 1);
    char printable[sizeof address->sun_path];
    shuf__make_printable(strcpy(printable, address->sun_path));
    if (strcmp(printable, address->sun_path) != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "socket %s: expected a path without control characters", printable);
    return SHUF_OK;
}

/* The current directory may change before the path is used again. */
static shuf_status set_named(struct sockaddr_un *address, struct shuf__error *error,
                             const char *path)
{
    char directory[sizeof address->sun_path];
    const bool is_relative = *path != '/' && getcwd(directory, sizeof directory - 1) &&
                             strlen(directory) + 1 + strlen(path) < sizeof address->sun_path;
    return set_path(address, error, is_relative ? strcat(directory, "/") : "", path);
}

shuf_status shuf__socket_address(const char *path, enum shuf__socket_side side,
                                 struct sockaddr_un *address, struct shuf__error *error)
{
    if (!path || !*path)
        path = variable("SHUFD_SOCKET");
    if (path)
        return set_named(address, error, path);
    char first[PATH_MAX];
    const char *service = side == SHUF__SOCKET_SERVE ? service_directory(first) : NULL;
    if (service)
        return set_path(address, error, service, "/shufd.sock");
    const char *own = variable("XDG_RUNTIME_DIR");
    if (geteuid() == 0 || (!own && side == SHUF__SOCKET_CONNECT))
        return set_path(address, error, shuf__socket_directory(), "/shufd.sock");
    if (!own)
        return shuf__fail(error, SHUF_INVALID,
                          "socket: not given, and XDG_RUNTIME_DIR is not set, as after su or in a "
                          "container; expected --socket PATH or $SHUFD_SOCKET, and the same for "
                          "the clients");
    shuf_status status = set_path(address, error, own, "/shufd.sock");
    if (status == SHUF_OK && side == SHUF__SOCKET_CONNECT && access(address->sun_path, F_OK) != 0)
        return set_path(address, error, shuf__socket_directory(), "/shufd.sock");
    return status;
}

void shuf__socket_explain(struct shuf__error *error)
{
    const size_t length = strlen(error->text);
    if (variable("SHUFD_SOCKET"))
        snprintf(error->text + length, sizeof error->text - length,
                 "; $SHUFD_SOCKET sets this path");
}

static bool is_default_in(const char *directory, const char *path)
{
    const size_t length = directory ? strlen(directory) : 0;
    return length > 0 && strncmp(path, directory, length) == 0 &&
           strcmp(path + length, "/shufd.sock") == 0;
}

const char *shuf__socket_origin(const char *path, enum shuf__socket_side side)
{
    char first[PATH_MAX];
    const char *named = variable("SHUFD_SOCKET");
    if (named)
        return strcmp(path, named) == 0 ? "$SHUFD_SOCKET" : NULL;
    if (side == SHUF__SOCKET_SERVE && is_default_in(service_directory(first), path))
        return "$RUNTIME_DIRECTORY";
    if (geteuid() != 0 && is_default_in(variable("XDG_RUNTIME_DIR"), path))
        return "$XDG_RUNTIME_DIR";
    if (!is_default_in(shuf__socket_directory(), path))
        return NULL;
    if (variable("SHUFD_RUNTIME_DIR"))
        return "$SHUFD_RUNTIME_DIR";
    return geteuid() == 0 ? "the default of root" : "the default of the machine";
}

/* ---- All sockets ---- */

static bool has_ending(const char *name, const char *ending)
{
    const size_t length = strlen(name), end = strlen(ending);
    return length > end && strcmp(name + length - end, ending) == 0;
}

static bool is_socket(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

static int by_path(const void *a, const void *b)
{
    const struct sockaddr_un *left = a, *right = b;
    return strcmp(left->sun_path, right->sun_path);
}

size_t shuf__socket_list(const char *prefix, struct sockaddr_un *addresses, size_t most)
{
    char name[300];
    size_t count = 0;
    struct shuf__error ignored;
    const struct dirent *entry;
    const char *path = shuf__socket_directory();
    DIR *directory = opendir(path);
    while (directory && count < most && (entry = readdir(directory)) != NULL) {
        snprintf(name, sizeof name, "/%s", entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && has_ending(name, ".sock") &&
            set_path(&addresses[count], &ignored, path, name) == SHUF_OK)
            count += is_socket(addresses[count].sun_path);
    }
    if (directory)
        closedir(directory);
    qsort(addresses, count, sizeof *addresses, by_path);
    return count;
}
