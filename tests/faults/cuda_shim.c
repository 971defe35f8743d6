/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD on a machine with a GPU. It stands between a process and libcuda.so.1,
 * counts the calls of the driver interface, and disturbs one of them. The environment names it:
 *
 *   SHUF_FAULT_PROGRAM  the program's name; the shim does nothing in others
 *   SHUF_FAULT_KIND     fail: the call fails with CUDA_ERROR_UNKNOWN, and is not made
 *                       memory: the same with CUDA_ERROR_OUT_OF_MEMORY; counts only calls that
 *                       allocate or create something
 *                       lost: this call and all later calls fail with CUDA_ERROR_LAUNCH_FAILED,
 *                       as after an error of the device
 *                       late: the call is made a second later
 *                       hang: the call does not return
 *   SHUF_FAULT_AT       the number of the call, from 1 on; 0: none
 *   SHUF_FAULT_REPORT   a file for the name of the call, or at the end for the number of calls
 *
 * CUDA's runtime finds the driver's functions with dlsym() and cuGetProcAddress(). The shim
 * replaces both, and gives out thunks instead of the functions. A thunk keeps the argument
 * registers, calls decide(), and then jumps to the function or returns an error. A query repeated
 * by a polling thread counts once, so the numbers depend little on time.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    THUNKS = 2048,
    NAME = 64,
    THUNK_BYTES = 16,
    OUT_OF_MEMORY = 2,
    LAUNCH_FAILED = 719,
    UNKNOWN = 999
};

enum kind { FAIL, MEMORY, LOST, LATE, HANG };

typedef int get_proc_address(const char *name, void **function, int version, uint64_t flags,
                             void *status);

static struct thunk {
    void *function;
    char name[NAME];
} thunks[THUNKS];
static size_t thunk_count;
static pthread_mutex_t thunks_mutex = PTHREAD_MUTEX_INITIALIZER;

static enum kind kind;
static bool is_active;
static unsigned long fails_at;
static atomic_ulong calls;
static const char *report;
static get_proc_address *real_get_proc_address;
static _Thread_local const struct thunk *last_query;

/* ---- The decision of one call ---- */

/* In the registers RAX and RDX: the function to jump to, or NULL and the error to return. */
struct decision {
    void *function;
    uint64_t result;
};

static void write_report(const char *text)
{
    const int fd = report ? open(report, O_CREAT | O_TRUNC | O_WRONLY, 0600) : -1;
    if (fd < 0)
        return;
    if (write(fd, text, strlen(text)) < 0)
        perror(report);
    close(fd);
}

static bool contains_any(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strstr(name, *words))
            return true;
    return false;
}

static bool is_counted(const struct thunk *thunk)
{
    static const char *const creates[] = {"Alloc", "Create", "Reserve", "Register",
                                          "Load",  "Retain", NULL};
    static const char *const queries[] = {"Query", "GetInfo", NULL};
    const bool is_query = contains_any(thunk->name, queries);
    const bool is_repeated = is_query && last_query == thunk;
    last_query = is_query ? thunk : NULL;
    return !is_repeated && (kind != MEMORY || contains_any(thunk->name, creates));
}

__attribute__((visibility("hidden"), used)) struct decision shuf_decide(uint64_t number)
{
    const struct thunk *thunk = &thunks[number];
    const struct decision call = {thunk->function, 0};
    const unsigned long at = is_counted(thunk) ? atomic_fetch_add(&calls, 1) + 1 : 0;
    if (kind == LOST && fails_at > 0 && atomic_load(&calls) > fails_at)
        return (struct decision){NULL, LAUNCH_FAILED};
    if (at == 0 || at != fails_at)
        return call;
    write_report(thunk->name);
    switch (kind) {
    case FAIL:
        return (struct decision){NULL, UNKNOWN};
    case MEMORY:
        return (struct decision){NULL, OUT_OF_MEMORY};
    case LOST:
        return (struct decision){NULL, LAUNCH_FAILED};
    case LATE:
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        return call;
    case HANG:
        for (;;)
            pause();
    }
    return call;
}

