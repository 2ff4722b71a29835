#include "mount/fuse/closing.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void the_process_of_a_thread_is_told(void **state)
{
    (void)state;
    assert_int_equal(closing_parse_process("Name:\tcat\nUmask:\t0022\nTgid:\t4711\nPid:\t9\n"),
                     4711);
    assert_int_equal(closing_parse_process("Name:\tcat\n"), 0);
    assert_int_equal(closing_parse_process(""), 0);
    assert_int_equal(closing_process(gettid()), getpid());
}

#define FIELDS_3_TO_51                                                                            \
    "S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0 0 0 0 " \
    "0 "                                                                                          \
    "1 1 1 1 1 1 1 "

static void a_signal_is_told_from_an_end(void **state)
{
    (void)state;
    assert_true(closing_parse_killed("7 (cat) " FIELDS_3_TO_51 "9\n"));
    assert_true(closing_parse_killed("7 (a) 1 (b) " FIELDS_3_TO_51 "139\n"));
    assert_false(closing_parse_killed("7 (cat) " FIELDS_3_TO_51 "0\n"));
    assert_false(closing_parse_killed("7 (cat) " FIELDS_3_TO_51 "256\n")); /* exit(1) */
    assert_false(closing_parse_killed("7 (cat) S 1 1\n"));
    assert_false(closing_parse_killed(""));
}

static void a_descriptor_is_of_an_inode(void **state)
{
    (void)state;
    static const char text[] = "pos:\t0\nflags:\t0100001\nmnt_id:\t26\nino:\t4711\n";
    assert_true(closing_parse_writes(text, 4711));
    assert_false(closing_parse_writes(text, 471));
    assert_false(closing_parse_writes("pos:\t0\nflags:\t0100000\nmnt_id:\t26\nino:\t4711\n", 4711));
    assert_false(closing_parse_writes("pos:\t0\nflags:\t02\n", 0));
    assert_false(closing_parse_writes("", 0));
}

static void the_last_descriptor_stores(void **state)
{
    (void)state;
    struct stat st;
    int one = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    assert_true(one >= 0 && fstat(one, &st) == 0);
    assert_int_equal(closing_device("/tmp"), st.st_dev);
    int two = dup(one);
    struct closing_file file = {.opener = getpid(), .inode = st.st_ino, .device = st.st_dev};
    assert_int_equal(closing_of(&file, gettid()), CLOSING_NOT_YET);
    file.device++; /* another mount */
    assert_int_equal(closing_of(&file, gettid()), CLOSING_STORE);
    file.device--;
    close(one);
    assert_int_equal(closing_of(&file, gettid()), CLOSING_NOT_YET);
    close(two);
    assert_int_equal(closing_of(&file, gettid()), CLOSING_STORE);
    file.opener = 0; /* nobody can be looked at */
    assert_int_equal(closing_of(&file, 0), CLOSING_STORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_of_a_thread_is_told),
        cmocka_unit_test(a_signal_is_told_from_an_end),
        cmocka_unit_test(a_descriptor_is_of_an_inode),
        cmocka_unit_test(the_last_descriptor_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
