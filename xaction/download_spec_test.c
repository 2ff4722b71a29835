/* What a download may be asked for. */
#include "xaction/download_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"

static int parse(const char *text, struct download_spec **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    *err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &doc, err), 0);
    return download_spec_parse(doc, out, err);
}

static struct download_spec *accept(const char *text)
{
    struct download_spec *s = NULL;
    struct error err;
    if (parse(text, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static void refuse(const char *text, int code, const char *words)
{
    struct download_spec *s = NULL;
    struct error err;
    assert_int_equal(parse(text, &s, &err), code);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
    assert_null(s);
}

static void is_item(const struct download_spec *s, uint64_t i, const char *url, const char *name)
{
    _cleanup_(buf_done)
    struct buf u = BUF_INIT;
    _cleanup_(buf_done)
    struct buf n = BUF_INIT;
    assert_int_equal(download_spec_item(s, i, &u, &n, NULL), 0);
    assert_string_equal(buf_str(&u), url);
    assert_string_equal(buf_str(&n), name);
}

static void test_a_list(void **state)
{
    (void)state;
    struct download_spec *s =
        accept("{\"list\": [\"https://h/d/a%20b.tar?sig=x/y\", {\"url\": \"http://h:1/\", "
               "\"name\": \"n\"}], \"prepend\": \"set/\", \"parallel\": 3, \"rate\": \"1MiB\"}");
    assert_int_equal(download_spec_count(s), 2);
    is_item(s, 0, "https://h/d/a%20b.tar?sig=x/y", "set/a b.tar");
    is_item(s, 1, "http://h:1/", "set/n");
    assert_int_equal(s->parallel, 3);
    assert_int_equal(s->rate_bytes_s, 1 << 20);
    download_spec_free(s);
}

static void test_a_template(void **state)
{
    (void)state;
    struct download_spec *s = accept("{\"template\": \"http://h/d/s{0..1}-{08..11}.tar?x=/\"}");
    assert_int_equal(download_spec_count(s), 8);
    is_item(s, 6, "http://h/d/s1-10.tar?x=/", "s1-10.tar");
    download_spec_free(s);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("{}", E_SPEC, "one of");
    refuse("{\"list\": [], \"template\": \"http://h/{0..1}\"}", E_SPEC, "one of");
    refuse("{\"list\": [7]}", E_JSON, "value.list[0]");
    refuse("{\"list\": [\"ftp://h/a\"]}", E_SPEC, "http://");
    refuse("{\"list\": [\"http:///a\"]}", E_SPEC, "no host");
    refuse("{\"list\": [\"http://me:secret@h/a\"]}", E_SPEC, "user");
    refuse("{\"list\": [\"http://h/a b\"]}", E_SPEC, "percent");
    refuse("{\"list\": [\"http://h\"]}", E_NAME, "name");
    refuse("{\"list\": [\"http://h/d/\"]}", E_NAME, "name");
    refuse("{\"list\": [\"http://h/%00\"]}", E_NAME, "name");
    refuse("{\"list\": [{\"url\": \"http://h/a\", \"nmae\": \"x\"}]}", E_JSON, "nmae");
    refuse("{\"list\": [\"http://h/1/a\", \"http://h/2/a\"]}", E_SPEC, "twice");
    refuse("{\"template\": \"http://h/a\"}", E_SPEC, "range");
    refuse("{\"template\": \"http://h/{0..1}/a\"}", E_SPEC, "one name");
    refuse("{\"template\": \"http://h/a?x={0..1}\"}", E_SPEC, "one name");
    refuse("{\"template\": \"ftp://h/a{0..1}\"}", E_SPEC, "http://");
    refuse("{\"template\": \"http://h/{0..99999999}\"}", E_SPEC, "more than");
    refuse("{\"template\": \"http://h/{0..1}\", \"to\": \"x\"}", E_JSON, "to");
}

static void test_the_source_has_no_query(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    download_source("https://h/a?sig=secret#f", &out);
    assert_string_equal(buf_str(&out), "https://h/a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list),
        cmocka_unit_test(test_a_template),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_source_has_no_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
