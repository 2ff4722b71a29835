/* Reports and answers come back as they were; what is none is refused. */
#include "ring/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"

static void test_they_come_back(void **state)
{
    (void)state;
    const struct ring_report all[2] = {
        {.lane = "t1.a",
         .first = 3,
         .count = 90,
         .closed = true,
         .drop_to = 7,
         .holes_count = 2,
         .holes = {{.from = 4, .to = 5}, {.from = 8, .to = 12}}},
        {.lane = "t1.b", .first = 5, .count = 5, .closed = true, .drained = true}};
    const struct ring_answer answers[2] = {{.release = 9, .sealed = 12, .taken = 14},
                                           {.release = 1, .forget = true}};
    const char *node;
    size_t count;
    _cleanup_free_ struct ring_report *again = NULL;
    struct ring_answer told[2] = {{.release = 0}};
    _cleanup_json_ json_t *doc = ring_reports_to_json("t1", all, 2);
    _cleanup_json_ json_t *reply = ring_answers_to_json(answers, 2);
    assert_int_equal(ring_reports_from_json(doc, &node, &again, &count, NULL), 0);
    assert_string_equal(node, "t1");
    assert_int_equal(count, 2);
    _cleanup_json_ json_t *twice = ring_reports_to_json(node, again, count);
    assert_true(json_equal(doc, twice));
    assert_string_equal(again[0].lane, "t1.a");
    assert_int_equal(again[0].first, 3);
    assert_int_equal(again[0].drop_to, 7);
    assert_int_equal(again[0].holes[1].to, 12);
    assert_true(again[1].drained && !again[0].drained);
    assert_int_equal(ring_answers_from_json(reply, told, 2, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(told[i].release, answers[i].release);
        assert_int_equal(told[i].sealed, answers[i].sealed);
        assert_int_equal(told[i].taken, answers[i].taken);
        assert_int_equal(told[i].forget, answers[i].forget);
    }
    assert_int_equal(ring_answers_from_json(reply, told, 1, NULL), E_JSON);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "{'lanes': []}",
        "{'node': 1, 'lanes': []}",
        "{'node': 't1', 'lanes': 1}",
        "{'node': 't1', 'lanes': [1]}",
        "{'node': 't1', 'lanes': [{'lane': 't1', 'first': 0, 'count': 1}]}",
        "{'node': 't1', 'lanes': [{'lane': 't1.a', 'first': 0}]}",
        "{'node': 't1', 'lanes': [{'lane': 't1.a', 'first': -1, 'count': 1}]}",
        "{'node': 't1', 'lanes': [{'lane': 't1.a', 'first': 0, 'count': 300000000000000}]}",
        "{'node': 't1', 'lanes': [{'lane': 't1.a', 'first': 0, 'count': 9, 'holes': [[2, 2]]}]}",
        "{'node': 't1', 'lanes': [{'lane': 't1.a', 'first': 0, 'count': 9, 'holes': [[-3, 2]]}]}",
        "{'node': 't1', 'lanes': [{'lane': 't1.a', 'first': 0, 'count': 9, 'holes': ['x']}]}",
        "{'node': 't1', 'lanes': [{'lane': 't1.a', 'first': 0, 'count': 9,'holes':[[5,6],[2,3]]}]}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *node;
        size_t count;
        struct ring_report *out;
        struct error err = ERROR_INIT;
        _cleanup_free_ char *text = strdup(wrong[i]);
        for (char *c = text; *c != '\0'; c++)
            *c = *c == '\'' ? '"' : *c;
        _cleanup_json_ json_t *doc = NULL;
        assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
        assert_int_not_equal(ring_reports_from_json(doc, &node, &out, &count, &err), 0);
        assert_null(out);
        assert_int_not_equal(err.message[0], '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_come_back),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
