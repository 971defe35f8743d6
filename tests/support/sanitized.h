/* SPDX-License-Identifier: MIT
 *
 * TEST_SANITIZED is 1 in a build with AddressSanitizer or ThreadSanitizer, otherwise 0. A sanitizer
 * uses memory of its own, so a test cannot measure the daemon's memory. It also slows
 * computations, so some tests take less data. TEST_THREAD_SANITIZED is 1 with ThreadSanitizer.
 */
#ifndef SHUF__TEST_SANITIZED_H
#define SHUF__TEST_SANITIZED_H

#if defined(__SANITIZE_THREAD__)
#define TEST_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_THREAD_SANITIZED 1
#endif
#endif
#ifndef TEST_THREAD_SANITIZED
#define TEST_THREAD_SANITIZED 0
#endif

#if TEST_THREAD_SANITIZED || defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

#endif
