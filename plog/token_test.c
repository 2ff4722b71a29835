#include "plog/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct plog_token sample = {.id = "0123456789abcdef0123456789abcdef",
                                         .session = UINT64_MAX - 1,
                                         .epoch = UINT32_MAX - 2,
                                         .bucket = "runs",
                                         .object = "a/\"step\" 100\n\xc3\xa9"};

static bool same(const struct plog_token *a, const struct plog_token *b)
{
    return strcmp(a->id, b->id) == 0 && a->session == b->session && a->epoch == b->epoch &&
           strcmp(a->bucket, b->bucket) == 0 && strcmp(a->object, b->object) == 0;
}

static void test_round_trip(void **state)
{
    (void)state;
    char text[PLOG_TOKEN_MAX];
    struct plog_token t;
    plog_token_print(&sample, text);
    assert_int_equal(plog_token_parse(text, &t, NULL), 0);
    assert_true(same(&t, &sample));
    assert_int_equal(strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".-_"),
                     strlen(text));
}

static void test_longest_names(void **state)
{
    (void)state;
    char text[PLOG_TOKEN_MAX];
    struct plog_token t, longest = sample;
    memset(longest.bucket, 'b', PLOG_TOKEN_BUCKET);
    memset(longest.object, 'o', PLOG_TOKEN_OBJECT);
    plog_token_print(&longest, text);
    assert_true(strlen(text) < PLOG_TOKEN_MAX);
    assert_int_equal(plog_token_parse(text, &t, NULL), 0);
    assert_true(same(&t, &longest));
}

/* Any other character at any place, a part of the text, and more than it. */
static void test_damage(void **state)
{
    (void)state;
    char text[PLOG_TOKEN_MAX + 8];
    struct plog_token t;
    plog_token_print(&sample, text);
    const size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        const char whole = text[i], others[] = {whole == 'A' ? 'B' : 'A', '=', '\0'};
        for (size_t k = 0; k < sizeof others; k++) {
            text[i] = others[k];
            assert_int_equal(plog_token_parse(text, &t, NULL), E_INVALID);
        }
        text[i] = whole;
    }
    snprintf(text + len, sizeof text - len, "AAAA");
    assert_int_equal(plog_token_parse(text, &t, NULL), E_INVALID);
}

static void test_other_texts(void **state)
{
    (void)state;
    struct plog_token t;
    struct error err = ERROR_INIT;
    char text[3 * PLOG_TOKEN_MAX];
    assert_int_equal(plog_token_parse("", &t, NULL), E_INVALID);
    assert_int_equal(plog_token_parse("dfcplog1", &t, NULL), E_INVALID);
    assert_int_equal(plog_token_parse("dfcplog1.", &t, NULL), E_INVALID);
    assert_int_equal(plog_token_parse("dfcplog2.AAAA", &t, NULL), E_UNSUPPORTED);
    memset(text, 'A', sizeof text - 1);
    memcpy(text, "dfcplog1.", 9);
    text[sizeof text - 1] = '\0';
    assert_int_equal(plog_token_parse(text, &t, &err), E_INVALID);
    assert_non_null(strstr(err.message, "dfc_plog_share()"));
}

/* Whole and with the right sum, but without a name, or with NULs in one. */
static void test_names(void **state)
{
    (void)state;
    char text[PLOG_TOKEN_MAX];
    struct plog_token t, other = sample;
    other.object[0] = '\0';
    plog_token_print(&other, text);
    assert_int_equal(plog_token_parse(text, &t, NULL), E_INVALID);
    other = sample;
    other.bucket[0] = '\0';
    plog_token_print(&other, text);
    assert_int_equal(plog_token_parse(text, &t, NULL), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_longest_names),
        cmocka_unit_test(test_damage),     cmocka_unit_test(test_other_texts),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
