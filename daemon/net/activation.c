/* SPDX-License-Identifier: MIT
 *
 * See activation.h. The socket is found by its name, because a unit may pass other sockets too.
 */
#include "activation.h"

#ifdef SHUF_HAVE_SYSTEMD

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

/* Finds the last descriptor with the name. Returns the number of such descriptors. */
static int find_descriptor(int count, char **names, int *fd)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], SHUF__ACTIVATION_NAME) == 0) {
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

shuf_status shuf__activation_take(int *fd, struct shuf__error *error)
{
    char **names = NULL;
    const int passed = sd_listen_fds(0),
              count = passed < 0 ? 0 : sd_listen_fds_with_names(1, &names);
    *fd = -1;
    if (passed < 0)
        return fail_of_variables(passed, error);
    if (count == 0)
        return SHUF_OK;
    int found = -1;
    const int sockets = count > 0 ? find_descriptor(count, names, &found) : 0;
    if (count > 0)
        free_names(count, names);
    if (sockets > 1)
        return shuf__fail(error, SHUF_INVALID,
                          "LISTEN_FDNAMES: %d sockets are named " SHUF__ACTIVATION_NAME
                          ", expected one: in the socket's unit, write an empty ListenStream= "
                          "before the new one",
                          sockets);
    if (sockets == 0)
        return shuf__fail(error, SHUF_INVALID,
                          "LISTEN_FDNAMES: no descriptor is named " SHUF__ACTIVATION_NAME
                          "; expected FileDescriptorName=" SHUF__ACTIVATION_NAME
                          " in the socket's unit");
    if (sd_is_socket_unix(found, SOCK_STREAM, 1, NULL, 0) <= 0 ||
        fcntl(found, F_SETFL, O_NONBLOCK) != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "descriptor %d, named " SHUF__ACTIVATION_NAME
                          ": expected a listening Unix stream socket",
                          found);
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
