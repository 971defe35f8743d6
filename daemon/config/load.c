/* SPDX-License-Identifier: MIT
 *
 * Finds the configuration file, and loads the configuration: see config.h. The path of the file
 * depends on the path of the running program. So a program finds its file even if the prefix of the
 * installation is not the prefix of the build.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define FILE_NAME "/shufd/shufd.conf"
#define SYSTEM_FILE "/etc" FILE_NAME

/* Cuts the last name off a path. */
static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = '\0';
}

void shuf__config_path_of(const char *program, const char *sysconfdir, char path[SHUF__CONFIG_PATH])
{
    char prefix[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%s", program);
    cut_name(prefix); /* PREFIX/bin */
    cut_name(prefix);
    const bool is_etc = strcmp(sysconfdir, "etc") == 0;
    if (*sysconfdir == '/')
        snprintf(path, SHUF__CONFIG_PATH, "%s" FILE_NAME, sysconfdir);
    else if (is_etc && (!*prefix || strcmp(prefix, "/usr") == 0)) /* rule of GNU and the FHS */
        snprintf(path, SHUF__CONFIG_PATH, SYSTEM_FILE);
    else if (is_etc && strncmp(prefix, "/opt/", 5) == 0)
        snprintf(path, SHUF__CONFIG_PATH, "/etc%.2000s" FILE_NAME, prefix);
    else
        snprintf(path, SHUF__CONFIG_PATH, "%.2000s/%.2000s" FILE_NAME, prefix, sysconfdir);
}

/* A path that may not be searched counts as a file: opening it then fails with the reason. Else the
 * daemon would start without the configuration, and nobody would know. */
static bool may_exist(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* The file of this installation, which may be that of the system. */
static void find_own(char path[SHUF__CONFIG_PATH])
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    snprintf(path, SHUF__CONFIG_PATH, SYSTEM_FILE);
    if (length > 0) {
        program[length] = '\0';
        shuf__config_path_of(program, SHUF_SYSCONFDIR, path);
    }
}

/* Finds the file of this installation, else the file of the system. False: neither exists. */
static bool find_default(char path[SHUF__CONFIG_PATH])
{
    find_own(path);
    if (may_exist(path))
        return true;
    snprintf(path, SHUF__CONFIG_PATH, SYSTEM_FILE);
    return may_exist(path);
}

shuf_status shuf__config_set_options(struct shuf__config *config, struct shuf__error *error)
{
    for (int key = 0; key < SHUF__CONFIG_KEYS; key++)
        if (config->source.value[key] &&
            shuf__config_set(config, shuf__config_help((enum shuf__config_key)key).name,
                             config->source.value[key], error))
            return error->status;
    return SHUF_OK;
}

/* Makes the path absolute if that fits: clients, which see it in messages, have other working
 * directories than the daemon. */
static void name_file(char path[SHUF__CONFIG_PATH], const char *given)
{
    char directory[PATH_MAX];
    int length = SHUF__CONFIG_PATH;
    if (*given != '/' && getcwd(directory, sizeof directory))
        length = snprintf(path, SHUF__CONFIG_PATH, "%s/%s", directory, given);
    if (length >= SHUF__CONFIG_PATH)
        snprintf(path, SHUF__CONFIG_PATH, "%s", given);
}

const char *shuf__config_origin(const struct shuf__config *config, char text[SHUF__CONFIG_ORIGIN])
{
    char own[SHUF__CONFIG_PATH];
    find_own(own);
    if (*config->file || config->source.no_file)
        snprintf(text, SHUF__CONFIG_ORIGIN, "configuration: %s",
                 *config->file ? config->file : "no file (--no-config)");
    else if (strcmp(own, SYSTEM_FILE) == 0)
        snprintf(text, SHUF__CONFIG_ORIGIN, "configuration: no file, because %s does not exist",
                 own);
    else
        snprintf(text, SHUF__CONFIG_ORIGIN,
                 "configuration: no file, because neither %s nor %s exists", own, SYSTEM_FILE);
    return text;
}

shuf_status shuf__config_load_file(struct shuf__config *config,
                                   const struct shuf__config_source *source,
                                   struct shuf__error *error)
{
    shuf__config_init(config);
    config->source = *source;
    if (source->file)
        name_file(config->file, source->file);
    else if (source->no_file || !find_default(config->file))
        config->file[0] = '\0';
    return source->file || config->file[0] ? shuf__config_read(config, config->file, error)
                                           : SHUF_OK;
}

int shuf__config_load(struct shuf__config *config, const struct shuf__config_source *source,
                      struct shuf__error *error)
{
    if (shuf__config_load_file(config, source, error))
        return EX_CONFIG;
    return shuf__config_set_options(config, error) ? EX_USAGE : EX_OK;
}
