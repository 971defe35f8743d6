/* SPDX-License-Identifier: MIT
 *
 * See unit_files.h.
 */
#include "unit_files.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool shuf__unit_exists(const char *name)
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

bool shuf__units_are_installed(void)
{
    char path[SHUF__UNIT_PATH];
    snprintf(path, sizeof path, "%s/run/systemd/system", root()); /* as sd_booted(3) does */
    return access(path, F_OK) == 0 && shuf__unit_exists("shufd.target");
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
    return shuf__unit_exists("multi-user.target.wants/shufd.target");
}
