/* SPDX-License-Identifier: MIT
 *
 * See key_files.h. The files are read without stdio, because its buffer would keep a copy of a key.
 */
#include "key_files.h"

#include "error.h"
#include "identity.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RAW = sizeof(shuf_key), HEX = 2 * RAW, FILE_MOST = 128 };

struct reading {
    const char *directory;
    int fd; /* of the open directory */
    struct shuf__key_set *set;
    struct shuf__error *error;
};

/* ---- One file ---- */

static shuf_status fail_file(const struct reading *r, const char *name, const char *what)
{
    return shuf__fail(r->error, SHUF_IO, "key file %.100s/%.64s: %s", r->directory, name, what);
}

static shuf_status refuse_file(const struct reading *r, const char *name, const char *expected)
{
    return shuf__fail(r->error, SHUF_INVALID, "key file %.100s/%.64s: expected %s", r->directory,
                      name, expected);
}

/* Reads a file. A secret file must not have permissions for others. Reads one byte more than
 * FILE_MOST, so a caller can refuse a longer file. */
static shuf_status read_contents(const struct reading *r, int fd, const char *name, bool is_secret,
                                 char contents[FILE_MOST + 1], size_t *length)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return fail_file(r, name, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse_file(r, name, "a regular file");
    if (is_secret && (status.st_mode & 07) != 0)
        return refuse_file(r, name, "no permissions for other users; chmod o= it");
    const ssize_t got = read(fd, contents, FILE_MOST + 1);
    if (got < 0)
        return fail_file(r, name, strerror(errno));
    *length = (size_t)got;
    return SHUF_OK;
}

