/* SPDX-License-Identifier: MIT
 *
 * See resident.h. uv_resident_set_memory() would close its file each time (kept_file.h).
 */
#include "resident.h"

#include "host/kept_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

bool shuf__resident_bytes(uint64_t *bytes)
{
    char text[256];
    uint64_t pages;
    if (!shuf__kept_file_read("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%*u %" SCNu64, &pages) != 1)
        return false;
    *bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}
