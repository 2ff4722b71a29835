#include "sort/spec/keymap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

#define MEMORY (64 * 1024 * 1024)

static struct sort_spec *spec_of(const char *more)
{
    _cleanup_free_ char *text = xprintf(
        "{\"input_bck\": \"b\", \"input_format\": {\"prefix\": \"\"}, \"output_shard_size\": 1000,"
        " \"ekm_file\": \"dfc://b/map\"%s}",
        more);
    _cleanup_json_ json_t *doc = NULL;
    struct sort_spec *s = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    if (sort_spec_parse(doc, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static unsigned warnings;

static void warn(void *ctx, const char *text)
{
    (void)ctx;
    assert_non_null(strstr(text, "of the external key map: "));
    warnings++;
}

/* In pieces of `piece` bytes. */
static int fill(struct sort_spec *spec, const char *text, size_t piece, uint64_t memory,
                struct keymap **out, struct error *err)
{
    const struct keymap_config config = {.spec = spec, .memory_bytes = memory, .warn = warn};
    _cleanup_(keymap_freep)
    struct keymap *m = keymap_new(&config);
    size_t len = strlen(text);
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < len; at += piece)
        rc = keymap_feed(m, text + at, len - at < piece ? len - at : piece, err);
    if (rc == 0)
        rc = keymap_finish(m, err);
    if (rc == 0)
        *out = steal(m);
    return rc;
}

static void assert_goes(const struct keymap *m, const char *name, const char *format)
{
    struct keymap_search *s = keymap_search_new(m);
    uint32_t number = 0;
    int rc = keymap_find(s, name, strlen(name), &number, NULL);
    assert_int_equal(rc, format != NULL);
    if (format != NULL)
        assert_string_equal(template_text(keymap_template(m, number)), format);
    keymap_search_free(s);
}

static const char lines[] = "\n  \ncat_0.txt\tcats-%d\r\ncat_1\tcats-%d.tar\n\n"
                            "deep.er/dog.1.jpg\tdogs-%d.tar\n^bird_[0-9]+$\tbirds-{0..9}";
static const char json[] = " \n {\"cats-%d\": [\"cat_0.txt\", \"ca\\u0074_1\"],\"dogs-%d.tar\":"
                           "[ \"deep.er\\/dog.1.jpg\" ] , \"birds-{0..9}\": [\"^bird_[0-9]+$\"],"
                           "\"none-%d\": []}\n";

static void check_example(const char *text, size_t piece)
{
    struct sort_spec *spec = spec_of("");
    struct error err = ERROR_INIT;
    struct keymap *m = NULL;
    if (fill(spec, text, piece, MEMORY, &m, &err) != 0)
        fail_msg("pieces of %zu: %s", piece, err.message);
    assert_int_equal(keymap_keys(m), 4);
    assert_int_equal(keymap_formats(m), 3);
    assert_goes(m, "cat_0", "cats-%d.tar");
    assert_goes(m, "cat_1", "cats-%d.tar");
    assert_goes(m, "cat_0.txt", NULL);
    assert_goes(m, "deep.er/dog", "dogs-%d.tar");
    assert_goes(m, "bird_12", "birds-{0..9}.tar");
    assert_goes(m, "bird_", NULL);
    keymap_free(m);
    sort_spec_free(spec);
}

static void test_both_forms_in_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        check_example(lines, piece);
        check_example(json, piece);
    }
    check_example(lines, sizeof lines);
    check_example(json, sizeof json);
}

static void test_texts_of_json(void **state)
{
    (void)state;
    struct sort_spec *spec = spec_of(", \"ekm_keys\": \"exact\"");
    struct keymap *m = NULL;
    assert_int_equal(
        fill(spec,
             "{\"\\u00e9-%d\": [\"\\u20ac\\ud83d\\ude00\", \"\\b\\f\\n\\r\\t\\\"\\\\\","
             " \"a*(b)\"]}",
             3, MEMORY, &m, NULL),
        0);
    assert_goes(m, "\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9-%d.tar");
    assert_goes(m, "\b\f\n\r\t\"\\", "\xc3\xa9-%d.tar");
    assert_goes(m, "a*(b)", "\xc3\xa9-%d.tar");
    keymap_free(m);
    sort_spec_free(spec);
}

static void assert_refused(const char *more, const char *text, const char *words)
{
    struct sort_spec *spec = spec_of(more);
    struct error err = ERROR_INIT;
    struct keymap *m = NULL;
    int rc = fill(spec, text, 5, MEMORY, &m, &err);
    if (rc != E_SPEC || strstr(err.message, words) == NULL)
        fail_msg("'%s' came to %d: %s", text, rc, err.message);
    sort_spec_free(spec);
}

