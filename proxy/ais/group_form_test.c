/* What the SDK sends becomes a native job's value, or is refused. */
#include "proxy/ais/group_form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "proxy/ais/provider.h"

static int copy_to_other(json_t *value, json_t **out, struct error *err)
{
    return group_form_copy_bucket(value, "other", out, err);
}

typedef int form_fn(json_t *value, json_t **out, struct error *err);

/* `wanted`: the native value, or how the error's message begins. */
static void expect(form_fn *form, const char *text, int code, const char *wanted)
{
    _cleanup_json_ json_t *value = NULL;
    _cleanup_json_ json_t *out = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &value, &err), 0);
    int got = form(value, &out, &err);
    if (got != code)
        fail_msg("%s: %d, not %d: %s", text, got, code, err.message);
    _cleanup_free_ char *native = out != NULL ? json_text(out) : NULL;
    if (code == 0)
        assert_string_equal(native, wanted);
    else if (strncmp(err.message, wanted, strlen(wanted)) != 0)
        fail_msg("%s: '%s' begins not '%s'", text, err.message, wanted);
}

#define EMPTY "{\"allow_empty\":true,"

static void test_which_objects(void **state)
{
    (void)state;
    form_fn *f = group_form_delete;
    expect(f, "{\"objnames\":[\"a\",\"b\"]}", 0, EMPTY "\"list\":[\"a\",\"b\"]}");
    expect(f, "{\"template\":\"a{0..9}\"}", 0, EMPTY "\"template\":\"a{0..9}\"}");
    expect(f, "{\"template\":\"s-@100\"}", 0, EMPTY "\"template\":\"s-@100\"}");
    expect(f, "{\"template\":\"dir/\"}", 0, EMPTY "\"prefix\":\"dir/\"}");
    expect(f, "{\"template\":\"dir/*\"}", 0, EMPTY "\"prefix\":\"dir/\"}");
    expect(f, "{\"template\":\"\"}", 0, EMPTY "\"prefix\":\"\"}");
    expect(f, "{\"template\":\"a\",\"coer\":true}", 0, EMPTY "\"prefix\":\"a\"}");
    expect(f, "{}", E_SPEC, "field 'value' must have one of");
    expect(f, "{\"objnames\":null}", E_SPEC, "field 'value' must have one of");
    expect(f, "{\"objnames\":[\"a\"],\"template\":\"b\"}", E_SPEC, "field 'value' must");
    expect(f, "{\"objnames\":[]}", E_SPEC, "field 'value.objnames' names no object");
    expect(f, "{\"objnames\":\"a\"}", E_JSON, "field 'value.objnames'");
    expect(f, "{\"template\":\"a{9..0}\"}", E_SPEC, "field 'value.template'");
    expect(f, "{\"template\":\"a\",\"of_later\":1}", E_JSON, "");
}

static void test_prefetch(void **state)
{
    (void)state;
    form_fn *f = group_form_prefetch;
    expect(f, "{\"template\":\"a\",\"coer\":false,\"latest-ver\":false,\"num-workers\":0}", 0,
           EMPTY "\"prefix\":\"a\"}");
    expect(f, "{\"template\":\"a\",\"num-workers\":-1}", 0,
           EMPTY "\"prefix\":\"a\",\"parallel\":1}");
    expect(f, "{\"template\":\"a\",\"num-workers\":5,\"blob-threshold\":1}", 0,
           EMPTY "\"prefix\":\"a\",\"parallel\":5}");
    expect(f, "{\"template\":\"a\",\"num-workers\":9223372036854775807}", 0,
           EMPTY "\"prefix\":\"a\",\"parallel\":256}");
    expect(f, "{\"template\":\"a\",\"num-workers\":\"x\"}", E_JSON, "field 'value.num-workers'");
    expect(f, "{\"template\":\"a\",\"latest-ver\":true}", E_UNSUPPORTED,
           "field 'value.latest-ver'");
}

#define TO ",\"tobck\":{\"name\":\"c\",\"provider\":\"ais\",\"namespace\":null}"

