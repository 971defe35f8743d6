/* SPDX-License-Identifier: MIT
 *
 * Configuration files. The parser refuses a file with one line. Else the printed configuration is
 * read again, and must be the same.
 */
#include "config/config.h"
#include "error.h"
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

static int file; /* in memory */
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    file = memfd_create("shufd.conf", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file < 0;
}

static void write_file(const void *bytes, size_t size)
{
    fuzz_require(ftruncate(file, 0) == 0);
    fuzz_require(pwrite(file, bytes, size, 0) == (ssize_t)size);
}

static void write_printed(const struct shuf__config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fuzz_require(out != NULL);
    shuf__config_print(config, out);
    fclose(out);
    write_file(text, size);
    free(text);
}

static void check_round_trip(const struct shuf__config *config)
{
    static struct shuf__config again;
    struct shuf__config_change change;
    struct shuf__error error = {0};
    size_t next = 0;
    write_printed(config);
    shuf__config_init(&again);
    if (shuf__config_read(&again, path, &error)) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    if (shuf__config_diff(config, &again, &next, &change)) {
        fprintf(stderr, "%s: '%s' was printed, '%s' was read\n", change.key, change.from,
                change.to);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct shuf__config config;
    struct shuf__error error = {0};
    write_file(data, size);
    shuf__config_init(&config);
    if (shuf__config_read(&config, path, &error) == SHUF_OK) {
        check_round_trip(&config);
        return 0;
    }
    fuzz_require(error.status == SHUF_INVALID && error.text[0]);
    shuf__config_locate(&config, &error);
    shuf__make_printable(error.text); /* as the log does */
    fuzz_require(fuzz_is_printable(error.text));
    return 0;
}
