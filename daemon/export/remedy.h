/* SPDX-License-Identifier: MIT
 *
 * What an administrator can do if the metrics cannot be published. If a service manager runs the
 * daemon, the reason is often the sandbox of its unit, which the text of errno does not mention.
 */
#ifndef SHUFD_EXPORT_REMEDY_H
#define SHUFD_EXPORT_REMEDY_H

/* The end of a message about a port that failed with this errno: "; ...", or "". */
const char *shuf__remedy_of_port(int cause);

enum { SHUF__REMEDY = 144 };

/* Writes the same for a file that the daemon could not make. Looks at its directories, so a slow
 * disk may block the thread. */
void shuf__remedy_of_file(int cause, const char *path, char text[SHUF__REMEDY]);

#endif
