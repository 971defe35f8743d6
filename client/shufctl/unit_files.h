/* SPDX-License-Identifier: MIT
 *
 * The files of the units of systemd: their folders in the order of systemd.unit(5). shufctl reads
 * these folders, because `systemctl` takes longer and needs a running systemd. $SHUFD_UNITS names a
 * folder that replaces / for tests.
 */
#ifndef SHUF__UNIT_FILES_H
#define SHUF__UNIT_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__UNIT_FOLDERS = 6, SHUF__UNIT_PATH = 512 };

/* Writes FOLDER/NAME for one of the SHUF__UNIT_FOLDERS folders. */
void shuf__unit_path(char path[SHUF__UNIT_PATH], size_t folder, const char *name);

/* True if a folder has the file. A link counts even if its target is missing. */
bool shuf__unit_exists(const char *name);

/* True if the administrator has masked the unit. */
bool shuf__unit_is_masked(const char *name);

/* True if systemd runs on this machine and has the units of shufd. */
bool shuf__units_are_installed(void);

/* True if systemd starts shufd.target at the boot. */
bool shuf__units_are_enabled(void);

/* True if the user and the group shufd exist. The units fail without them. */
bool shuf__units_have_user(void);

#endif
