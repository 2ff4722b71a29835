#include "vdisc/reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/rng.h"

static const struct {
    const char *image, *bucket, *key, *text;
} rows[] = {
    {"n.vdsc", "b", "a.jpg", "a.jpg"},
    {"n.vdsc", "b", "raw/a.jpg", "raw/a.jpg"},
    {"sets/n.vdsc", "b", "raw/a.jpg", "../raw/a.jpg"},
    {"sets/n.vdsc", "b", "sets/a", "a"},
    {"x/y/n.vdsc", "b", "x/z", "../z"},
    {"n.vdsc", "o", "a b", "/v1/objects/o/a%20b"},
    {"n.vdsc", "b", "..", "%2E%2E"},
    {"n.vdsc", "b", "a/./b", "a/%2E/b"},
    {"n.vdsc", "b", "a:b?c#d%e", "a%3Ab%3Fc%23d%25e"},
    {"n.vdsc", "b", "/a", "/v1/objects/b//a"},
    {"n.vdsc", "b", "a//b/", "a//b/"},
    {"x/n.vdsc", "b", "x/", "/v1/objects/b/x/"},
    {"x//n.vdsc", "b", "x/a", "../a"},
    {"../n.vdsc", "b", "a", "../a"},
};

static void test_references_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct reference to = {.bucket = (char *)rows[i].bucket, .key = (char *)rows[i].key};
        _cleanup_buf_ struct buf text = BUF_INIT;
        struct reference back;
        struct error err = ERROR_INIT;
        reference_put(&text, "b", rows[i].image, &to);
        assert_string_equal(text.data, rows[i].text);
        if (reference_resolve("b", rows[i].image, text.data, &back, &err) != 0)
            fail_msg("%s: %s", text.data, err.message);
        assert_string_equal(back.bucket, rows[i].bucket);
        assert_string_equal(back.key, rows[i].key);
        reference_done(&back);
    }
}

static void test_any_names(void **state)
{
    (void)state;
    static const char letters[] = "a./:?%x";
    struct rng r;
    rng_seed(&r, 1);
    for (int i = 0; i < 20000; i++) {
        char names[2][16] = {"", ""};
        for (int n = 0; n < 2; n++) {
            size_t len = rng_below(&r, 12) + 1;
            for (size_t k = 0; k < len; k++)
                names[n][k] = letters[rng_below(&r, sizeof letters - 1)];
        }
        const struct reference to = {.bucket = (char *)(i % 2 != 0 ? "b" : "o"), .key = names[1]};
        _cleanup_buf_ struct buf text = BUF_INIT;
        struct reference back;
        struct error err = ERROR_INIT;
        reference_put(&text, "b", names[0], &to);
        if (reference_resolve("b", names[0], text.data, &back, &err) != 0)
            fail_msg("'%s' of '%s' in '%s': %s", text.data, names[1], names[0], err.message);
        if (strcmp(back.key, names[1]) != 0)
            fail_msg("'%s' of '%s' in '%s' is '%s'", text.data, names[1], names[0], back.key);
        assert_string_equal(back.bucket, to.bucket);
        reference_done(&back);
    }
}

static void test_what_leads_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
    } bad[] = {{"file:///etc/passwd", E_UNSUPPORTED},
               {"s3://b/k", E_UNSUPPORTED},
               {"//host/v1/objects/b/k", E_UNSUPPORTED},
               {"/v1/cluster", E_IMAGE_DAMAGED},
               {"../../../cluster", E_IMAGE_DAMAGED},
               {"a?x=y", E_IMAGE_DAMAGED},
               {"", E_IMAGE_DAMAGED},
               {"/v1/objects/b", E_IMAGE_DAMAGED},
               {"/v1/objects//k", E_IMAGE_DAMAGED}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct reference to;
        struct error err = ERROR_INIT;
        assert_int_equal(reference_resolve("b", "n.vdsc", bad[i].text, &to, &err), bad[i].code);
    }
}

static void test_addresses_of_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bucket, *key, *host;
    } good[] = {{"dfc://b/a b%20", "b", "a b%20", NULL},
                {"s3://b/x/y", "b", "x/y", NULL},
                {"http://h:8080/v1/objects/b/a%20b", "b", "a b", "h:8080"},
                {"HTTPS://h/v1/objects/b/x/../y", "b", "y", "h"}};
    static const char *const bad[] = {"",
                                      "a",
                                      "dfc://",
                                      "dfc://b",
                                      "dfc://b/",
                                      "dfc:///k",
                                      "gs://b/k",
                                      "http://h/b/k",
                                      "http://h/v1/objects/b/k?x",
                                      "http://u@h/v1/objects/b/k"};
    struct reference to;
    struct error err = ERROR_INIT;
    char *host = NULL;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(reference_parse(good[i].text, &to, &host, &err), 0);
        assert_string_equal(to.bucket, good[i].bucket);
        assert_string_equal(to.key, good[i].key);
        assert_true((host == NULL) == (good[i].host == NULL));
        if (host != NULL)
            assert_string_equal(host, good[i].host);
        free(host);
        reference_done(&to);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(reference_parse(bad[i], &to, &host, &err), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references_and_back),
        cmocka_unit_test(test_any_names),
        cmocka_unit_test(test_what_leads_elsewhere),
        cmocka_unit_test(test_addresses_of_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
