/* SPDX-License-Identifier: MIT
 *
 * See peer_groups.h.
 */
#include "peer_groups.h"

#include <stdlib.h>
#include <sys/socket.h>

static bool is_primary(int socket, gid_t group)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.gid == group;
}

/* The first call of getsockopt() sets `size` to the bytes that the groups need. */
static bool is_supplementary(int socket, gid_t group)
{
    socklen_t size = 0;
    gid_t none;
    getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, &none, &size);
    gid_t *groups = size > 0 ? malloc(size) : NULL;
    bool found = false;
    if (groups && getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
        for (size_t i = 0; i < size / sizeof *groups; i++)
            found |= groups[i] == group;
    free(groups);
    return found;
}

bool shuf__peer_is_in_group(int socket, gid_t group)
{
    return is_primary(socket, group) || is_supplementary(socket, group);
}
