/* SPDX-License-Identifier: MIT
 *
 * See picture.h.
 */
#include "picture.h"

#include "fail.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* Runs gnuplot with files for input and output. A pipe would end this process if gnuplot did not
 * exist or ended early. With -d it reads no file of settings. */
static int run_gnuplot(FILE *script, FILE *picture, const char *path)
{
    static char name[] = "gnuplot", plain[] = "-d";
    char *argv[] = {name, plain, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(picture), STDOUT_FILENO);
    const int error = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return shuf__fail_with(EX_CANTCREAT, "%.256s: gnuplot: %s; expected it in PATH", path,
                               strerror(error));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? EX_OK
                       : shuf__fail_with(EX_CANTCREAT, "%.256s: gnuplot could not draw it", path);
}

/* Replaces the old file by the new one, but only if the picture is complete. */
static int keep(FILE *picture, const char *path)
{
    char bytes[4096];
    size_t got;
    FILE *to = fopen(path, "w");
    bool kept = to != NULL;
    rewind(picture);
    while (kept && (got = fread(bytes, 1, sizeof bytes, picture)) > 0)
        kept = fwrite(bytes, 1, got, to) == got;
    if (to && fclose(to) != 0)
        kept = false;
    return kept ? EX_OK : shuf__fail_with(EX_CANTCREAT, "%.256s: %s", path, strerror(errno));
}

/* Whether a new file can be created in its directory. */
static bool may_create(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory =
        slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    const bool may = directory && access(directory, W_OK | X_OK) == 0;
    free(directory);
    return may;
}

int shuf__picture_check(const char *path)
{
    struct stat status;
    bool may;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        may = false;
    } else {
        may = access(path, W_OK) == 0 || (errno == ENOENT && *path && may_create(path));
    }
    return may ? EX_OK
               : shuf__fail_with(EX_CANTCREAT, "--plot %.256s: %s", *path ? path : "''",
                                 strerror(errno));
}

int shuf__picture(const char *path, void (*write_script)(FILE *to, const void *context),
                  const void *context)
{
    FILE *script = tmpfile(), *picture = tmpfile();
    bool written = script && picture;
    if (written) {
        write_script(script, context);
        written = fflush(script) == 0 && fseek(script, 0, SEEK_SET) == 0;
    }
    int code = written ? run_gnuplot(script, picture, path)
                       : shuf__fail_with(EX_CANTCREAT, "a temporary file: %s", strerror(errno));
    if (code == EX_OK)
        code = keep(picture, path);
    if (script)
        fclose(script);
    if (picture)
        fclose(picture);
    return code;
}
