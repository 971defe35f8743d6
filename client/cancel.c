/* SPDX-License-Identifier: MIT
 *
 * See cancel.h.
 */
#include "cancel.h"

#include <sys/socket.h>

void shuf__cancel(struct shuf__cancel *cancel)
{
    cancel->is_cancelled = true;
    pthread_mutex_lock(&cancel->mutex);
    if (cancel->fd >= 0)
        shutdown(cancel->fd, SHUT_RDWR);
    pthread_mutex_unlock(&cancel->mutex);
}

void shuf__cancel_set_socket(struct shuf__cancel *cancel, int fd)
{
    pthread_mutex_lock(&cancel->mutex);
    cancel->fd = fd;
    if (fd >= 0 && cancel->is_cancelled) /* since the call has looked, without a socket then */
        shutdown(fd, SHUT_RDWR);
    pthread_mutex_unlock(&cancel->mutex);
}
