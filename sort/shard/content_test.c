/* Keys out of members: what is one, how numbers compare, which member it is. */
#include "sort/shard/content.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "sort/testing/fixture.h"
#include "sort/spec/order.h"

static uint64_t number_of(enum sort_content_type type, const char *text)
{
    uint64_t n = 0;
    if (!content_number(type, text, strlen(text), &n))
        fail_msg("'%s' is no number", text);
    return n;
}

static void expect_rising(enum sort_content_type type, const char *const *texts)
{
    for (; texts[1] != NULL; texts++) {
        if (number_of(type, texts[0]) >= number_of(type, texts[1]))
            fail_msg("%s, %s", texts[0], texts[1]);
    }
}

static void expect_none(enum sort_content_type type, const char *const *texts)
{
    uint64_t n;
    for (; *texts != NULL; texts++)
        assert_false(content_number(type, *texts, strlen(*texts), &n));
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const ints[] = {"-9223372036854775808", "-10", "-9", "0", "+1", "007",
                                       "9223372036854775807",  NULL};
    static const char *const floats[] = {"-1e999", "-1e3", "-2",  "-.5",   "0",
                                         "1e-300", "2.5",  "1E2", "1e999", NULL};
    static const char *const no_ints[] = {"",    "-",   "1.0", "9223372036854775808",
                                          "0x1", "1 2", NULL};
    static const char *const no_floats[] = {"", ".", "1e", "nan", "inf", "0x1p3", "1,5", NULL};
    expect_rising(SORT_CONTENT_INT, ints);
    expect_rising(SORT_CONTENT_FLOAT, floats);
    expect_none(SORT_CONTENT_INT, no_ints);
    expect_none(SORT_CONTENT_FLOAT, no_floats);
    assert_true(number_of(SORT_CONTENT_FLOAT, "-0") == number_of(SORT_CONTENT_FLOAT, "0"));
}

/* One record of these members, read with and without its own path in an inline extended header. */
static void expect_key(enum sort_content_type type, const char *name, struct buf *tar, int state,
                       const char *text)
{
    char extension[] = ".cls";
    struct sort_spec spec = {.content_extension = extension, .content_type = type};
    struct content_key key = {0};
    struct error err = ERROR_INIT;
    struct buf shifted = BUF_INIT;
    fixture_contents(&shifted, "something before it", 19);
    buf_append(&shifted, tar->data, tar->len);
    int fd = fixture_fd(&shifted);
    struct record_piece pieces[2] = {{.is_inline = true, .length = 512},
                                     {.offset = 512, .length = tar->len - 512}};
    struct group_record r = {.name = name,
                             .name_len = strlen(name),
                             .pieces = pieces,
                             .piece_count = 2,
                             .inlines = tar->data};
    if (content_read(&spec, fd, 512, &r, &key, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(key.state, state);
    if (state == CONTENT_FOUND)
        assert_string_equal(buf_str(&key.text), text);
    close(fd);
    buf_done(&shifted);
    buf_done(&key.text);
}

static void test_members(void **state)
{
    (void)state;
    struct buf tar = BUF_INIT;
    char large[3000];
    memset(large, '7', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    fixture_file(&tar, "a.jpg", large);
    fixture_file(&tar, "a.cls", " -12\n");
    fixture_file(&tar, "a.json", "13");
    expect_key(SORT_CONTENT_INT, "a", &tar, CONTENT_FOUND, "-12");
    expect_key(SORT_CONTENT_STRING, "a", &tar, CONTENT_FOUND, "-12");
    expect_key(SORT_CONTENT_INT, "b", &tar, CONTENT_MISSING, "");
    buf_clear(&tar);
    fixture_header(&tar, "a.cls", '2', 0, "7"); /* a link is no contents */
    expect_key(SORT_CONTENT_INT, "a", &tar, CONTENT_MISSING, "");
    buf_clear(&tar);
    fixture_file(&tar, "a.cls", "");
    expect_key(SORT_CONTENT_INT, "a", &tar, CONTENT_MALFORMED, "");
    expect_key(SORT_CONTENT_STRING, "a", &tar, CONTENT_FOUND, "");
    buf_done(&tar);
}

/* Headers may say of a time what they like: nobody asks for it here. */
static void test_a_time_that_is_no_number(void **state)
{
    (void)state;
    static const char *const times[] = {"1e-05", "soon", "99999999999999999999", "-", "1.5"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct buf tar = BUF_INIT, pax = BUF_INIT;
        fixture_pax_record(&pax, "mtime", times[i]);
        fixture_pax(&tar, 'x', &pax);
        fixture_file(&tar, "a.cls", "7");
        expect_key(SORT_CONTENT_INT, "a", &tar, CONTENT_FOUND, "7");
        buf_done(&tar);
        buf_done(&pax);
    }
}

static void test_long_texts(void **state)
{
    (void)state;
    _cleanup_free_ char *text = xcalloc(1, 4 * SORT_CONTENT_MAX + 1);
    for (size_t len = SORT_CONTENT_MAX - 1; len <= 4 * SORT_CONTENT_MAX; len += SORT_CONTENT_MAX) {
        struct buf tar = BUF_INIT;
        memset(text, 'x', len);
        fixture_file(&tar, "a.cls", text);
        expect_key(SORT_CONTENT_STRING, "a", &tar,
                   len <= SORT_CONTENT_MAX ? CONTENT_FOUND : CONTENT_MALFORMED, text);
        buf_done(&tar);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_a_time_that_is_no_number),
        cmocka_unit_test(test_long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
