/* The mark: what was written is read; what is damaged is told and not taken for no mark. */
#include "proxy/metastore/moved.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "io/file.h"

static int make_dir(void **state)
{
    char *dir = xstrdup("/tmp/dfc-moved-XXXXXX");
    *state = dir;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
    char *dir = *state;
    int r = file_remove_tree(dir, NULL);
    free(dir);
    return r;
}

static struct moved example = {.metastore = (char *)"etcd://h:1,i:2",
                               .prefix = (char *)"/dfc",
                               .cluster = (char *)"c-1",
                               .term = (uint64_t)3 << 44,
                               .version = 42,
                               .done = false};

static void what_was_written_is_read(void **state)
{
    const char *dir = *state;
    struct moved m;
    assert_int_equal(moved_read(dir, &m, NULL), E_NOT_FOUND);
    assert_int_equal(moved_refuse(dir, NULL), 0);
    for (int done = 0; done < 2; done++) {
        example.done = done;
        assert_int_equal(moved_write(dir, &example, NULL), 0);
        assert_int_equal(moved_read(dir, &m, NULL), 0);
        assert_string_equal(m.metastore, example.metastore);
        assert_string_equal(m.prefix, "/dfc");
        assert_string_equal(m.cluster, "c-1");
        assert_true(m.term == example.term && m.version == 42);
        assert_int_equal(m.done, done);
        moved_done(&m);
    }
    struct error err = ERROR_INIT;
    assert_int_equal(moved_refuse(dir, &err), E_EXISTS);
    assert_non_null(strstr(err.message, "--metastore=etcd://h:1,i:2"));
    assert_int_equal(moved_remove(dir, NULL), 0);
    assert_int_equal(moved_remove(dir, NULL), 0);
    assert_int_equal(moved_refuse(dir, NULL), 0);
}

static void a_damaged_mark_is_no_free_way(void **state)
{
    static const char backwards[] = "{\"format\": 1, \"metastore\": \"e\", \"prefix\": \"/p\","
                                    " \"cluster\": \"c\", \"term\": -1, \"version\": 2}";
    static const char *const texts[] = {"", "{", "[]", "{}", "{\"format\": 2}", backwards};
    const char *dir = *state;
    _cleanup_free_ char *path = xprintf("%s/moved.json", dir);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(file_replace(path, texts[i], strlen(texts[i]), 0644, NULL), 0);
        int r = moved_refuse(dir, NULL);
        assert_true(r != 0 && r != E_NOT_FOUND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_read, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_damaged_mark_is_no_free_way, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
