/* SPDX-License-Identifier: MIT
 *
 * See listener.h. If two daemons start at the same time, the lock decides. After taking the lock,
 * the daemon probes the socket, to find a listener that does not use the lock.
 */
#include "listener.h"

#include "identity.h"
#include "peer_socket.h"
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- A socket of the service manager ---- */

#ifdef SHUF_HAVE_SYSTEMD

#include <systemd/sd-daemon.h>

/* FileDescriptorName= in the socket's unit. A unit may pass other sockets too. */
#define ACTIVATION_NAME "shufd"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76 /* Linux 6.5 */
#endif

/* Finds the last descriptor with the name. Returns the number of such descriptors. */
static int find_descriptor(int count, char **names, int *fd)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], ACTIVATION_NAME) == 0) {
            *fd = SD_LISTEN_FDS_START + i;
            found++;
        }
    return found;
}

static void free_names(int count, char **names)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static shuf_status fail_of_variables(int result, struct shuf__error *error)
{
    const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
    return shuf__fail(error, SHUF_INVALID,
                      "LISTEN_FDS %.32s, LISTEN_PID %.32s: %s; expected the number of descriptors "
                      "that the service manager passes from 3 on, and the process",
                      count ? count : "", pid ? pid : "", strerror(-result));
}

/* As if a script of ExecStart= runs shufd without exec. */
static void explain_other_process(struct shuf__error *error)
{
    const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
    if (count && pid && strtol(pid, NULL, 10) != getpid())
        shuf__fail(error, SHUF_INVALID,
                   "LISTEN_PID %.32s: the service manager passes its socket to this process, but "
                   "shufd is process %ld; start shufd by exec",
                   pid, (long)getpid());
}

/* PassCredentials=, PassSecurity= and PassPIDFD= of a socket's unit add control messages to what
 * clients send, as descriptors would be. Accepted sockets inherit the options. */
static void pass_nothing(int fd)
{
    static const int options[] = {SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, SOL_SOCKET, options[i], &(int){0}, sizeof(int));
}

shuf_status shuf__activation_take(int *fd, struct shuf__error *error)
{
    char **names = NULL;
    const int passed = sd_listen_fds(0);
    *fd = -1;
    if (passed < 0)
        return fail_of_variables(passed, error);
    if (passed == 0)
        explain_other_process(error);
    const int count = sd_listen_fds_with_names(1, &names); /* removes the variables */
    if (count == 0)
        return SHUF_OK;
    int found = -1;
    const int sockets = count > 0 ? find_descriptor(count, names, &found) : 0;
    if (count > 0)
        free_names(count, names);
    if (sockets > 1)
        return shuf__fail(error, SHUF_INVALID,
                          "LISTEN_FDNAMES: %d sockets are named " ACTIVATION_NAME
                          ", expected one: in the socket's unit, write an empty ListenStream= "
                          "before the new one",
                          sockets);
    if (sockets == 0)
        return shuf__fail(error, SHUF_INVALID,
                          "LISTEN_FDNAMES: no descriptor is named " ACTIVATION_NAME
                          "; expected FileDescriptorName=" ACTIVATION_NAME " in the socket's unit");
    if (sd_is_socket_unix(found, SOCK_STREAM, 1, NULL, 0) <= 0 ||
        fcntl(found, F_SETFL, O_NONBLOCK) != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "descriptor %d, named " ACTIVATION_NAME
                          ": expected a listening Unix stream socket",
                          found);
    pass_nothing(found);
    *fd = found;
    return SHUF_OK;
}

#else

shuf_status shuf__activation_take(int *fd, struct shuf__error *error)
{
    (void)error;
    *fd = -1;
    return SHUF_OK;
}

#endif

/* ---- The listener ---- */

struct ucred shuf__peer_of(int fd)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        peer = (struct ucred){.uid = (uid_t)-1, .gid = (gid_t)-1}; /* not 0, which is root */
    return peer;
}

