/* A plog over a store in memory: for tests of plog/.
 *
 *     static void test_name(void **state)
 *     {
 *         struct fixture *x = *state;
 *         struct plog_file *f = open_file(x, &to_write);
 *
 * TEST(test_name) gives each test a store of its own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plog/file.h"
#include "plog/testing/memory_store.h"

#define FIXTURE_FILE "a/file" /* the name of the plog */

struct fixture {
    struct memory_store memory;
    struct plog_store st; /* memory's; a test may replace calls */
};

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int set_up(void **state);
int tear_down(void **state);

extern const struct plog_file_how to_read, to_write;

/* Each fails the test on an error. */
struct plog_file *open_file(struct fixture *x, const struct plog_file_how *how);
void write_text(struct plog_file *f, const char *text, uint64_t offset);
/* A new reader sees these bytes, and no more. */
void need_text(struct fixture *x, const char *text);
