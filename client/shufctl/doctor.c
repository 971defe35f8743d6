/* SPDX-License-Identifier: MIT
 *
 * See doctor.h.
 */
#include "doctor.h"

#include "cause.h"
#include "error.h"
#include "exit.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

void shuf__find(struct shuf__finding *finding, enum shuf__finding_level level, const char *advice,
                const char *format, ...)
{
    va_list args;
    finding->level = level;
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
    snprintf(finding->advice, sizeof finding->advice, "%s", advice ? advice : "");
    shuf__make_printable(finding->text);
    shuf__make_printable(finding->advice);
}

/* A file that the system cannot read now must not count as missing. */
static void end_on_system_failure(const char *path)
{
    const int cause = errno;
    if (shuf__is_system_failure(cause))
        exit(shuf__fail_with(EX_OSERR, "doctor: %s: %s", path, strerror(cause)));
}

FILE *shuf__patient_open(const char *path)
{
    struct stat file;
    const bool is_file = stat(path, &file) == 0 && S_ISREG(file.st_mode);
    return is_file ? fopen(path, "re") : NULL;
}

bool shuf__patient_read(const struct shuf__patient *patient, const char *path, char *text,
                        size_t size)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s%s", patient->root, path);
    FILE *file = fopen(full, "re");
    if (!file) {
        end_on_system_failure(full);
        return false;
    }
    text[fread(text, 1, size - 1, file)] = '\0';
    if (ferror(file))
        end_on_system_failure(full);
    fclose(file);
    return *text != '\0';
}
