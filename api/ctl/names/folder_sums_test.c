#include "api/ctl/names/folder_sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>

static void note(void *context, const char *name, const struct folder_sum *sum)
{
    buf_printf(context, "%s %d %d; ", name, (int)sum->objects, (int)sum->bytes);
}

static char *sums_of(const char *const *names, size_t base, uint64_t depth, struct folder_sum *all)
{
    struct buf text = BUF_INIT;
    struct folder_sums s = {.base = base, .depth = depth, .found = note, .context = &text};
    buf_puts(&text, "");
    for (uint64_t size = 1; *names != NULL; names++, size *= 10)
        folder_sums_add(&s, *names, size);
    folder_sums_end(&s);
    *all = s.all;
    folder_sums_done(&s);
    return buf_steal(&text);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void folders(void **state)
{
    (void)state;
    static const struct {
        const char *names[6];
        size_t base;
        uint64_t depth;
        const char *wanted;
    } rows[] = {
        {{"a", "b/c", "b/d/e", "f/g"}, 0, 0, ""},
        {{"a", "b/c", "b/d/e", "f/g"}, 0, 1, "b/ 2 110; f/ 1 1000; "},
        {{"a", "b/c", "b/d/e", "f/g"}, 0, 2, "b/d/ 1 100; b/ 2 110; f/ 1 1000; "},
        {{"a/b/c", "a/b/d/e", "a/b0"}, 2, 1, "a/b/ 2 11; "},
        {{"a/b", "a/b/c", "a/bc/d"}, 0, 9, "a/b/ 1 10; a/bc/ 1 100; a/ 3 111; "},
        {{"/x", "//", "//y"}, 0, 2, "// 2 110; / 3 111; "},
        {{"a-/b", "a/", "a/b"}, 0, 1, "a-/ 1 1; a/ 2 110; "},
        {{NULL}, 0, 3, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct folder_sum all;
        char *text = sums_of(rows[i].names, rows[i].base, rows[i].depth, &all);
        assert_string_equal(text, rows[i].wanted);
        free(text);
    }
}

static void the_whole(void **state)
{
    (void)state;
    struct folder_sum all;
    free(sums_of(NAMES("a", "b/c", "b/d/e"), 0, 1, &all));
    assert_int_equal(all.objects, 3);
    assert_int_equal(all.bytes, 111);
}

static void deep(void **state)
{
    (void)state;
    char name[1024];
    struct folder_sum all;
    for (size_t i = 0; i < sizeof name - 1; i++)
        name[i] = i % 2 == 0 ? 'a' : '/';
    name[sizeof name - 1] = '\0';
    char *text = sums_of(NAMES(name), 0, UINT64_MAX, &all);
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == ';';
    assert_int_equal(lines, 511);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders),
        cmocka_unit_test(the_whole),
        cmocka_unit_test(deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
