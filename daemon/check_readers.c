/* SPDX-License-Identifier: MIT
 *
 * See check_readers.h. The name of the service's user is unknown here: a drop-in may change it.
 */
#include "check_readers.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ = 04, SEARCH = 01 };

/* Whether no other user and no group but root's has these permissions. Sets the mode. */
static bool is_of_root(const char *path, mode_t wanted, unsigned *mode)
{
    struct stat status;
    if (stat(path, &status) != 0 || status.st_uid != 0)
        return false;
    const mode_t group = wanted << 3;
    *mode = status.st_mode & 07777;
    return (*mode & wanted) != wanted && ((*mode & group) != group || status.st_gid == 0);
}

/* Warns of the first directory above the path. */
static void check_directories(const char *what, const char *path, const struct shuf__log *log)
{
    char directory[PATH_MAX];
    unsigned mode;
    for (const char *slash = path; (slash = strchr(slash + 1, '/')) != NULL;) {
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
        if (!is_of_root(directory, SEARCH, &mode))
            continue;
        shuf__log(log, SHUF__LOG_WARNING,
                  "%s %.200s: only root can search its directory %.200s, mode %04o; the service's "
                  "user must search it, too: chmod o+x %.200s",
                  what, path, directory, mode, directory);
        return;
    }
}

static void check_file(const char *path, const struct shuf__log *log)
{
    unsigned mode;
    check_directories("configuration", path, log);
    if (is_of_root(path, READ, &mode))
        shuf__log(
            log, SHUF__LOG_WARNING,
            "configuration %s: only root can read it, mode %04o; the service's user must read "
            "it, too: chmod 0644",
            path, mode);
}

static void check_key_file(const char *path, const struct shuf__log *log)
{
    unsigned mode;
    if (is_of_root(path, READ, &mode))
        shuf__log(log, SHUF__LOG_WARNING,
                  "key file %.200s: only root can read it, mode %04o; the service's user must read "
                  "it, too: chown it to this user, or use LoadCredential= of the unit",
                  path, mode);
}

static void check_key_files(const char *keys, const struct shuf__log *log)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    DIR *files = opendir(keys);
    while (files && (entry = readdir(files)) != NULL) {
        snprintf(path, sizeof path, "%.200s/%s", keys, entry->d_name);
        if (entry->d_name[0] != '.')
            check_key_file(path, log);
    }
    if (files)
        closedir(files);
}

static void check_keys(const struct shuf__config *config, const struct shuf__log *log)
{
    unsigned mode;
    check_directories("keys", config->keys, log);
    if (is_of_root(config->keys, READ | SEARCH, &mode))
        shuf__warn_of_config(
            config, log,
            "keys %s: only root can read this directory, mode %04o; the service's user must read "
            "it, too: chown it to this user, or chmod 0755",
            config->keys, mode);
    check_key_files(config->keys, log);
}

void shuf__check_readers(const struct shuf__config *config, const struct shuf__log *log)
{
    if (geteuid() != 0)
        return;
    if (*config->file)
        check_file(config->file, log);
    if (*config->keys)
        check_keys(config, log);
}
