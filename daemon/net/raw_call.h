/* SPDX-License-Identifier: MIT
 *
 * System calls that do not use errno, for code that has no memory of a thread. syscall(2) has the
 * registers.
 */
#ifndef SHUFD_RAW_CALL_H
#define SHUFD_RAW_CALL_H

#include <unistd.h>

/* Returns the result of the kernel: -1 to -4095 is an error number with its sign changed. */
__attribute__((always_inline)) static inline long shuf__raw_call(long number, long a, long b,
                                                                 long c, long d)
{
#if defined __x86_64__
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined __aarch64__
    register long call __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth)
                     : "memory");
    return first;
#else
    return syscall(number, a, b, c, d); /* uses errno */
#endif
}

#endif