static void command_of(pid_t pid, char *name, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(name, (int)size, file))
        snprintf(name, size, "unknown");
    name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
}

static shuf_status refuse_live(const struct shuf__listener *listener, struct ucred owner,
                               struct shuf__error *error)
{
    char command[32];
    const char *path = listener->address.sun_path;
    if (owner.pid == 0)
        return shuf__fail(error, SHUF_BUSY,
                          "socket %s: in use by a process of another PID namespace", path);
    command_of(owner.pid, command, sizeof command);
    return shuf__fail(error, SHUF_BUSY, "socket %s: in use by %s, pid %ld, uid %ld%s", path,
                      command, (long)owner.pid, (long)owner.uid,
                      shuf__lock_is_dying(owner.pid) ? ", " SHUF__LOCK_DYING : "");
}

enum found { LIVE, STALE, NO_ANSWER };

/* Whether a process listens on the path. Sets *owner to it, or to zeros. */
static enum found probe(const struct sockaddr_un *address, struct ucred *owner)
{
    *owner = (struct ucred){0};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return NO_ANSWER;
    int result = connect(fd, (const struct sockaddr *)address, sizeof *address);
    int cause = result == 0 ? 0 : errno;
    if (result == 0)
        *owner = shuf__peer_of(fd);
    close(fd);
    if (result == 0 || cause == EAGAIN)
        return LIVE;
    errno = cause;
    return cause == ECONNREFUSED || cause == ENOENT ? STALE : NO_ANSWER;
}

/* If another process has the lock, probes the socket. If a process answers there, the error names
 * this process, because the daemon can then also name its command. */
static shuf_status take_lock(struct shuf__listener *listener, bool waits, struct shuf__error *error)
{
    struct ucred owner;
    shuf_status status = shuf__lock_take(&listener->lock, listener->address.sun_path, waits, error);
    if (status != SHUF_BUSY && status != SHUF_DENIED)
        return status;
    if (probe(&listener->address, &owner) == LIVE)
        return refuse_live(listener, owner, error);
    return status;
}

/* The socket's directory, in a buffer as large as a socket's path. */
static void name_directory(const char *path, char *directory, size_t size)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        snprintf(directory, size, "%s", slash ? "/" : ".");
    else
        snprintf(directory, size, "%.*s", (int)(slash - path), path);
}

static shuf_status refuse_directory(const char *path, const char *directory,
                                    struct shuf__error *error)
{
    const char *advice = errno == ENOENT ? ": make it, or choose another socket" : "";
    return shuf__fail(error, SHUF_IO, "socket %s: directory %s: %s%s", path, directory,
                      strerror(errno), advice);
}

/* Makes the directory only for the default path. That directory is in /run, which is empty after
 * each boot. If another directory is missing, the path is probably mistyped. */
static shuf_status make_directory(const char *path, struct shuf__error *error)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    struct stat status;
    name_directory(path, directory, sizeof directory);
    if (stat(directory, &status) == 0)
        return SHUF_OK;
    if (errno == ENOENT && strcmp(path, SHUF__SYSTEM_SOCKET) == 0 && mkdir(directory, 0755) == 0 &&
        chmod(directory, 0755) == 0)
        return SHUF_OK;
    return refuse_directory(path, directory, error);
}

static shuf_status check_directory(const char *path, struct shuf__error *error)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    name_directory(path, directory, sizeof directory);
    if (access(directory, W_OK | X_OK) == 0)
        return SHUF_OK;
    if (errno == ENOENT && strcmp(path, SHUF__SYSTEM_SOCKET) == 0 && access("/run", W_OK) == 0)
        return SHUF_OK; /* a start would make the directory */
    return refuse_directory(path, directory, error);
}

