/* SPDX-License-Identifier: MIT
 *
 * See descriptors.h.
 */
#include "descriptors.h"

#include "cmocka_all.h"

#include <dirent.h>

int count_entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

int count_descriptors(void)
{
    return count_entries("/proc/self/fd");
}
