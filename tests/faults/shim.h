/* SPDX-License-Identifier: MIT
 *
 * Functions that the parts of the fault shim share. See shim.c.
 */
#ifndef FAULT_SHIM_H
#define FAULT_SHIM_H

#include <dlfcn.h>
#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

/* The real function, in the static variable `real`. */
#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real)                     \
        *(void **)&real = dlsym(RTLD_NEXT, #name);

/* Counts a call. Returns true, and sets errno, if this call must fail. */
#define fails(name, error) fault_fails_in(name, error, __builtin_return_address(0))

bool fault_fails_in(const char *name, int error, const void *caller);

/* While a thread is paused, its calls are not counted. */
void fault_pause(bool is_paused);

/* The environment variable with the number of calls, for a program that executes itself again. */
void fault_pass_on_calls(void);

#endif
