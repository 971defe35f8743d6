/* SPDX-License-Identifier: MIT
 *
 * The listening socket that a service manager passes (sd_listen_fds(3)). The service manager keeps
 * the socket, so connections wait in its backlog while the daemon restarts.
 */
#ifndef SHUFD_ACTIVATION_H
#define SHUFD_ACTIVATION_H

#include "error.h"

/* The name of the socket's descriptor: FileDescriptorName= in the socket's unit. */
#define SHUF__ACTIVATION_NAME "shufd"

/* Sets *fd to the socket, or to -1 if the process was passed no descriptors. Fails with
 * SHUF_INVALID if none of the descriptors is a listening Unix socket of that name. A process may
 * call it once. */
shuf_status shuf__activation_take(int *fd, struct shuf__error *error);

#endif