static shuf_status look_at(const char *path, bool *exists, struct shuf__error *error)
{
    struct stat status;
    *exists = lstat(path, &status) == 0;
    if (!*exists && errno != ENOENT)
        return shuf__fail(error, SHUF_IO, "socket %s: %s", path, strerror(errno));
    if (*exists && !S_ISSOCK(status.st_mode))
        return shuf__fail(error, SHUF_IO,
                          "socket %s: the file is not a socket; expected a socket, or no file",
                          path);
    return SHUF_OK;
}

static shuf_status refuse_no_answer(const char *path, struct shuf__error *error)
{
    const int cause = errno;
    struct stat status;
    if (cause == EACCES && lstat(path, &status) == 0)
        return shuf__fail(error, SHUF_DENIED,
                          "socket %s: a socket of uid %ld, which uid %u may not use; choose "
                          "another path with --socket",
                          path, (long)status.st_uid, (unsigned)geteuid());
    return shuf__fail(error, SHUF_IO, "socket %s: %s", path, strerror(cause));
}

/* Removes the file at the path only if it is a socket without a listener. */
static shuf_status make_way(struct shuf__listener *listener, struct shuf__error *error)
{
    const char *path = listener->address.sun_path;
    bool exists;
    struct ucred owner;
    if (look_at(path, &exists, error))
        return error->status;
    if (!exists)
        return SHUF_OK;
    switch (probe(&listener->address, &owner)) {
    case LIVE:
        return refuse_live(listener, owner, error);
    case NO_ANSWER:
        return refuse_no_answer(path, error);
    case STALE:
        break;
    }
    if (unlink(path) != 0 && errno != ENOENT)
        return shuf__fail(error, SHUF_IO, "socket %s: %s", path, strerror(errno));
    return SHUF_OK;
}

/* "" gives -1, which chown() ignores. */
static shuf_status find_group(const char *name, gid_t *gid, struct shuf__error *error)
{
    *gid = (gid_t)-1;
    const int cause = *name ? shuf__find_group(name, gid) : 0;
    if (cause == ENOENT)
        return shuf__fail(error, SHUF_INVALID,
                          "socket_group %.64s: no such group; expected a name or a number", name);
    if (cause)
        return shuf__fail(error, SHUF_IO, "socket_group %.64s: %s", name, strerror(cause));
    return SHUF_OK;
}

/* Whether this process may give a file of its own to the group. Tries it on a file in memory,
 * because a capability, a namespace or a sandbox may decide. */
static shuf_status check_group(const char *name, gid_t group, struct shuf__error *error)
{
    if (group == (gid_t)-1)
        return SHUF_OK;
    const int fd = memfd_create("group", MFD_CLOEXEC);
    const bool refused = fd >= 0 && fchown(fd, (uid_t)-1, group) != 0;
    if (fd >= 0)
        close(fd);
    if (!refused)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "socket_group %.64s: user %ld of the daemon may not give the socket to this "
                      "group; expected a group with this user as a member, or CAP_CHOWN",
                      name, (long)geteuid());
}

/* Reads device, inode and birth of the file at the path. False: it finds none. Old sandboxes refuse
 * statx(). */
static bool identify(const struct sockaddr_un *address, struct shuf__listener *file)
{
    struct statx found;
    struct stat status;
    if (statx(AT_FDCWD, address->sun_path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &found) ==
        0) {
        file->device = makedev(found.stx_dev_major, found.stx_dev_minor);
        file->inode = found.stx_ino;
        file->born = (struct timespec){found.stx_btime.tv_sec, found.stx_btime.tv_nsec};
        return true;
    }
    if (errno == ENOENT || lstat(address->sun_path, &status) != 0)
        return false;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->born = (struct timespec){0};
    return true;
}

/* Whether the path names the file that identify() found. */
static bool is_at_path(const struct shuf__listener *listener)
{
    struct shuf__listener now;
    return listener->inode != 0 && identify(&listener->address, &now) &&
           now.device == listener->device && now.inode == listener->inode &&
           now.born.tv_sec == listener->born.tv_sec && now.born.tv_nsec == listener->born.tv_nsec;
}

