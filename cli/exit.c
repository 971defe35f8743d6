/* SPDX-License-Identifier: MIT
 *
 * See exit.h.
 */
#include "exit.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { TEXT = 8192 }; /* more than two paths */

const char *shuf__program_name = "shuf";
void (*shuf__before_failure)(void);

static const struct {
    shuf_status status;
    int code;
} codes[] = {
    {SHUF_OK, EX_OK},
    {SHUF_INVALID, EX_USAGE},
    {SHUF_NO_DAEMON, EX_UNAVAILABLE},
    {SHUF_BUSY, EX_TEMPFAIL},
    {SHUF_DENIED, EX_NOPERM},
    {SHUF_NO_MEMORY, EX_OSERR},
    {SHUF_DEVICE, EX_OSERR},
    {SHUF_VERSION, EX_PROTOCOL},
    {SHUF_PROTOCOL, EX_PROTOCOL},
    {SHUF_TIMEOUT, EX_TEMPFAIL},
    {SHUF_CANCELLED, EX_TEMPFAIL},
    {SHUF_IO, EX_IOERR},
    {SHUF_INTERNAL, EX_SOFTWARE},
};

int shuf__exit_code(shuf_status status)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            return codes[i].code;
    return EX_SOFTWARE;
}

int shuf__fail_with(int code, const char *format, ...)
{
    va_list args;
    char text[TEXT];
    if (shuf__before_failure)
        shuf__before_failure();
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    shuf__make_printable(text);
    fprintf(stderr, "%s: %s\n", shuf__program_name, text);
    return code;
}

/* ---- The standard streams ---- */

static const struct {
    int cause;
    const char *text;
} causes[] = {
    {EBADF, "Bad file descriptor: it is closed; expected a file, a pipe or a terminal"},
    {ENOENT, "No such file or directory; expected a path whose directory exists"},
    {ENOTDIR, "Not a directory; expected a path whose directory exists"},
    {EISDIR, "Is a directory; expected the path of a file"},
    {EACCES, "Permission denied; expected a path where this user may write"},
    {EROFS, "Read-only file system; expected a path on another one"},
    {EPIPE, "Broken pipe: its reader ended, and SIGPIPE is ignored"},
    {EFBIG, "File too large for ulimit -f or for the file system"},
};

const char *shuf__cause_text(int cause)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (causes[i].cause == cause)
            return causes[i].text;
    return strerror(cause);
}

/* Runs at exit: every verb, and argp's --help, fails if its output cannot be written. */
static void check_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    shuf__fail_with(EX_IOERR, "standard output: %s", shuf__cause_text(errno));
    _exit(EX_IOERR);
}

/* If a standard stream is closed, the next open() returns its number. Output to the stream would
 * then go to the opened file. To prevent this, each closed stream gets a descriptor here whose
 * reads and writes fail with EBADF. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(EX_OSERR);
}

void shuf__streams_prepare(void)
{
    occupy_closed_streams();
    signal(SIGXFSZ, SIG_IGN);
    atexit(check_stdout);
}
