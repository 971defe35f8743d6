/* SPDX-License-Identifier: MIT
 *
 * See connect.h.
 */
#include "connect.h"

#include "clock.h"
#include "exit.h"
#include "identity.h"
#include "progress.h"
#include "socket.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* ---- The files of units ---- */

/* An administrator and the generator write to the first three. An installation writes to one of the
 * others: to the first of them with the prefix /usr/local. */
static const char *const folders[SHUF__UNIT_FOLDERS] = {
    "/etc/systemd/system",           "/run/systemd/system",     "/run/systemd/generator",
    "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"};

static const char *root(void)
{
    const char *folder = getenv("SHUFD_UNITS");
    return folder ? folder : "";
}

void shuf__unit_path(char path[SHUF__UNIT_PATH], size_t folder, const char *name)
{
    snprintf(path, SHUF__UNIT_PATH, "%s%s/%s", root(), folders[folder], name);
}

/* True if a folder has the file. A link counts even if its target is missing. */
static bool unit_exists(const char *name)
{
    char path[SHUF__UNIT_PATH];
    struct stat status;
    for (size_t i = 0; i < SHUF__UNIT_FOLDERS; i++) {
        shuf__unit_path(path, i, name);
        if (lstat(path, &status) == 0)
            return true;
    }
    return false;
}

bool shuf__unit_is_masked(const char *name)
{
    for (size_t i = 0; i < SHUF__UNIT_FOLDERS; i++) {
        char path[SHUF__UNIT_PATH], target[16] = "";
        shuf__unit_path(path, i, name);
        if (readlink(path, target, sizeof target - 1) > 0 && strcmp(target, "/dev/null") == 0)
            return true;
    }
    return false;
}

/* True if systemd runs on this machine and has the units of shufd. */
static bool units_are_installed(void)
{
    char path[SHUF__UNIT_PATH];
    snprintf(path, sizeof path, "%s/run/systemd/system", root()); /* as sd_booted(3) does */
    return access(path, F_OK) == 0 && unit_exists("shufd.target");
}

/* True if the table of users or groups has a line for shufd. */
static bool table_has_shufd(const char *table)
{
    char path[SHUF__UNIT_PATH], line[512];
    bool found = false;
    snprintf(path, sizeof path, "%s/etc/%s", root(), table);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, "shufd:", 6) == 0;
    if (file)
        fclose(file);
    return found;
}

bool shuf__units_have_user(void)
{
    if (*root()) /* the functions below read only the tables of / */
        return table_has_shufd("passwd") && table_has_shufd("group");
    return getpwnam("shufd") && getgrnam("shufd");
}

bool shuf__units_are_enabled(void)
{
    return unit_exists("multi-user.target.wants/shufd.target");
}

/* ---- The command that starts a daemon ---- */

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
    return strncmp(path, directory, strlen(directory)) == 0 && units_are_installed();
}

bool shuf__unit_of_socket(const char *path, char unit[SHUF__UNIT_NAME])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-");
    if (!shuf__is_of_units(path) || length == 0 || strcmp(name + length, ".sock") != 0)
        return false;
    if (strcmp(name, "shufd.sock") == 0)
        strcpy(unit, "shufd");
    else
        snprintf(unit, SHUF__UNIT_NAME, "shufd@%.*s", (int)length, name);
    return true;
}

bool shuf__must_choose_daemon(const char *path)
{
    struct sockaddr_un found[2];
    return access(path, F_OK) != 0 && shuf__socket_list("GPU-", found, 2) > 0;
}

/* If the units have failed, `shufctl doctor` has the reason and the next step. */
static const char *units_command(void)
{
    if (!shuf__units_are_enabled())
        return "systemctl enable --now shufd.target, as root";
    if (shuf__unit_is_masked("shufd.socket") || shuf__unit_is_masked("shufd.service"))
        return "systemctl unmask shufd.socket shufd.service; systemctl restart shufd.target, as "
               "root";
    return "systemctl restart shufd.target, as root; if it fails, shufctl doctor says why";
}

/* own: the command already has one for a daemon of this user. */
static void append_units_command(bool own, char command[SHUF__START_COMMAND])
{
    const size_t length = own ? strlen(command) : 0;
    snprintf(command + length, SHUF__START_COMMAND - length, "%s%s%s",
             own ? ", or for all users " : "", shuf__units_have_user() ? "" : SHUF__MAKE_USER "; ",
             units_command());
}