static shuf_status read_file(const struct reading *r, const char *name, bool is_secret,
                             char contents[FILE_MOST + 1], size_t *length)
{
    const int fd = openat(r->fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return shuf__fail(
            r->error, SHUF_IO,
            "key file %.100s/%.64s: %s; expected a file that uid %u may read, as with "
            "chown %u; a daemon of another user needs --keys= (no keys)",
            r->directory, name, strerror(errno), (unsigned)geteuid(), (unsigned)geteuid());
    const shuf_status status = read_contents(r, fd, name, is_secret, contents, length);
    close(fd);
    return status;
}

static size_t without_space(const char *contents, size_t length)
{
    while (length > 0 && isspace((unsigned char)contents[length - 1]))
        length--;
    return length;
}

/* ---- Bits ---- */

static uint64_t digit(char c)
{
    return (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

static bool is_hex(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

/* Bytes 0 to 7 are the first word of the key, and 8 to 15 the second, lowest byte first. */
static void parse_bits(const char *contents, bool hex, shuf_key *key)
{
    key->word[0] = key->word[1] = 0;
    for (int i = 0; i < RAW; i++) {
        const uint64_t byte = hex ? digit(contents[2 * i]) << 4 | digit(contents[2 * i + 1])
                                  : (unsigned char)contents[i];
        key->word[i / 8] |= byte << 8 * (i % 8);
    }
}

/* Refuses 16 bytes that are all hex digits: they are probably half of a key in hex. */
static shuf_status take_bits(const struct reading *r, const char *name, const char *contents,
                             size_t length, shuf_key *key)
{
    const size_t text = without_space(contents, length);
    const bool hex = text == HEX && is_hex(contents, HEX);
    if (!hex && (length != RAW || is_hex(contents, RAW)))
        return refuse_file(r, name, "32 hex digits, or 16 bytes");
    parse_bits(contents, hex, key);
    if (key->word[1] == 0)
        return refuse_file(
            r, name,
            "last 8 bytes that are not all zero; with zeros the key has the values of a seed");
    return SHUF_OK;
}

static shuf_status read_bits(const struct reading *r, const char *name, shuf_key *key)
{
    char contents[FILE_MOST + 1];
    size_t length;
    shuf_status status = read_file(r, name, true, contents, &length);
    if (status == SHUF_OK)
        status = take_bits(r, name, contents, length, key);
    explicit_bzero(contents, sizeof contents);
    return status;
}

/* ---- Groups ---- */

/* Shows the text only if its file is shorter than a key. A longer file may be a key with a wrong
 * name, and a key must not reach the log. */
static shuf_status refuse_group(const struct reading *r, const char *file, const char *name,
                                size_t length)
{
    const char *shown = length >= RAW ? "" : *name ? name : "''";
    return shuf__fail(r->error, SHUF_INVALID,
                      "key file %.100s/%.64s: %s%sexpected the name or number of a group of this "
                      "machine",
                      r->directory, file, shown, *shown ? ": " : "");
}

static shuf_status find_group(const struct reading *r, const char *file, const char *name,
                              size_t length, gid_t *group)
{
    const int cause = shuf__find_group(name, group);
    if (cause == 0 && shuf__gid_is_overflow(*group))
        return shuf__fail(r->error, SHUF_INVALID,
                          "key file %.100s/%.64s: group %ld: expected another one; it stands for "
                          "all groups that a user namespace does not map",
                          r->directory, file, (long)*group);
    if (cause == ENOENT)
        return refuse_group(r, file, name, length);
    if (cause)
        return shuf__fail(r->error, SHUF_IO, "key file %.100s/%.64s: the groups cannot be read: %s",
                          r->directory, file, strerror(cause));
    return SHUF_OK;
}

static shuf_status read_group(const struct reading *r, struct shuf__key_facts *key)
{
    char file[SHUF__KEY_NAME + sizeof ".group"], contents[FILE_MOST + 1];
    size_t length;
    snprintf(file, sizeof file, "%s.group", key->name);
    if (faccessat(r->fd, file, F_OK, 0) != 0)
        return errno == ENOENT ? SHUF_OK : fail_file(r, file, strerror(errno));
    if (read_file(r, file, false, contents, &length))
        return r->error->status;
    contents[length < FILE_MOST ? without_space(contents, length) : 0] = '\0';
    key->has_group = true;
    return find_group(r, file, contents, length, &key->group);
}

/* ---- The directory ---- */

static shuf_status read_key(const struct reading *r, const char *name)
{
    struct shuf__key_set *set = r->set;
    struct shuf__key_facts *key = &set->facts[set->count];
    if (!shuf__key_name_is_valid(name))
        return refuse_file(
            r, name,
            "a name of 1 to 31 letters, digits, '.', '_' and '-', the first a letter "
            "or digit");
    if (set->count == SHUF__KEYS_MAX)
        return refuse_file(r, name, "at most 256 keys");
    memcpy(key->name, name, strlen(name) + 1);
    if (read_bits(r, name, &set->bits[set->count]) || read_group(r, key))
        return r->error->status;
    set->count++;
    return SHUF_OK;
}

static shuf_status fail_directory(struct shuf__error *error, const char *directory)
{
    return shuf__fail(error, SHUF_IO,
                      "keys %.128s: %s; expected a directory that uid %u may read%s", directory,
                      strerror(errno), (unsigned)geteuid(), shuf__advice_of_sandbox(directory));
}

static shuf_status read_all(const struct reading *r, DIR *directory)
{
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(directory)) != NULL) {
        const char *name = entry->d_name;
        if (name[0] != '.' && !shuf__key_name_is_group(name) && read_key(r, name))
            return r->error->status;
    }
    return errno == 0 ? SHUF_OK : fail_directory(r->error, r->directory);
}

shuf_status shuf__key_files_read(const char *directory, struct shuf__key_set *set,
                                 struct shuf__error *error)
{
    DIR *files = opendir(directory);
    if (!files)
        return fail_directory(error, directory);
    const struct reading r = {directory, dirfd(files), set, error};
    const shuf_status status = read_all(&r, files);
    closedir(files);
    return status;
}
