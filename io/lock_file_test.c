#include "io/lock_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "io/file.h"

static char directory[] = "/tmp/dfc-lock-file-XXXXXX";
static char *path;

static int setup(void **state)
{
    (void)state;
    memcpy(directory + strlen(directory) - 6, "XXXXXX", 6);
    if (mkdtemp(directory) == NULL)
        return -1;
    path = xprintf("%s/lock", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(path);
    return file_remove_tree(directory, NULL);
}

static void one_has_it_at_a_time(void **state)
{
    int first, second;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *process = xprintf("process %d ", (int)getpid());
    (void)state;
    assert_int_equal(lock_file_take(path, &first, NULL), 0);
    assert_int_equal(lock_file_take(path, &second, &err), E_EXISTS);
    assert_non_null(strstr(err.message, process));
    close(first);
    assert_int_equal(lock_file_take(path, &second, NULL), 0);
    close(second);
}

static void a_link_is_not_followed(void **state)
{
    int fd;
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_free_ char *victim = xprintf("%s/victim", directory);
    (void)state;
    assert_int_equal(file_replace(victim, "precious", 8, 0600, NULL), 0);
    assert_int_equal(symlink(victim, path), 0);
    assert_int_not_equal(lock_file_take(path, &fd, &err), 0);
    assert_non_null(strstr(err.message, "symbolic link"));
    assert_int_equal(file_read_all(victim, 100, &text, NULL), 0);
    assert_int_equal(text.len, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_has_it_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_is_not_followed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
