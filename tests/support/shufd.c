/* SPDX-License-Identifier: MIT
 *
 * See shufd.h.
 */
#include "shufd.h"

#include "cmocka_all.h"
#include "support/harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void shufd_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

size_t shufd_read(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
    return length;
}

void shufd_await(const char *path, char *text, size_t size, const char *expected)
{
    for (int waited = 0; shufd_read(path, text, size), !strstr(text, expected); waited += 5) {
        if (waited >= HARNESS_WAIT_MS)
            fail_msg("no \"%s\" in %s:\n%s", expected, path, text);
        usleep(5000);
    }
}

void shufd_expect_code(int status, int code)
{
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

void shufd_expect_exit(const char *const *arguments, int code, const char *text)
{
    char output[16384]; /* holds --help and --print-config */
    int status = harness_run(arguments, output, sizeof output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !strstr(output, text))
        fail_msg("expected exit %d with \"%s\", got wait status 0x%x with \"%s\"", code, text,
                 (unsigned)status, output);
}
