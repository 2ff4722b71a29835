#include "s3/uploads/upload_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const char *const keys[] = {"a", "a", "b/1", "b/2", "c/1", "d"};
static const char *const ids[] = {"1", "2", "3", "4", "5", "6"};

enum { KEYS = 6 };

/* "a:1 a:2 [b/] …", and the markers of the next page. */
static const char *page_of(const struct s3_uploads_asked *asked, struct arena *arena)
{
    struct s3_upload_page p;
    bool has_room = true;
    s3_upload_page_init(&p, asked, arena);
    for (size_t i = 0; i < KEYS && has_room; i++) {
        const struct s3_listed_upload u = {.key = keys[i], .upload_id = ids[i]};
        bool is_behind = strcmp(u.key, asked->after_key) > 0 ||
                         (strcmp(u.key, asked->after_key) == 0 && *asked->after_upload_id != '\0' &&
                          strcmp(u.upload_id, asked->after_upload_id) > 0);
        if (is_behind && strncmp(u.key, asked->prefix, strlen(asked->prefix)) == 0)
            has_room = s3_upload_page_add(&p, &u);
    }
    const char *text = "";
    for (size_t i = 0; i < p.upload_count; i++)
        text = arena_printf(arena, "%s%s:%s ", text, p.uploads[i].key, p.uploads[i].upload_id);
    for (size_t i = 0; i < p.prefix_count; i++)
        text = arena_printf(arena, "%s[%s] ", text, p.prefixes[i]);
    return arena_printf(arena, "%s-> %s:%s", text, p.next_key != NULL ? p.next_key : "",
                        p.next_upload_id != NULL ? p.next_upload_id : "");
}

static void test_pages(void **state)
{
    (void)state;
    static const struct {
        struct s3_uploads_asked asked;
        const char *page;
    } rows[] = {
        {{"", "", "", "", 1000, false}, "a:1 a:2 b/1:3 b/2:4 c/1:5 d:6 -> :"},
        {{"", "", "", "", 6, false}, "a:1 a:2 b/1:3 b/2:4 c/1:5 d:6 -> :"},
        {{"", "", "", "", 1, false}, "a:1 -> a:1"},
        {{"", "", "a", "1", 2, false}, "a:2 b/1:3 -> b/1:3"},
        {{"", "", "a", "", 1, false}, "b/1:3 -> b/1:3"},
        {{"", "", "", "", 0, false}, "-> :"},
        {{"", "/", "", "", 1000, false}, "a:1 a:2 d:6 [b/] [c/] -> :"},
        {{"", "/", "", "", 3, false}, "a:1 a:2 [b/] -> b/:"},
        {{"", "/", "b/", "", 1, false}, "[c/] -> c/:"},
        {{"", "/", "c/", "", 1, false}, "d:6 -> :"},
        {{"b/", "/", "", "", 1, false}, "b/1:3 -> b/1:3"},
        {{"b", "/", "", "", 1, false}, "[b/] -> :"},
        {{"", "/", "b/1", "3", 1000, false}, "d:6 [b/] [c/] -> :"},
        {{"x", "/", "", "", 1000, false}, "-> :"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *arena = arena_new(1024);
        assert_string_equal(page_of(&rows[i].asked, arena), rows[i].page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