static void test_what_is_malformed(void **state)
{
    (void)state;
    assert_refused("", "a\tx-%d\nb\n", "line 2 of the external key map: it does not have a key");
    assert_refused("", "a\tb\tc-%d", "line 1");
    assert_refused("", "\tx-%d", "the key is empty");
    assert_refused("", "a\t", "the format is empty");
    assert_refused("", "a\tx", "no range");
    assert_refused("", "a\tx-%d.zip", "does not end with '.tar'");
    assert_refused("", "a\tx-%d\na\ty-%d", "line 2 of the external key map: the key has another");
    assert_refused("", "a(\tx-%d", "byte 3 of the pattern");
    assert_refused(", \"ekm_keys\": \"regex\"", "a\\\tx-%d", "backslash");
    assert_refused(", \"key_rule\": \"first_dot\"", "a.b\tx-%d\na.c\ty-%d", "line 2");
    assert_refused("", "{", "ends early");
    assert_refused("", "{\"x-%d\": [\"a\"]", "ends early");
    assert_refused("", "{\"x-%d\": [\"a\"]}}", "byte 16 of the JSON");
    assert_refused("", "{\"x-%d\": \"a\"}", "not of the form");
    assert_refused("", "{\"x-%d\": [\"a\",]}", "not of the form");
    assert_refused("", "{\"x-%d\": [1]}", "not of the form");
    assert_refused("", "{\"x-%d\": [\"\\ud800x\"]}", "surrogate");
    assert_refused("", "{\"x-%d\": [\"\\udc00\"]}", "surrogate");
    assert_refused("", "{\"x-%d\": [\"\\ud83d\\n\"]}", "escape");
    assert_refused("", "{\"x-%d\": [\"\\x41\"]}", "escape");
    assert_refused("", "{\"x-%d\": [\"\\u00g0\"]}", "hex digits");
    assert_refused("", "{\"x-%d\": [\"\\u0000\"]}", "NUL");
    assert_refused("", "{\"x-%d\": [\"\xff\"]}", "UTF-8");
    assert_refused("", "{\"x-%d\": [\"a\nb\"]}", "control character");
}

static void test_what_is_malformed_may_be_passed_over(void **state)
{
    (void)state;
    static const char text[] = "a\tx-%d\nb\nc\ty\nd*(\tx-%d\na\ty-%d\ne\tx-%d";
    struct sort_spec *spec = spec_of(", \"config\": {\"ekm_malformed_line\": \"warn\"}");
    struct keymap *m = NULL;
    warnings = 0;
    assert_int_equal(fill(spec, text, 4, MEMORY, &m, NULL), 0);
    assert_int_equal(warnings, 4);
    assert_int_equal(keymap_keys(m), 2);
    assert_goes(m, "a", "x-%d.tar");
    assert_goes(m, "e", "x-%d.tar");
    keymap_free(m);
    sort_spec_free(spec);
}

static void test_patterns_must_agree(void **state)
{
    (void)state;
    struct sort_spec *spec = spec_of(", \"ekm_file_sep\": \" \"");
    struct keymap *m = NULL;
    assert_int_equal(fill(spec, "a+ x-%d\nb$ y-%d\nab z-%d", 100, MEMORY, &m, NULL), 0);
    struct keymap_search *s = keymap_search_new(m);
    struct error err = ERROR_INIT;
    uint32_t number;
    assert_int_equal(keymap_find(s, "aab", 3, &number, &err), E_SPEC);
    assert_non_null(strstr(err.message, "x-%d.tar"));
    assert_non_null(strstr(err.message, "y-%d.tar"));
    keymap_search_free(s);
    assert_goes(m, "ab", "z-%d.tar"); /* it stands there itself */
    assert_goes(m, "aa", "x-%d.tar");
    keymap_free(m);
    sort_spec_free(spec);
}

#define MANY 300000

static char *many_lines(void)
{
    struct buf text = BUF_INIT;
    for (unsigned i = 0; i < MANY; i++)
        buf_printf(&text, "train/n%08u/img_%08u\tclass-%u-%%06d.tar\n", i % 1000, i, i % 1000);
    return buf_steal(&text);
}

static void test_memory(void **state)
{
    (void)state;
    enum { NAME = sizeof "train/n00000000/img_00000000" - 1 };
    _cleanup_free_ char *text = many_lines();
    struct sort_spec *spec = spec_of("");
    struct keymap *m = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(fill(spec, text, 65536, MEMORY, &m, &err), 0);
    assert_int_equal(keymap_keys(m), MANY);
    uint64_t formats = 1000 * 1024;
    assert_true(keymap_bytes(m) - formats < (uint64_t)MANY * (NAME + 25));
    assert_goes(m, "train/n00000999/img_00299999", "class-999-%06d.tar");
    assert_goes(m, "train/n00000999/img_00299998", NULL);
    keymap_free(m);
    assert_int_equal(fill(spec, text, 65536, 8 * 1024 * 1024, &m, &err), E_NOMEM);
    assert_non_null(strstr(err.message, "sort_key_map_memory"));
    sort_spec_free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms_in_pieces),
        cmocka_unit_test(test_texts_of_json),
        cmocka_unit_test(test_what_is_malformed),
        cmocka_unit_test(test_what_is_malformed_may_be_passed_over),
        cmocka_unit_test(test_patterns_must_agree),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("keymap", tests, NULL, NULL);
}
