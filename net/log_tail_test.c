#include "net/log_tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/log.h"

static uint64_t last; /* line of all tests */

static void add(const char *line)
{
    log_tail_add(line, strlen(line));
    last++;
}

static void reads(uint64_t after, const char *wanted)
{
    uint64_t first;
    _cleanup_buf_ struct buf out = BUF_INIT;
    assert_int_equal(log_tail_read(after, &out, &first), last > after ? last : after);
    assert_string_equal(buf_str(&out), wanted);
}

static void nothing_is_kept_at_first(void **state)
{
    (void)state;
    log_tail_add("lost\n", 5);
    reads(0, "");
}

static void a_reader_gets_each_line_once(void **state)
{
    (void)state;
    log_tail_keep(20);
    add("one\n");
    add("two\n");
    reads(0, "one\ntwo\n");
    reads(1, "two\n");
    reads(2, "");
    reads(9, ""); /* another run's */
}

static void old_lines_make_room(void **state)
{
    (void)state;
    uint64_t first;
    _cleanup_buf_ struct buf out = BUF_INIT;
    add("three 789012\n"); /* 13 bytes: with the others 21 */
    log_tail_read(0, &out, &first);
    assert_int_equal(first, 3); /* a quarter went, in whole lines */
    assert_string_equal(buf_str(&out), "three 789012\n");
    log_tail_add("a line that is longer than all\n", 31);
    log_tail_add("no end", 6);
    log_tail_add("two\nlines\n", 10);
    reads(2, "three 789012\n");
}

static void the_log_fills_it(void **state)
{
    (void)state;
    uint64_t first;
    _cleanup_buf_ struct buf out = BUF_INIT;
    log_tail_keep(4096);
    log_set_copy(log_tail_add);
    log_info("something", lstr("name", "a b"));
    log_debug("not at this level");
    last++;
    log_tail_read(last - 1, &out, &first);
    assert_non_null(strstr(buf_str(&out), " INFO - something name=\"a b\"\n"));
    assert_null(strstr(buf_str(&out), "level"));
    log_set_copy(NULL);
    log_tail_keep(0);
    reads(0, "");
}

static void a_process_has_one_boot(void **state)
{
    (void)state;
    assert_int_equal(strlen(log_tail_boot()), 16);
    assert_ptr_equal(log_tail_boot(), log_tail_boot());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_at_first), cmocka_unit_test(a_reader_gets_each_line_once),
        cmocka_unit_test(old_lines_make_room),      cmocka_unit_test(the_log_fills_it),
        cmocka_unit_test(a_process_has_one_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
