/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target as an ordinary test, without libFuzzer. The command line names files and
 * folders. The target runs on each of their files, and on some mutations of each file.
 */
#include "fuzz.h"
#include "support/random.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM = 64 * 1024, MUTATIONS = 8 };

#pragma weak LLVMFuzzerInitialize
#pragma weak LLVMFuzzerCustomMutator

static uint8_t input[ROOM];
static unsigned files;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room)
{
    for (uint64_t changes = 1 + random_below(4); changes > 0; changes--) {
        const uint64_t kind = random_below(3);
        if (kind == 0 && size > 0) {
            data[random_below(size)] ^= (uint8_t)(1u << random_below(8));
        } else if (kind == 1 && size < room) {
            const size_t at = random_below(size + 1);
            memmove(data + at + 1, data + at, size - at);
            data[at] = (uint8_t)random_u64();
            size++;
        } else if (size > 1) {
            const size_t at = random_below(size);
            memmove(data + at, data + at + 1, size - at - 1);
            size--;
        }
    }
    return size;
}

static size_t mutate(size_t size)
{
    if (LLVMFuzzerCustomMutator)
        return LLVMFuzzerCustomMutator(input, size, ROOM, (unsigned)random_u64());
    return LLVMFuzzerMutate(input, size, ROOM);
}

/* The target gets a copy of exact size, so a sanitizer finds a read beyond its end. */
static void run(size_t size)
{
    uint8_t *copy = malloc(size + (size == 0));
    fuzz_require(copy != NULL);
    memcpy(copy, input, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_file(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        perror(path);
        exit(1);
    }
    size_t size = fread(input, 1, ROOM, file);
    fclose(file);
    files++;
    run(size);
    for (int i = 0; i < MUTATIONS; i++) {
        size = mutate(size);
        run(size);
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void run_path(const char *path)
{
    struct stat status;
    struct dirent **entries;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        run_file(path);
        return;
    }
    const int count = scandir(path, &entries, is_visible, by_name);
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        run_file(file);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    random_start(argv[0]);
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    printf("%u files, each with %d mutations\n", files, MUTATIONS);
    return files > 0 ? 0 : 1;
}