static void test_copies(void **state)
{
    (void)state;
    form_fn *f = group_form_copy;
    expect(f,
           "{\"template\":\"a\",\"prefix\":\"\",\"prepend\":\"p/\",\"dry_run\":false,"
           "\"force\":true,\"latest-ver\":false,\"synchronize\":false,\"coer\":true" TO "}",
           0, EMPTY "\"prefix\":\"a\",\"to\":\"c\",\"prepend\":\"p/\"}");
    expect(f, "{\"template\":\"a\"}", E_JSON, "field 'value.tobck' is missing");
    expect(f, "{\"template\":\"a\",\"tobck\":{}}", E_JSON, "field 'value.tobck.name'");
    expect(f, "{\"template\":\"a\",\"tobck\":{\"name\":\"c\",\"namespace\":{\"name\":\"n\"}}}",
           E_UNSUPPORTED, "field 'value.tobck.namespace'");
    expect(f, "{\"template\":\"a\",\"tobck\":{\"name\":\"c\",\"provider\":\"aws\"}}", E_UNSUPPORTED,
           "field 'value.tobck.provider'");
    expect(f, "{\"template\":\"a\",\"prefix\":\"b\"" TO "}", E_UNSUPPORTED, "field 'value.prefix'");
    expect(f, "{\"template\":\"a\",\"dry_run\":true" TO "}", E_UNSUPPORTED,
           "field 'value.dry_run'");
    expect(f, "{\"template\":\"a\",\"synchronize\":true" TO "}", E_UNSUPPORTED,
           "field 'value.sync");
    expect(f, "{\"template\":\"a\",\"ext\":{\"jpg\":\"txt\"}" TO "}", E_UNSUPPORTED,
           "field 'value.ext'");
    f = copy_to_other;
    expect(f, "{}", 0, EMPTY "\"to\":\"other\"}");
    expect(f, "{\"prefix\":\"a\",\"prepend\":\"b\",\"num-workers\":3}", 0,
           EMPTY "\"prefix\":\"a\",\"prepend\":\"b\",\"to\":\"other\"}");
    expect(f, "{\"prefix\":1}", E_JSON, "field 'value.prefix'");
    expect(f, "{\"objnames\":[\"a\"]}", E_JSON, "");
}

static int archive_of_b(json_t *value, json_t **out, struct error *err)
{
    return group_form_archive(value, "b", out, err);
}

static void test_archives(void **state)
{
    (void)state;
#define INTO "\"objnames\":[\"a\"],\"tobck\":{\"name\":\"t\"}"
#define NATIVE EMPTY "\"list\":[\"a\"],\"to\":\"t\","
    form_fn *f = archive_of_b;
    expect(f, "{" INTO ",\"archname\":\"x.tar\",\"isbn\":false,\"aate\":false}", 0,
           NATIVE "\"archive\":\"x.tar\"}");
    expect(f, "{" INTO ",\"archname\":\"x\",\"isbn\":true,\"coer\":true,\"mime\":\".tgz\"}", 0,
           NATIVE "\"prepend\":\"b/\",\"archive\":\"x\",\"format\":\".tgz\"}");
    expect(f, "{" INTO ",\"archname\":\"x\",\"mime\":\"application/zip\"}", 0,
           NATIVE "\"archive\":\"x\",\"format\":\".zip\"}");
    expect(f, "{" INTO ",\"archname\":\"x\",\"aate\":true}", E_UNSUPPORTED, "field 'value.aate'");
    expect(f, "{" INTO "}", E_JSON, "field 'value.archname'");
    expect(f, "{\"objnames\":[\"a\"],\"archname\":\"x\"}", E_JSON, "field 'value.tobck'");
    expect(f, "{" INTO ",\"archname\":\"x\",\"isbn\":1}", E_JSON, "field 'value.isbn'");
}

static void test_providers(void **state)
{
    (void)state;
    static const char *const providers[] = {"", "ais", "aws", "gcp", "ht", "azure"};
    static const struct {
        const char *backend, *fits; /* + or - for each provider */
    } rows[] = {
        {NULL, "++----"},
        {"s3://b", "+++---"},
        {"gs://b", "++-+--"},
        {"https://h", "++--+-"},
        {"dfc://b?endpoint=x", "++----"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct bucket b = {.props.backend = (char *)rows[i].backend};
        for (size_t p = 0; p < sizeof providers / sizeof *providers; p++)
            assert_int_equal(provider_fits(&b, providers[p]), rows[i].fits[p] == '+');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_objects), cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_copies),        cmocka_unit_test(test_archives),
        cmocka_unit_test(test_providers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
