/* SPDX-License-Identifier: MIT
 *
 * See process_limits.h.
 */
#include "process_limits.h"

#include "host/kept_file.h"
#include "host/memory_limits.h"
#include "memory/inode_watch.h"
#include "net/peer_socket.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Open files ---- */

enum {
    RESERVED = 96,    /* for the device's driver, the log, refused connections, a descriptor to be
                         sent, kept files, and other files */
    HTTP = 40,        /* for the HTTP server and its clients */
    CLOSING = 64,     /* sockets that wait to be closed have one of 64 */
    BLOCKS = 4,       /* blocks have at least one of four descriptors */
    OF_CLIENT = 3,    /* a connection, its process and its user */
    SPARE = 16,       /* so that rounded parts are no smaller than those of connections */
    WATCHES_LEFT = 4, /* one of four watches of inotify */
    LEAST = 26 + SHUF__KEPT_FILES, /* 21 of a daemon at rest, and those of a client with a lease */
    LEAST_HTTP = 4,                /* more: 3 of the HTTP server at rest, and a client of it */
};

static uint64_t inherited; /* descriptors of the process that has started the daemon */

/* Without /proc none are counted. */
static uint64_t count_inherited(void)
{
    uint64_t count = 0;
    DIR *files = opendir("/proc/self/fd");
    for (const struct dirent *file = NULL; files && (file = readdir(files));)
        count += file->d_name[0] != '.' && strtol(file->d_name, NULL, 10) > STDERR_FILENO;
    if (files)
        closedir(files);
    return count > 0 ? count - 1 : 0; /* that of the directory */
}

static uint64_t open_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return 0;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* if it fails, the old limit stays */
    getrlimit(RLIMIT_NOFILE, &files);
    return (uint64_t)files.rlim_cur;
}

static bool has_http(const struct shuf__config *config)
{
    return strcmp(config->metrics, "off") != 0;
}

/* Raises the limit of open files, and counts the descriptors that the daemon has inherited. Fails
 * with SHUF_IO if the daemon cannot start with them. */
static shuf_status check_descriptors(const struct shuf__config *config, struct shuf__error *error)
{
    const uint64_t files = open_files();
    inherited = count_inherited();
    shuf__kept_files_begin();
    const uint64_t least = LEAST + inherited + (has_http(config) ? LEAST_HTTP : 0);
    if (files >= least)
        return SHUF_OK;
    return shuf__fail(error, SHUF_IO,
                      "open files: the limit is %" PRIu64 ", but shufd needs at least %" PRIu64
                      "; raise it with ulimit -n, or with LimitNOFILE= of the unit",
                      files, least);
}

/* Divides `files` descriptors. Blocks have at least a quarter. Connections, client
 * processes and users have at most three for each of `clients` connections, and 16 more. */
static struct shuf__descriptors divide_descriptors(uint64_t files, uint64_t clients)
{
    const uint64_t wanted = OF_CLIENT * clients + SPARE, most = files - files / BLOCKS,
                   fitting = wanted < most ? wanted : most,
                   of_clients = fitting > 4 ? fitting : 4; /* one connection */
    return (struct shuf__descriptors){
        .clients = clients < of_clients - 2 ? clients : of_clients - 3,
        .of_clients = of_clients,
        .blocks = files > of_clients ? files - of_clients : 1,
    };
}

static uint64_t room_for_closing(uint64_t files)
{
    const uint64_t room = files / CLOSING;
    return room < SHUF__CLOSING_LEAST  ? SHUF__CLOSING_LEAST
           : room > SHUF__CLOSING_MOST ? SHUF__CLOSING_MOST
                                       : room;
}

/* Freed memory that a process keeps needs a watch of inotify (memory/inode_watch.h). Other programs
 * of the user have the rest. */
static uint64_t blocks_with_watches(uint64_t blocks)
{
    const uint64_t watches = shuf__inode_watches_most(), ours = watches - watches / WATCHES_LEFT;
    return ours > 0 && ours < blocks ? ours : blocks;
}

/* Each block of host memory is a mapping of the daemon. Other mappings have a quarter. */
static uint64_t blocks_with_mappings(uint64_t blocks)
{
    uint64_t most = 0;
    if (shuf__read_number("/proc/sys/vm/max_map_count", "", &most))
        most -= most / BLOCKS;
    return most > 0 && most < blocks ? most : blocks;
}

struct shuf__descriptors shuf__descriptors_of(const struct shuf__config *config,
                                              const struct shuf__log *log)
{
    const uint64_t files = open_files(), closing = room_for_closing(files),
                   reserved = RESERVED + inherited + closing + (has_http(config) ? HTTP : 0);
    struct shuf__descriptors found =
        divide_descriptors(files > reserved ? files - reserved : 0, config->clients);
    found.closing = closing;
    found.blocks = blocks_with_mappings(blocks_with_watches(found.blocks));
    if (found.of_clients < 2 * config->clients)
        shuf__warn_of_config(config, log,
                             "clients %" PRIu64 ": only %" PRIu64 " fit the limit of open files, "
                             "%" PRIu64 ", or %" PRIu64 " if each is of another process",
                             config->clients, found.clients, files, found.of_clients / 2);
    return found;
}

/* ---- Other limits ---- */

enum { STACK = 1 << 20 }; /* several times the most that a thread has used */

/* The stacks of all threads have the size of this limit. */
static shuf_status check_stack(struct shuf__error *error)
{
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= STACK)
        return SHUF_OK;
    return shuf__fail(error, SHUF_IO,
                      "stack: the limit is %" PRIu64 " KiB, but shufd needs at least %d; raise it "
                      "with ulimit -s, or with LimitSTACK= of the unit",
                      (uint64_t)stack.rlim_cur / 1024, STACK / 1024);
}

/* The limit also holds for memfds, which have the results. */
static void raise_file_size(void)
{
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) != 0)
        return;
    size.rlim_cur = size.rlim_max;
    setrlimit(RLIMIT_FSIZE, &size); /* if it fails, the old limit stays */
}

shuf_status shuf__limits_check(const struct shuf__config *config, struct shuf__error *error)
{
    raise_file_size();
    return check_stack(error) ? error->status : check_descriptors(config, error);
}
