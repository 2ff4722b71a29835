#include "plog/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char id[] = "0123456789abcdef0123456789abcdef";

static void test_segment(void **state)
{
    (void)state;
    const struct plog_segment_name all[] = {
        {.epoch = 0},
        {.epoch = 7, .writer = 0xabc, .n = 3, .end = 100, .bytes = 40, .cuts = true},
        {.epoch = UINT32_MAX,
         .writer = UINT64_MAX,
         .n = UINT32_MAX,
         .end = INT64_MAX,
         .bytes = INT64_MAX},
    };
    char last[PLOG_NAME_MAX] = "", name[PLOG_NAME_MAX];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct plog_segment_name back;
        plog_name_segment(name, id, &all[i]);
        assert_true(plog_name_parse_segment(name, &back));
        assert_int_equal(back.epoch, all[i].epoch);
        assert_true(back.writer == all[i].writer);
        assert_int_equal(back.n, all[i].n);
        assert_true(back.end == all[i].end && back.bytes == all[i].bytes);
        assert_int_equal(back.cuts, all[i].cuts);
        assert_true(strcmp(last, name) < 0);
        memcpy(last, name, sizeof last);
    }
    assert_string_equal(name, ".dfc-plog/0123456789abcdef0123456789abcdef/s/ffffffff-"
                              "ffffffffffffffff-ffffffff-7fffffffffffffff-7fffffffffffffff");
}

static void test_epoch_begins_before_its_segments(void **state)
{
    (void)state;
    char before[PLOG_NAME_MAX], name[PLOG_NAME_MAX];
    plog_name_epoch(before, id, 5);
    plog_name_segment(name, id, &(struct plog_segment_name){.epoch = 5});
    assert_true(strcmp(before, name) < 0);
    plog_name_segment(name, id,
                      &(struct plog_segment_name){.epoch = 4, .writer = UINT64_MAX, .cuts = true});
    assert_true(strcmp(before, name) > 0);
}

static void test_records_and_merged(void **state)
{
    (void)state;
    char name[PLOG_NAME_MAX];
    uint64_t number;
    bool closed;
    plog_name_record(name, id, 0x1f, false);
    assert_true(plog_name_parse_record(name, &number, &closed));
    assert_true(number == 0x1f && !closed);
    plog_name_record(name, id, UINT64_MAX, true);
    assert_true(plog_name_parse_record(name, &number, &closed));
    assert_true(number == UINT64_MAX && closed);
    plog_name_merged(name, id, 12, 34);
    assert_true(plog_name_parse_merged(name, &number));
    assert_true(number == 12);
    assert_false(plog_name_parse_record(name, &number, &closed));
}

static void test_refused(void **state)
{
    (void)state;
    struct plog_segment_name s;
    uint64_t number;
    bool closed;
    char name[PLOG_NAME_MAX];
    plog_name_segment(name, id, &(struct plog_segment_name){.epoch = 1});
    for (size_t len = 0; len < strlen(name); len++) { /* each shorter text */
        char cut[PLOG_NAME_MAX];
        snprintf(cut, sizeof cut, "%.*s", (int)len, name);
        assert_false(plog_name_parse_segment(cut, &s));
    }
    snprintf(name + strlen(name), sizeof name - strlen(name), "-x");
    assert_false(plog_name_parse_segment(name, &s));
    assert_false(plog_name_parse_record(".dfc-plog/x/o/0000000000000000", &number, &closed));
    assert_false(plog_name_parse_merged("", &number));
    assert_true(plog_id_valid(id));
    assert_false(plog_id_valid("0123456789ABCDEF0123456789abcdef"));
    assert_false(plog_id_valid(""));
    assert_false(plog_id_valid("0123456789abcdef0123456789abcdef0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment),
        cmocka_unit_test(test_epoch_begins_before_its_segments),
        cmocka_unit_test(test_records_and_merged),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