bool shuf__listener_is_at_path(const struct shuf__listener *listener)
{
    return listener->is_hidden || is_at_path(listener);
}

/* The umask decides the mode. A chmod() of the path could follow a link of another user. */
static bool bind_socket(struct shuf__listener *listener, mode_t mode)
{
    const mode_t before = umask(~mode & 0777);
    const int bound =
        bind(listener->fd, (struct sockaddr *)&listener->address, sizeof listener->address);
    umask(before);
    if (bound != 0)
        return false;
    identify(&listener->address, listener);
    return true;
}

/* Gives away only a socket of this user that bind() has made, and no file to which another user has
 * turned the path. */
static bool give_to_group(const struct shuf__listener *listener, gid_t group)
{
    struct stat status;
    if (group == (gid_t)-1)
        return true;
    const int fd = open(listener->address.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    const bool is_own = fd >= 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) &&
                        status.st_uid == geteuid() && status.st_ino == listener->inode;
    const int result = is_own ? fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH) : -1;
    const int cause = is_own || fd < 0 ? errno : EPERM;
    if (fd >= 0)
        close(fd);
    errno = cause;
    return result == 0;
}

/* No client can connect before listen(), so the group is set before the first one. */
static shuf_status open_socket(struct shuf__listener *listener, mode_t mode, gid_t group,
                               struct shuf__error *error)
{
    const char *path = listener->address.sun_path;
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0 || !bind_socket(listener, mode))
        return shuf__fail(error, SHUF_IO, "socket %s: %s", path, strerror(errno));
    shuf__peer_socket_forbid_descriptors(listener->fd, false);
    if (!give_to_group(listener, group))
        return shuf__fail(error, SHUF_IO, "socket %s: giving it to group %ld: %s", path,
                          (long)group, strerror(errno));
    if (listen(listener->fd, SOMAXCONN) != 0)
        return shuf__fail(error, SHUF_IO, "socket %s: %s", path, strerror(errno));
    return SHUF_OK;
}

static shuf_status fail_socket(const char *path, struct shuf__error *error)
{
    if (!*path)
        shuf__socket_explain(error);
    return error->status;
}

shuf_status shuf__listener_check(const char *path, const char *group, struct shuf__error *error)
{
    struct sockaddr_un address;
    gid_t gid;
    bool exists;
    if (find_group(group, &gid, error) || check_group(group, gid, error))
        return error->status;
    if (shuf__socket_address(path, SHUF__SOCKET_SERVE, &address, error) ||
        check_directory(address.sun_path, error) || look_at(address.sun_path, &exists, error))
        return fail_socket(path, error);
    return SHUF_OK;
}

/* Whether a path without a file may have one outside the sandbox of the daemon. If the daemon sees
 * the directory of the path, somebody has removed the file. An abstract socket has no file. */
static bool may_be_hidden(const char *path)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    struct stat status;
    name_directory(path, directory, sizeof directory);
    return !*path || stat(directory, &status) != 0 || lstat(path, &status) == 0 || errno != ENOENT;
}

/* Uses a socket that the service manager has passed. The service manager has made its file, and
 * starts only one daemon for it. So the daemon takes no lock, and does not remove the file. */
static shuf_status adopt_socket(struct shuf__listener *listener, struct shuf__error *error)
{
    socklen_t size = sizeof listener->address;
    if (shuf__activation_take(&listener->fd, error))
        return error->status;
    listener->is_passed = listener->fd >= 0;
    if (!listener->is_passed)
        return SHUF_OK;
    getsockname(listener->fd, (struct sockaddr *)&listener->address, &size);
    listener->is_hidden =
        !identify(&listener->address, listener) && may_be_hidden(listener->address.sun_path);
    shuf__peer_socket_forbid_descriptors(listener->fd, true);
    return SHUF_OK;
}

