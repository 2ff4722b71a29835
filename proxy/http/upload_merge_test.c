#include "proxy/http/upload_merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/placement/upload_id.h"
#include "common/jsonx.h"
#include "common/rng.h"

/* An upload of "o" that began at 3 and has the number 1 is "o 3 1". */
static void put_row(struct buf *out, const char *row)
{
    char object[16], text[UPLOAD_ID_CHARS + 1];
    unsigned time_ms, number;
    assert_int_equal(sscanf(row, "%15s %u %u", object, &time_ms, &number), 3);
    struct upload_id id = {.time_ms = time_ms, .random = {(unsigned char)number}};
    buf_printf(out, "{\"object\": \"%s\", \"upload\": \"%s\", \"time\": %u}", object,
               upload_id_text(&id, text), time_ms);
}

/* "o 1 1|o 2 1"; with '+' at the end there are more. */
static void put_page(struct buf *out, const char *rows)
{
    char copy[256], *at = copy, *row;
    size_t len = strlen(rows);
    bool more = len > 0 && rows[len - 1] == '+';
    snprintf(copy, sizeof copy, "%.*s", (int)(len - more), rows);
    buf_puts(out, "{\"uploads\": [");
    for (unsigned i = 0; (row = strsep(&at, "|")) != NULL && row[0] != '\0'; i++) {
        buf_puts(out, i > 0 ? ", " : "");
        put_row(out, row);
    }
    buf_printf(out, "], \"more\": %s}", more ? "true" : "false");
}

static int feed(struct upload_merge *m, const char *rows, struct error *err)
{
    _cleanup_(buf_done)
    struct buf page = BUF_INIT;
    put_page(&page, rows);
    return upload_merge_feed(m, page.data, page.len, err);
}

static void assert_page(const struct upload_merge *m, const char *rows)
{
    _cleanup_(buf_done)
    struct buf page = BUF_INIT, wanted = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL, *expected = NULL;
    upload_merge_page(m, &page);
    put_page(&wanted, rows);
    assert_int_equal(json_parse(page.data, page.len, &doc, NULL), 0);
    assert_int_equal(json_parse(wanted.data, wanted.len, &expected, NULL), 0);
    if (!json_equal(doc, expected))
        fail_msg("%s is not %s", buf_str(&page), buf_str(&wanted));
}

static void pages_become_one(void **unused)
{
    (void)unused;
    static const struct {
        size_t limit;
        const char *pages[3];
        const char *all;
    } rows[] = {
        {3, {"", "", ""}, ""},
        {3, {"a 1 1", "b 1 1", "c 1 1"}, "a 1 1|b 1 1|c 1 1"},
        {3, {"c 1 1", "", "a 1 1|b 1 1"}, "a 1 1|b 1 1|c 1 1"},
        {2, {"c 1 1", "", "a 1 1|b 1 1"}, "a 1 1|b 1 1+"},
        {3, {"a 2 1|a 4 1", "a 1 1|a 3 1", ""}, "a 1 1|a 2 1|a 3 1+"},
        {4, {"a 2 1|a 4 1", "a 1 1|a 3 1", ""}, "a 1 1|a 2 1|a 3 1|a 4 1"},
        {4, {"a 1 1|a 1 3", "a 1 2", ""}, "a 1 1|a 1 2|a 1 3"}, /* in one millisecond */
        {2, {"a 1 1|b 1 1+", "c 1 1|d 1 1+", ""}, "a 1 1|b 1 1+"},
        {2, {"c 1 1|d 1 1+", "a 1 1|b 1 1+", "a 2 1"}, "a 1 1|a 2 1+"},
        /* A page that is shorter than the limit, and says that there are more. */
        {9, {"a 1 1|c 1 1+", "b 1 1|d 1 1", "e 1 1"}, "a 1 1|b 1 1|c 1 1+"},
        {9, {"b 1 1|d 1 1", "e 1 1", "a 1 1|c 1 1+"}, "a 1 1|b 1 1|c 1 1+"},
        {9, {"d 1 1+", "a 1 1|b 1 1+", "c 1 1"}, "a 1 1|b 1 1+"},
        {9, {"a 1 1|b 1 1+", "d 1 1+", "c 1 1"}, "a 1 1|b 1 1+"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(upload_merge_freep)
        struct upload_merge *m = upload_merge_new(rows[i].limit);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(feed(m, rows[i].pages[k], NULL), 0);
        assert_page(m, rows[i].all);
    }
}

static void what_is_no_page_is_refused(void **unused)
{
    (void)unused;
    static const char id[] = "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_w";
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"uploads\": 1}",
        "{\"uploads\": [], \"more\": true}",
        "{\"uploads\": [7]}",
        "{\"uploads\": [{\"object\": \"o\", \"time\": 1}]}",
        "{\"uploads\": [{\"object\": \"o\", \"upload\": \"x\", \"time\": 1}]}",
        "{\"uploads\": [{\"object\": \"o\", \"upload\": \"%s\"}]}",
        "{\"uploads\": [{\"upload\": \"%s\", \"time\": 1}]}",
        "{\"uploads\": [{\"object\": \"o\", \"upload\": \"%s\", \"time\": -1}]}",
        "{\"uploads\": [{\"object\": \"o\", \"upload\": \"%s\", \"time\": 1}], \"more\": 1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        _cleanup_(upload_merge_freep)
        struct upload_merge *m = upload_merge_new(9);
        struct error err = ERROR_INIT;
        const char *at = strstr(bad[i], "%s");
        char text[256];
        snprintf(text, sizeof text, "%.*s%s%s", at != NULL ? (int)(at - bad[i]) : 0, bad[i],
                 at != NULL ? id : "", at != NULL ? at + 2 : bad[i]);
        assert_int_equal(upload_merge_feed(m, text, strlen(text), &err), E_CORRUPT);
        assert_true(err.message[0] != '\0');
    }
    _cleanup_(upload_merge_freep)
    struct upload_merge *m = upload_merge_new(9);
    assert_int_equal(feed(m, "b 1 1|a 1 1", NULL), E_CORRUPT);
    assert_int_equal(feed(m, "a 2 1|a 1 1", NULL), E_CORRUPT);
    assert_int_equal(feed(m, "a 1 1|a 1 1", NULL), E_CORRUPT);
    assert_page(m, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_become_one),
        cmocka_unit_test(what_is_no_page_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