/* Returns false if no daemon can serve on the path. */
static bool write_own_command(const char *path, bool is_named, char command[SHUF__START_COMMAND])
{
    struct sockaddr_un address;
    struct shuf__error error;
    if (is_named) {
        quote_word(path, stpcpy(command, "shufd --socket "));
        strcat(command, " &");
        return can_be_served(path);
    }
    /* shufd and shufctl find the default by the same rule. Without $XDG_RUNTIME_DIR shufd has none.
     */
    if (shuf__socket_address(NULL, SHUF__SOCKET_SERVE, &address, &error)) {
        strcpy(command, "export SHUFD_SOCKET=~/shufd.sock; shufd &");
        return true;
    }
    strcpy(command, "shufd &");
    return can_be_served(address.sun_path);
}

bool shuf__shares_namespace(const shuf_daemon *daemon)
{
    return daemon->pid_namespace != 0 && daemon->pid_namespace == shuf__pid_namespace();
}

void shuf__reload_command(const char *path, const shuf_daemon *daemon,
                          char command[SHUF__START_COMMAND])
{
    char unit[SHUF__UNIT_NAME];
    if (shuf__unit_of_socket(path, unit))
        snprintf(command, SHUF__START_COMMAND, "systemctl reload %s.service, as root", unit);
    else if (!shuf__shares_namespace(daemon))
        strcpy(command, "send SIGHUP to shufd in its container");
    else
        snprintf(command, SHUF__START_COMMAND, "kill -HUP %" PRIu64 "%s", daemon->pid,
                 kill((pid_t)daemon->pid, 0) == 0 ? "" : ", as root or as the user who runs it");
}

bool shuf__start_command(const char *path, const char *given, char command[SHUF__START_COMMAND])
{
    const char *variable = getenv("SHUFD_SOCKET");
    const bool is_named = given || (variable && *variable);
    if (!given && shuf__must_choose_daemon(path))
        return false;
    const bool is_of_units = shuf__is_of_units(path);
    const bool may_own = !is_of_units || (!is_named && geteuid() != 0);
    const bool own = may_own && write_own_command(path, is_named, command);
    if (is_of_units)
        append_units_command(own, command);
    return own || is_of_units;
}

/* ---- Connecting ---- */

enum { RECONNECT_MS = 10000, GREETING_MIN_MS = 1000, GREETING_MAX_MS = 10000 };

int shuf__fault_length(const char *message)
{
    const char *hint = strstr(message, SHUF__START_HINT);
    return hint ? (int)(hint - message) : (int)strlen(message);
}

int shuf__fail_call(const shuf *handle, shuf_status status,
                    const struct shuf__daemon_options *options)
{
    char command[SHUF__START_COMMAND];
    const char *message = shuf_message(handle);
    const bool has_command = status == SHUF_NO_DAEMON &&
                             shuf__start_command(shuf_socket(handle), options->socket, command);
    return shuf__fail_with(shuf__exit_code(status), "%.*s%s%s", shuf__fault_length(message),
                           message, has_command ? "; start one: " : "", has_command ? command : "");
}

/* The timeout of the next attempt: the rest of --wait, but at least the time that a healthy daemon
 * needs. So the wait for a daemon that hangs is as long as the wait for a missing one.
 */
static unsigned greeting_ms(uint64_t now, uint64_t give_up)
{
    const uint64_t left = give_up > now ? (give_up - now) / 1000000 : 0;
    return left < GREETING_MIN_MS   ? GREETING_MIN_MS
           : left > GREETING_MAX_MS ? GREETING_MAX_MS
                                    : (unsigned)left;
}

static shuf_status connect_once(shuf **handle, const struct shuf__daemon_options *options,
                                uint64_t give_up)
{
    if (options->wait_ns == 0)
        return shuf_connect(handle, options->socket);
    const shuf_status status =
        shuf_connect_within(handle, options->socket, greeting_ms(shuf__clock_ns(), give_up));
    if (status == SHUF_OK)
        shuf_set_timeout(*handle, 0); /* requests may take long */
    return status;
}

shuf_status shuf__connect_silently(shuf **handle, const struct shuf__daemon_options *options)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    uint64_t give_up = shuf__clock_ns() + options->wait_ns;
    shuf_status status = connect_once(handle, options, give_up);
    while ((status == SHUF_NO_DAEMON || status == SHUF_TIMEOUT) && shuf__clock_ns() < give_up) {
        shuf_close(*handle);
        nanosleep(&pause, NULL);
        status = connect_once(handle, options, give_up);
    }
    return status;
}

shuf_status shuf__connect(shuf **handle, const struct shuf__daemon_options *options)
{
    shuf__progress_set_quiet(options->quiet);
    shuf__progress_phase("waiting for the daemon", 0);
    const shuf_status status = shuf__connect_silently(handle, options);
    shuf__progress_end();
    return status;
}

int shuf__connect_or_fail(shuf **handle, const struct shuf__daemon_options *options)
{
    shuf_status status = shuf__connect(handle, options);
    if (status != SHUF_OK)
        return shuf__fail_call(*handle, status, options);
    shuf__progress_observe(*handle, RECONNECT_MS);
    return EX_OK;
}
