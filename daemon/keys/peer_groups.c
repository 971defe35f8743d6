/* SPDX-License-Identifier: MIT
 *
 * See peer_groups.h.
 */
#include "peer_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static bool find_primary(int socket, gid_t group, bool *is_member)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    *is_member = peer.gid == group;
    return true;
}

/* The first call of getsockopt() sets `size` to the bytes that the groups need. The kernel converts
 * each group, so 65 536 groups, which subordinate gids allow, take 2 ms of the loop. */
static bool find_supplementary(int socket, gid_t group, bool *is_member)
{
    socklen_t size = 0;
    gid_t none;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, &none, &size) == 0)
        return true; /* no groups */
    if (errno == ERANGE && size > SHUF__PEER_GROUPS * sizeof none)
        return true;
    gid_t *groups = errno == ERANGE ? malloc(size) : NULL;
    if (!groups)
        return false;
    const bool ok = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0;
    for (size_t i = 0; ok && i < size / sizeof *groups; i++)
        *is_member |= groups[i] == group;
    free(groups);
    return ok;
}

bool shuf__peer_find_group(int socket, gid_t group, bool *is_member)
{
    return find_primary(socket, group, is_member) &&
           (*is_member || find_supplementary(socket, group, is_member));
}
