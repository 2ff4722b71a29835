#include "console/console.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { SOURCE_MAX = 250 << 10, PACKED_MAX = 70 << 10 };

static void a_path_finds_its_file(void **state)
{
    (void)state;
    const struct console_file *index = console_find("");
    assert_non_null(index);
    assert_ptr_equal(index, console_find("index.html"));
    assert_string_equal(index->type, "text/html; charset=utf-8");
    assert_memory_equal(index->plain, "<!doctype html>", 15);
    assert_string_equal(console_find("views/jobs.js")->type, "text/javascript; charset=utf-8");
    assert_null(console_find("views"));
    assert_null(console_find("../index.html"));
    assert_null(console_find("index.htm"));
}

/* What is in the tree is what a browser loads: nothing may make it slow unseen. */
static void the_files_stay_small(void **state)
{
    (void)state;
    size_t plain = 0, packed = 0;
    for (const struct console_file *f = console_files; f->path != NULL; f++) {
        assert_true(f->plain_len > 0 && f->packed_len > 0);
        assert_int_equal(f->packed[0], 0x1f);
        assert_int_equal(strlen(f->etag), 36);
        plain += f->plain_len;
        packed += f->packed_len;
    }
    assert_true(plain <= SOURCE_MAX);
    assert_true(packed <= PACKED_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_its_file),
        cmocka_unit_test(the_files_stay_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
