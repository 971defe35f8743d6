/* SPDX-License-Identifier: MIT
 *
 * See start_command.h.
 */
#include "start_command.h"

#include "socket.h"
#include "unit_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool directory_is_there(const char *path)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    struct stat status;
    const char *slash = strrchr(path, '/');
    if (!slash)
        return true; /* the working directory */
    snprintf(directory, sizeof directory, "%.*s", (int)(slash - path + 1), path);
    if (stat(directory, &status) == 0)
        return S_ISDIR(status.st_mode);
    /* shufd makes this one */
    return strcmp(path, SHUF__SYSTEM_SOCKET) == 0 && geteuid() == 0;
}

/* True if a daemon can serve on this path. It replaces a socket that no daemon serves, but no other
 * file. */
static bool can_be_served(const char *path)
{
    struct stat status;
    if (lstat(path, &status) == 0)
        return S_ISSOCK(status.st_mode);
    return directory_is_there(path);
}

static bool is_plain(const char *word)
{
    return word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                             "%+,-./:=@_")] == '\0';
}

/* Writes the word, with shell quotes if it needs them. */
static void quote_word(const char *word, char *out)
{
    if (is_plain(word)) {
        strcpy(out, word);
        return;
    }
    *out++ = '\'';
    for (; *word; word++)
        if (*word == '\'')
            out = stpcpy(out, "'\\''");
        else
            *out++ = *word;
    strcpy(out, "'");
}

bool shuf__is_of_units(const char *path)
{
    static const char directory[] = "/run/shufd/";
    return strncmp(path, directory, strlen(directory)) == 0 && shuf__units_are_installed();
}

bool shuf__must_choose_daemon(const char *path)
{
    struct sockaddr_un found[2];
    return access(path, F_OK) != 0 && shuf__socket_list("GPU-", found, 2) > 0;
}

static void write_units_command(char command[SHUF__START_COMMAND])
{
    snprintf(command, SHUF__START_COMMAND, "%s%s",
             shuf__units_have_user() ? "" : SHUF__MAKE_USER "; ",
             shuf__units_are_enabled()
                 ? "systemctl reset-failed 'shufd*'; systemctl restart shufd.target, as root; if "
                   "it fails again, journalctl --unit 'shufd*' says why"
                 : "systemctl enable --now shufd.target, as root");
}

bool shuf__start_command(const char *path, const char *given, char command[SHUF__START_COMMAND])
{
    struct sockaddr_un address;
    struct shuf__error error;
    const char *variable = getenv("SHUFD_SOCKET");
    if (!given && shuf__must_choose_daemon(path))
        return false;
    if (shuf__is_of_units(path)) {
        write_units_command(command);
        return true;
    }
    if (given || (variable && *variable)) {
        quote_word(path, stpcpy(command, "shufd --socket "));
        return can_be_served(path);
    }
    /* shufd and shufctl find the default by the same rule. Without $XDG_RUNTIME_DIR shufd has none.
     */
    if (shuf__socket_address(NULL, SHUF__SOCKET_SERVE, &address, &error)) {
        strcpy(command, "export SHUFD_SOCKET=~/shufd.sock; shufd &");
        return true;
    }
    strcpy(command, "shufd");
    return can_be_served(address.sun_path);
}
