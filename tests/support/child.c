/* SPDX-License-Identifier: MIT
 *
 * See child.h.
 */
#include "support/child.h"

#include "support/cmocka_all.h"

#include <dirent.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNEL = STDERR_FILENO + 1 };

/* Closes the other descriptors that the child inherits. Otherwise a connection that the parent
 * closes would stay open here. */
static void close_other_descriptors(int channel)
{
    if (channel != CHANNEL && dup2(channel, CHANNEL) < 0)
        _exit(126);
    close_range(CHANNEL + 1, UINT_MAX, 0);
}

static void become_user(uid_t uid)
{
    if (uid != getuid() &&
        (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which resets it */
    prctl(PR_SET_DUMPABLE, 1);        /* otherwise root would own the child's /proc */
}

struct child child_start_as(uid_t uid, void (*body)(int channel, void *context), void *context)
{
    int ends[2];
    struct child child;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    fflush(NULL);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        close_other_descriptors(ends[1]);
        become_user(uid);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        body(CHANNEL, context);
        fflush(NULL);
        _exit(0);
    }
    close(ends[1]);
    child.channel = ends[0];
    return child;
}

struct child child_start(void (*body)(int channel, void *context), void *context)
{
    return child_start_as(getuid(), body, context);
}

void child_send(int channel, uint64_t number)
{
    assert_int_equal(send(channel, &number, sizeof number, MSG_NOSIGNAL), sizeof number);
}

uint64_t child_receive(int channel)
{
    uint64_t number = 0;
    assert_int_equal(recv(channel, &number, sizeof number, 0), sizeof number);
    return number;
}

static int close_and_wait(const struct child *child)
{
    int status = -1;
    close(child->channel);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    return status;
}

void child_join(const struct child *child)
{
    int status = close_and_wait(child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("a child ended with wait status 0x%x", (unsigned)status);
}

void child_kill(const struct child *child)
{
    kill(child->pid, SIGKILL);
    int status = close_and_wait(child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- Descriptors, to find leaks ---- */

int count_entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

int count_descriptors(void)
{
    return count_entries("/proc/self/fd");
}
