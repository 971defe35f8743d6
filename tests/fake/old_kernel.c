/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD: the kernel lacks SO_PEERPIDFD, as before Linux 6.5, and SO_PASSRIGHTS,
 * as before Linux 6.16. The daemon then opens the process of a client by its PID, and gets the
 * descriptors that a client sends.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

typedef int getsockopt_function(int fd, int level, int name, void *value, socklen_t *size);
typedef int setsockopt_function(int fd, int level, int name, const void *value, socklen_t size);

__attribute__((visibility("default"))) int
getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    if (level == SOL_SOCKET && (name == SO_PEERPIDFD || name == SO_PASSRIGHTS)) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return ((getsockopt_function *)dlsym(RTLD_NEXT, "getsockopt"))(fd, level, name, value, size);
}

__attribute__((visibility("default"))) int setsockopt(int fd, int level, int name,
                                                      const void *value, socklen_t size)
{
    if (level == SOL_SOCKET && name == SO_PASSRIGHTS) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return ((setsockopt_function *)dlsym(RTLD_NEXT, "setsockopt"))(fd, level, name, value, size);
}
