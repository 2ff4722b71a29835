#include "proxy/watch/event_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/jsonx.h"

static void add(struct event_log *log, const char *text)
{
    struct event e = {.kind = EVENT_node_joined, .at_ms = 5};
    snprintf(e.node, sizeof e.node, "t1");
    snprintf(e.text, sizeof e.text, "%s", text);
    event_log_add(log, &e);
}

/* "a b": the texts of the page; *next is kept for the next one. */
static void page(struct event_log *log, const char *after, size_t limit, const char *texts,
                 json_int_t missed, char next[64])
{
    struct event_cursor from;
    _cleanup_buf_ struct buf found = BUF_INIT;
    size_t i;
    json_t *e;
    assert_int_equal(event_log_cursor(log, after, &from, NULL), 0);
    _cleanup_json_ json_t *doc = event_log_page(log, from, limit);
    json_array_foreach(json_object_get(doc, "events"), i, e)
    {
        buf_printf(&found, "%s%s", i > 0 ? " " : "", json_string_value(json_object_get(e, "text")));
    }
    assert_string_equal(buf_str(&found), texts);
    assert_int_equal(json_integer_value(json_object_get(doc, "missed")), missed);
    snprintf(next, 64, "%s", json_string_value(json_object_get(doc, "next")));
}

static void a_reader_gets_each_event_once(void **state)
{
    (void)state;
    char next[64];
    _cleanup_(event_log_freep)
    struct event_log *log = event_log_new("run.1", 3);
    page(log, NULL, 10, "", 0, next);
    assert_string_equal(next, "run.1.0"); /* a run may have a dot */
    add(log, "a");
    add(log, "b");
    page(log, next, 1, "a", 0, next);
    page(log, next, 10, "b", 0, next);
    page(log, next, 10, "", 0, next);
    add(log, "c");
    page(log, next, 10, "c", 0, next);
    assert_int_equal(event_log_last(log), 3);
}

static void a_slow_reader_is_told_what_it_missed(void **state)
{
    (void)state;
    char next[64];
    const char *const texts[] = {"a", "b", "c", "d", "e"};
    _cleanup_(event_log_freep)
    struct event_log *log = event_log_new("r", 3);
    for (size_t i = 0; i < 5; i++)
        add(log, texts[i]);
    page(log, "r.1", 10, "c d e", 1, next);
    page(log, "r.2", 10, "c d e", 0, next);
    page(log, "", 2, "d e", 0, next);
    page(log, "", 10, "c d e", 0, next);
    page(log, "r.9", 10, "", 0, next); /* ahead of all */
    assert_string_equal(next, "r.5");
}

static void a_cursor_of_another_run_begins_anew(void **state)
{
    (void)state;
    struct event_cursor from;
    struct error err = ERROR_INIT;
    _cleanup_(event_log_freep)
    struct event_log *log = event_log_new("r", 3);
    add(log, "a");
    assert_int_equal(event_log_cursor(log, "q.1", &from, &err), 0);
    assert_true(from.anew && from.latest);
    _cleanup_json_ json_t *doc = event_log_page(log, from, 10);
    assert_true(json_is_true(json_object_get(doc, "anew")));
    assert_int_equal(json_array_size(json_object_get(doc, "events")), 1);
    const char *const wrong[] = {"7", "r.", "r.x", "r.-1", "."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(event_log_cursor(log, wrong[i], &from, &err), E_INVALID);
}

static void an_event_names_what_it_is_about(void **state)
{
    (void)state;
    _cleanup_(event_log_freep)
    struct event_log *log = event_log_new("r", 3);
    add(log, "target 't1' joined");
    _cleanup_json_ json_t *doc = event_log_page(log, (struct event_cursor){0}, 10);
    const json_t *e = json_array_get(json_object_get(doc, "events"), 0);
    assert_string_equal(json_string_value(json_object_get(e, "kind")), "node_joined");
    assert_string_equal(json_string_value(json_object_get(e, "level")), "info");
    assert_string_equal(json_string_value(json_object_get(e, "node")), "t1");
    assert_null(json_object_get(e, "bucket"));
    assert_int_equal(json_integer_value(json_object_get(e, "at_ms")), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_gets_each_event_once),
        cmocka_unit_test(a_slow_reader_is_told_what_it_missed),
        cmocka_unit_test(a_cursor_of_another_run_begins_anew),
        cmocka_unit_test(an_event_names_what_it_is_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