/* ---- Thunks ---- */

__asm__("    .text\n"
        "    .balign 16\n"
        "shuf_first_thunk:\n"
        "    .set number, 0\n"
        "    .rept 2048\n"
        "    pushq $number\n"
        "    jmp shuf_any_thunk\n"
        "    .balign 16\n"
        "    .set number, number + 1\n"
        "    .endr\n"
        "shuf_any_thunk:\n"
        "    pushq %rdi\n"
        "    pushq %rsi\n"
        "    pushq %rdx\n"
        "    pushq %rcx\n"
        "    pushq %r8\n"
        "    pushq %r9\n"
        "    movq 48(%rsp), %rdi\n" /* the number of the thunk */
        "    call shuf_decide\n"
        "    movq %rdx, %r10\n"
        "    popq %r9\n"
        "    popq %r8\n"
        "    popq %rcx\n"
        "    popq %rdx\n"
        "    popq %rsi\n"
        "    popq %rdi\n"
        "    addq $8, %rsp\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    jmp *%rax\n"
        "1:  movq %r10, %rax\n"
        "    ret\n");

extern const uint8_t shuf_first_thunk[] __attribute__((visibility("hidden")));

/* Returns the thunk of a function. Two versions of a function have a thunk each. */
static void *thunk_of(const char *name, void *function)
{
    size_t i = 0;
    pthread_mutex_lock(&thunks_mutex);
    while (i < thunk_count && thunks[i].function != function)
        i++;
    if (i == THUNKS) {
        fprintf(stderr, "cuda_fault_shim: more than %d functions\n", THUNKS);
        abort();
    }
    if (i == thunk_count) {
        thunks[i].function = function;
        snprintf(thunks[i].name, NAME, "%s", name);
        thunk_count++;
    }
    pthread_mutex_unlock(&thunks_mutex);
    return (void *)(uintptr_t)(shuf_first_thunk + i * THUNK_BYTES);
}

static int get_thunk(const char *name, void **function, int version, uint64_t flags, void *status)
{
    const int result = real_get_proc_address(name, function, version, flags, status);
    if (result != 0 || !*function)
        return result;
    if (!strcmp(name, "cuGetProcAddress"))
        *(get_proc_address **)function = get_thunk;
    else
        *function = thunk_of(name, *function);
    return result;
}

/* ---- dlsym() ---- */

static void *real_dlsym(void *library, const char *name)
{
    static void *(*real)(void *, const char *);
    if (!real)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real(library, name);
}

/* The version of cuGetProcAddress() with a status. CUDA 11 has another one, without a status. */
EXPORT void *dlsym(void *restrict library, const char *restrict name)
{
    void *found = real_dlsym(library, name);
    if (!is_active || !found || strncmp(name, "cu", 2) != 0 || name[2] < 'A' || name[2] > 'Z')
        return found;
    if (strcmp(name, "cuGetProcAddress_v2") != 0)
        return thunk_of(name, found);
    *(void **)&real_get_proc_address = found;
    get_proc_address *own = get_thunk;
    memcpy(&found, &own, sizeof found);
    return found;
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const kinds[] = {"fail", "memory", "lost", "late", "hang"};
    const char *program = getenv("SHUF_FAULT_PROGRAM");
    const char *name = getenv("SHUF_FAULT_KIND");
    const char *at = getenv("SHUF_FAULT_AT");
    report = getenv("SHUF_FAULT_REPORT");
    fails_at = at ? strtoul(at, NULL, 10) : 0;
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(name, kinds[i]))
            kind = (enum kind)i;
    is_active = program && !strcmp(program, program_invocation_short_name);
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    if (!is_active || fails_at > 0)
        return;
    snprintf(text, sizeof text, "%lu", atomic_load(&calls));
    write_report(text);
}
