/* SPDX-License-Identifier: MIT
 *
 * See terminal.h.
 */
#include "terminal.h"

#include <sys/ioctl.h>

enum { COLUMNS = 80 }; /* of a terminal that does not report its width */

unsigned shuf__terminal_columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS;
    return size.ws_col < SHUF__COLUMNS_MOST ? size.ws_col : SHUF__COLUMNS_MOST;
}
