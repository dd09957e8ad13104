/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test - unit tests that read as sentences and register themselves, on cmocka.
 *
 *   TEST(strtab, a_string_is_stored_once) { CHECK_EQ(intern("ab"), 1); }
 *
 * tests/test.c has main().  Real captures are under $KILN_TEST_DATA, by default ../shared/data
 * beside the checkout; kiln_test_data() gives a path, or NULL where they are absent: then SKIP().
 * Tests that read them are CAPTURE_TESTs, which run on their own as `program --captures`: all
 * others never skip for want of a file.
 */
#ifndef KILN_TESTS_TEST_H
#define KILN_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

void kiln_test_register(const char *name, CMUnitTestFunction run, bool reads_captures);

#define TEST_OF(group, sentence, reads_captures)                                                   \
    static void group##_##sentence(void **state);                                                  \
    __attribute__((constructor)) static void register_##group##_##sentence(void)                   \
    {                                                                                              \
        kiln_test_register(#group ": " #sentence, group##_##sentence, reads_captures);             \
    }                                                                                              \
    static void group##_##sentence(__attribute__((unused)) void **state)

#define TEST(group, sentence)         TEST_OF(group, sentence, false)
#define CAPTURE_TEST(group, sentence) TEST_OF(group, sentence, true)

#define CHECK(condition)              assert_true(condition)
#define CHECK_OK(call)                assert_int_equal((call), 0)
#define CHECK_EQ(a, b)                assert_int_equal((a), (b))
#define CHECK_NE(a, b)                assert_int_not_equal((a), (b))
#define CHECK_TEXT(a, b)              assert_string_equal((a), (b))
#define CHECK_STR(s, text)            kiln_test_check_str((s), (text), __FILE__, __LINE__)

void kiln_test_check_str(struct kiln_str s, const char *text, const char *file, int line);

/* The path of a real capture, in a static buffer, or NULL. */
const char *kiln_test_data(const char *relative);

/* A whole file; the caller frees it with free().  NULL if it cannot be read. */
char *kiln_test_read(const char *path, size_t *ret_len);

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        printf("skipped: %s\n", (reason));                                                         \
        skip();                                                                                    \
    } while (0)

#endif /* KILN_TESTS_TEST_H */
