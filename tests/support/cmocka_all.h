/* SPDX-License-Identifier: MIT
 *
 * cmocka.h with the headers that it needs before it.
 */
#ifndef SHUF__CMOCKA_ALL_H
#define SHUF__CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
