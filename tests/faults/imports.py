#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails if a program imports a function of libc that no fault test can make fail.

imports.py BUILD

Each function of libc that shufd, shufctl or libshuf imports must be a function of the fault shim
(tests/faults/shim.c), or stand in CANNOT_FAIL with the reason. The shim also counts the calls
that libuv, libmicrohttpd, libsystemd and Jansson make. Their imports are not checked, because most of
them belong to functions that these programs do not use.
"""
import pathlib
import re
import subprocess
import sys

PROGRAMS = ("daemon/shufd", "client/libshuf.so", "client/shufctl/shufctl")
SHIM = "tests/faults/libfault_shim.so"

CANNOT_FAIL = {
    "works on memory of the caller":
        "alphasort bsearch dirname dirfd explicit_bzero feof ferror fileno memcmp memcpy memmove memset memchr "
        "sigaddset sigemptyset sigfillset sched_cpucount strcasecmp strcat strchr strchrnul strcmp strcpy strcspn "
        "strlen strncasecmp strncat strncmp strnlen strpbrk strrchr strsep strspn strstr strtok_r tdelete tfind "
        "sscanf snprintf sprintf vsnprintf strtod strtof strtol strtoul strtoull inet_pton ungetc",
    "computes a number": "fma fmaf fmax fmin ldexp llround sqrt sqrtf",
    "allocates by malloc(), which fails in its stead": "qsort strdup strndup tsearch setenv on_exit cxa_atexit "
        "register_atfork",
    "writes to the buffer of a stream; fflush(), fclose() or ferror() reports the failure":
        "fprintf fputc fputs fwrite printf putc puts vfprintf",
    "returns a constant text or a number of this process":
        "clock_gettime ctype_b_loc ctype_tolower_loc errno_location geteuid getenv getpid getrlimit getrusage gettid "
        "in6addr_loopback localtime_r pthread_self stderr stdin stdout strerror strftime sysconf tls_get_addr umask uname",
    "fails only for a wrong argument":
        "getsockname inotify_rm_watch lseek munmap pthread_cond_destroy pthread_cond_init pthread_cond_signal "
        "pthread_cond_timedwait pthread_cond_wait pthread_condattr_destroy pthread_condattr_init "
        "pthread_condattr_setclock pthread_detach pthread_join pthread_mutex_destroy pthread_mutex_init "
        "pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_sigmask raise rewind sched_yield sigaction "
        "signal sigprocmask sysinfo timer_settime unsetenv",
    "does not wait, so no signal interrupts it; needs no memory": "epoll_wait",
    "fails if another thread holds the lock; each answer is expected": "pthread_mutex_trylock",
    "its signal 0 asks whether a process exists; each answer is expected": "kill",
    "a signal ends it early, and its callers then continue": "nanosleep",
    "its descriptor is closed even if it fails": "closedir",
    "a hint": "posix_fadvise",
    "answers no for everything but a terminal": "isatty",
    "is not there on a machine without a GPU; tests/faults/cuda_shim.c has the calls of CUDA":
        "dlclose dlerror dlopen dlsym",
    "ends the process": "abort exit _exit assert_fail stack_chk_fail",
    "parses a command line, and ends the process if it cannot":
        "argp_failure argp_parse argp_program_version argp_state_help",
    "frees memory": "free malloc_trim",
    "starts or ends the process": "libc_start_main cxa_finalize",
}
# The parts of a name that depend on the compiler, its options and the standard of C.
DECORATION = re.compile(r"^(__isoc99_|__isoc23_|__)|(_chk|_2|64)$")


def symbols(library, kind):
    text = subprocess.run(["nm", "-D", f"--{kind}-only", library], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1] for line in text.splitlines()]


def plain(name):
    return DECORATION.sub("", DECORATION.sub("", name))


def of_libc(symbol):
    return "@GLIBC_" in symbol


def main():
    build = pathlib.Path(sys.argv[1])
    counted = {plain(name.split("@")[0]) for name in symbols(build / SHIM, "defined")}
    listed = {plain(name) for names in CANNOT_FAIL.values() for name in names.split()}
    missing = 0
    for program in PROGRAMS:
        for symbol in filter(of_libc, symbols(build / program, "undefined")):
            name = symbol.split("@")[0]
            if plain(name) not in counted | listed:
                print(f"{program}: {name}: expected in tests/faults/shim.c, or in CANNOT_FAIL of "
                      "tests/faults/imports.py")
                missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
