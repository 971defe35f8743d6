/* SPDX-License-Identifier: MIT
 *
 * See shufctl.h.
 */
#include "support/shufctl.h"

#include "support/cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct harness shufctl_daemon;
char shufctl_directory[64];
const char *shufctl_backend;

int shufctl_set_up_alone(void **state)
{
    (void)state;
    strcpy(shufctl_directory, "/tmp/shuf-files-XXXXXX");
    return mkdtemp(shufctl_directory) ? setenv("SHUFD_SOCKET", "/nonexistent/s", 1) : -1;
}

int shufctl_tear_down_alone(void **state)
{
    (void)state;
    return rmdir(shufctl_directory);
}

int shufctl_set_up(void **state)
{
    if (shufctl_set_up_alone(state) || !harness_start(&shufctl_daemon, shufctl_backend, NULL))
        return -1;
    return setenv("SHUFD_SOCKET", shufctl_daemon.socket, 1);
}

int shufctl_tear_down(void **state)
{
    const bool empty = shufctl_tear_down_alone(state) == 0;
    return harness_stop(&shufctl_daemon) && empty ? 0 : -1;
}

enum { TEXT = 512, ARGUMENTS = 24 };

/* Splits `text` in place; argv has room for ARGUMENTS and a NULL. */
static void split(char *text, const char **argv)
{
    int count = 0;
    argv[count++] = SHUFCTL_PATH;
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        assert_true(count < ARGUMENTS);
        argv[count++] = word;
    }
    argv[count] = NULL;
}

__attribute__((format(printf, 3, 0))) static void
start_list(struct command *command, unsigned flags, const char *format, va_list args)
{
    char text[TEXT];
    const char *argv[ARGUMENTS + 1];
    assert_true(vsnprintf(text, sizeof text, format, args) < TEXT);
    split(text, argv);
    command_start(command, flags, argv);
}

void shufctl_start(struct command *command, unsigned flags, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    start_list(command, flags, format, args);
    va_end(args);
}

int shufctl_run(struct command *command, unsigned flags, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    start_list(command, flags, format, args);
    va_end(args);
    command_finish(command);
    return command->status;
}

char *shufctl_succeed(size_t *size, const char *format, ...)
{
    struct command c;
    va_list args;
    va_start(args, format);
    start_list(&c, 0, format, args);
    va_end(args);
    command_finish(&c);
    if (c.status != 0)
        fprintf(stderr, "shufctl %s ...: %d\n%s", format, c.status, c.err.bytes);
    assert_int_equal(c.status, 0);
    if (size)
        *size = c.out.size;
    free(c.err.bytes);
    return c.out.bytes;
}

static bool fails_as_expected(const struct shufctl_mistake *m)
{
    struct command c;
    shufctl_run(&c, 0, "%s", m->arguments);
    const bool right = c.status == m->status && strstr(c.err.bytes, m->words) && c.out.size == 0 &&
                       c.err.size > 0 && c.err.bytes[c.err.size - 1] == '\n';
    if (!right)
        fprintf(stderr, "shufctl %s: %d, expected %d with \"%s\"\n%s%s", m->arguments, c.status,
                m->status, m->words, c.err.bytes, c.out.bytes);
    command_free(&c);
    return right;
}

void shufctl_fail(int status, const char *words, const char *arguments)
{
    assert_true(fails_as_expected(&(struct shufctl_mistake){arguments, status, words}));
}

void shufctl_fail_each(const struct shufctl_mistake *mistakes, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += !fails_as_expected(&mistakes[i]);
    assert_int_equal(wrong, 0);
}

int shufctl_script(struct command *command, const char *format, ...)
{
    char script[TEXT];
    const char *const argv[] = {"sh", "-c", script, SHUFCTL_PATH, NULL};
    va_list args;
    va_start(args, format);
    assert_true(vsnprintf(script, sizeof script, format, args) < TEXT);
    va_end(args);
    return command_run(command, 0, argv);
}

char *shufctl_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    struct stat status;
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    char *bytes = malloc((size_t)status.st_size + 1);
    *size = fread(bytes, 1, (size_t)status.st_size, file);
    bytes[*size] = '\0';
    fclose(file);
    return bytes;
}

const char *shufctl_path(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", shufctl_directory, name);
    return path;
}

int shufctl_count_files(void)
{
    int count = -2; /* without . and .. */
    DIR *open_directory = opendir(shufctl_directory);
    while (readdir(open_directory))
        count++;
    closedir(open_directory);
    return count;
}

void shufctl_remove(const char *name)
{
    assert_int_equal(unlink(shufctl_path(name)), 0);
}

/* ---- The output of --json. A missing or wrong member fails the test ---- */

json_t *json_parse(char *text)
{
    json_error_t error;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        fprintf(stderr, "%s: %s\n", error.text, text);
    assert_non_null(object);
    free(text);
    return object;
}

const json_t *json_member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        fprintf(stderr, "no member '%s'\n", key);
    assert_non_null(value);
    return value;
}

uint64_t json_member_integer(const json_t *object, const char *key)
{
    const json_t *value = json_member(object, key);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

const char *json_member_text(const json_t *object, const char *key)
{
    const json_t *value = json_member(object, key);
    assert_true(json_is_string(value));
    return json_string_value(value);
}

uint64_t json_member_hex(const json_t *object, const char *key)
{
    const char *text = json_member_text(object, key);
    assert_int_equal(strlen(text), 18);
    return strtoull(text, NULL, 16);
}
