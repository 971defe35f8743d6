/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD. It counts those calls of a process that can fail, such as malloc(), and
 * makes one of them fail. Environment variables select the call:
 *
 *   SHUF_FAULT_PROGRAM  the program's name; the shim does nothing in others
 *   SHUF_FAULT_AT       the number of the call that fails, from 1 on; 0: none
 *   SHUF_FAULT_REPORT   a file for the name of the call that failed and the library that made it.
 *                       With SHUF_FAULT_AT=0 for the number of calls, and then for the numbers of
 *                       those that are the first ones from their chain of callers
 *
 * This file has the count and the functions of malloc(). shim_calls.c has the other functions.
 */
#include "shim.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_active;
static unsigned long fails_at;
static atomic_ulong calls;
static const char *report;
static _Thread_local bool is_paused;

/* dlsym() itself allocates, before the real functions are known. */
static _Alignas(16) uint8_t early[8192];
static size_t early_used;

static void *alloc_early(size_t size)
{
    void *at = early + early_used;
    early_used += (size + 15) & ~(size_t)15;
    if (early_used > sizeof early)
        abort();
    return at;
}

static bool is_early(const void *memory)
{
    return (const uint8_t *)memory >= early && (const uint8_t *)memory < early + sizeof early;
}

/* Uses system calls directly, because the shim would count calls of open() and write(). Returns
 * false if the file exists and `flags` has O_EXCL. */
static bool write_report(const char *text, int flags)
{
    const long fd =
        report ? syscall(SYS_openat, AT_FDCWD, report, O_CREAT | O_WRONLY | flags, 0600) : -1;
    if (fd < 0)
        return false;
    syscall(SYS_write, fd, text, strlen(text));
    syscall(SYS_close, fd);
    return true;
}

/* Writes a text such as "malloc in libuv.so.1". Returns false if another process has failed a call
 * before, such as the parent of this process. */
static bool report_failure(const char *name, const void *caller)
{
    char text[128];
    Dl_info library = {.dli_fname = ""};
    dladdr(caller, &library);
    const char *slash = strrchr(library.dli_fname, '/');
    snprintf(text, sizeof text, "%s in %s", name, slash ? slash + 1 : library.dli_fname);
    return write_report(text, O_EXCL);
}

/* ---- Chains of callers ------------------------------------------------------------ */

enum { CHAIN = 10, CHAINS = 1 << 16 };

static uint64_t chains[CHAINS]; /* a hash of the callers of each call */

static void note_chain(const char *name, unsigned long call)
{
    void *callers[CHAIN];
    uint64_t hash = (uintptr_t)name;
    if (call >= CHAINS)
        return;
    is_paused = true;
    const int depth = backtrace(callers, CHAIN);
    is_paused = false;
    for (int i = 0; i < depth; i++)
        hash = (hash ^ (uintptr_t)callers[i]) * UINT64_C(0x9e3779b97f4a7c15);
    chains[call] = hash | 1;
}

static bool is_first_of_chain(unsigned long call)
{
    for (unsigned long before = 0; before < call; before++)
        if (chains[before] == chains[call])
            return false;
    return chains[call] != 0;
}

/* ---- The decision of one call ----------------------------------------------------- */

bool fault_fails_in(const char *name, int error, const void *caller)
{
    if (!is_active || is_paused)
        return false;
    const unsigned long call = atomic_fetch_add(&calls, 1) + 1;
    if (fails_at == 0)
        note_chain(name, call);
    if (call != fails_at)
        return false;
    is_active = false;
    if (!report_failure(name, caller))
        return false;
    errno = error;
    return true;
}

void fault_pause(bool pauses)
{
    is_paused = pauses;
}

static const char calls_variable[] = "SHUF_FAULT_CALLS";

void fault_pass_on_calls(void)
{
    char text[32];
    snprintf(text, sizeof text, "%lu", atomic_load(&calls));
    is_paused = true;
    setenv(calls_variable, text, 1);
    is_paused = false;
}

/* ---- Memory ---------------------------------------------------------------------- */

static bool is_resolving;
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static void resolve(void)
{
    if (real_free || is_resolving)
        return;
    is_resolving = true;
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
    is_resolving = false;
}

EXPORT void *malloc(size_t size)
{
    resolve();
    if (!real_malloc)
        return alloc_early(size);
    return fails("malloc", ENOMEM) ? NULL : real_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    resolve();
    if (!real_calloc)
        return alloc_early(count * size); /* zeros */
    return fails("calloc", ENOMEM) ? NULL : real_calloc(count, size);
}

EXPORT void *realloc(void *memory, size_t size)
{
    resolve();
    if (is_early(memory)) {
        void *copy = real_malloc(size);
        if (copy)
            memcpy(copy, memory, size < 512 ? size : 512);
        return copy;
    }
    return fails("realloc", ENOMEM) ? NULL : real_realloc(memory, size);
}

EXPORT void free(void *memory)
{
    resolve();
    if (memory && !is_early(memory) && real_free)
        real_free(memory);
}

EXPORT void *reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, bytes);
}

/* ---- The count ---------------------------------------------------------------------- */

static unsigned long number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : 0;
}

static void begin(void)
{
    const char *program = getenv("SHUF_FAULT_PROGRAM");
    if (!program || strcmp(program, program_invocation_short_name) != 0)
        return;
    report = getenv("SHUF_FAULT_REPORT");
    fails_at = number_of("SHUF_FAULT_AT");
    atomic_store(&calls, number_of(calls_variable));
    unsetenv(calls_variable);
    is_active = true;
}

typedef int start_function(int, char **, char **);
static start_function *real_main;

static int counted_main(int argc, char **argv, char **environment)
{
    begin();
    return real_main(argc, argv, environment);
}

int __libc_start_main(start_function *, int, char **, void (*)(void), void (*)(void),
                      void (*)(void), void *);

/* Starts to count at main(). Before main(), constructors of libraries run, and the one of the CUDA
 * runtime crashes if it gets no memory. */
EXPORT int __libc_start_main(start_function *program, int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    REAL(__libc_start_main)
    real_main = program;
    return real(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* Writes the number of calls and the first call of each chain. */
static void write_count(void)
{
    static char text[8 * CHAINS];
    const unsigned long count = atomic_load(&calls);
    int length = snprintf(text, sizeof text, "%lu", count);
    for (unsigned long call = 1; call <= count && call < CHAINS; call++)
        if (is_first_of_chain(call))
            length += snprintf(text + length, sizeof text - (size_t)length, " %lu", call);
    write_report(text, O_TRUNC);
}

__attribute__((destructor)) static void end(void)
{
    const bool counts = is_active && fails_at == 0;
    is_active = false;
    if (counts)
        write_count();
}