shuf_status shuf__listener_open(struct shuf__listener *listener, const char *path, mode_t mode,
                                const char *group, struct shuf__error *error)
{
    gid_t gid;
    *listener = (struct shuf__listener){.fd = -1, .lock.fd = -1};
    error->text[0] = '\0';
    if (adopt_socket(listener, error))
        return error->status;
    if (listener->fd >= 0)
        return SHUF_OK;
    if (error->text[0] && !*path && !getenv("SHUFD_SOCKET"))
        return error->status;
    if (find_group(group, &gid, error) || check_group(group, gid, error))
        return error->status;
    if (shuf__socket_address(path, SHUF__SOCKET_SERVE, &listener->address, error) ||
        make_directory(listener->address.sun_path, error))
        return fail_socket(path, error);
    if (take_lock(listener, true, error) || make_way(listener, error) ||
        open_socket(listener, mode, gid, error)) {
        shuf__listener_close(listener);
        shuf__listener_unlock(listener);
        return fail_socket(path, error);
    }
    shuf__lock_set_state(&listener->lock, SHUF__LOCK_SERVING);
    return SHUF_OK;
}

static void close_socket(struct shuf__listener *listener)
{
    if (!listener->is_passed && is_at_path(listener))
        unlink(listener->address.sun_path);
    if (!listener->is_passed)
        shutdown(listener->fd, SHUT_RDWR); /* clients get an error at once */
    shuf__peer_socket_close_listening(listener->fd);
    listener->fd = -1;
}

/* Somebody may have removed the lock with the socket. Does not wait, because the loop runs. */
static shuf_status keep_lock(struct shuf__listener *listener, struct shuf__error *error)
{
    struct shuf__listener again = {.lock.fd = -1, .address = listener->address};
    if (shuf__lock_is_at_path(&listener->lock))
        return SHUF_OK;
    if (take_lock(&again, false, error))
        return error->status;
    shuf__lock_release(&listener->lock);
    listener->lock = again.lock;
    shuf__lock_set_state(&listener->lock, SHUF__LOCK_SERVING);
    return SHUF_OK;
}

/* Users who may change the directory could remove the socket again and again, and move other files
 * to its path. */
static shuf_status check_trust(const char *path, struct shuf__error *error)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    struct stat status;
    name_directory(path, directory, sizeof directory);
    if (stat(directory, &status) != 0)
        return refuse_directory(path, directory, error);
    if ((status.st_uid == 0 || status.st_uid == geteuid()) &&
        (!(status.st_mode & (S_IWGRP | S_IWOTH)) || (status.st_mode & S_ISVTX)))
        return SHUF_OK;
    return shuf__fail(error, SHUF_DENIED,
                      "socket %s: its file was removed, and other users may change directory %s; "
                      "restart shufd, or choose a directory of uid %u",
                      path, directory, (unsigned)geteuid());
}

shuf_status shuf__listener_open_again(struct shuf__listener *listener, mode_t mode,
                                      const char *group, struct shuf__error *error)
{
    gid_t gid;
    struct shuf__listener again = {.fd = -1, .lock.fd = -1, .address = listener->address};
    const char *path = listener->address.sun_path;
    if (find_group(group, &gid, error) || make_directory(path, error) || check_trust(path, error) ||
        keep_lock(listener, error) || make_way(&again, error) ||
        open_socket(&again, mode, gid, error)) {
        if (again.fd >= 0)
            close_socket(&again);
        return error->status;
    }
    again.lock = listener->lock;
    close_socket(listener);
    *listener = again;
    return SHUF_OK;
}

void shuf__listener_close(struct shuf__listener *listener)
{
    if (listener->fd < 0)
        return;
    /* Sets the state first, because other daemons read it once the socket is gone. */
    shuf__lock_set_state(&listener->lock, SHUF__LOCK_ENDING);
    close_socket(listener);
}

void shuf__listener_unlock(struct shuf__listener *listener)
{
    shuf__lock_release(&listener->lock);
}
