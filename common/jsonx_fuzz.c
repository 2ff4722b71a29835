/* Any bytes either are refused with E_JSON or give a value that every getter takes or refuses,
 * and whose text parses again to the same. */
#include "common/jsonx.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rc(int rc, const struct error *err)
{
    assert(rc == 0 || (rc == E_JSON && err->code == E_JSON && err->message[0] != '\0'));
}

static void get_everything(json_t *obj, const char *field)
{
    struct error err = ERROR_INIT;
    const char *s = NULL;
    uint64_t u = 0;
    int64_t i = 0;
    bool b = false;
    json_t *borrowed = NULL;
    check_rc(json_get_str(obj, "p", field, &s, &err), &err);
    check_rc(json_get_u64(obj, "", field, &u, &err), &err);
    check_rc(json_get_i64(obj, "p.q", field, &i, &err), &err);
    check_rc(json_get_bool(obj, "p", field, &b, &err), &err);
    check_rc(json_get_size(obj, "p", field, &u, &err), &err);
    check_rc(json_get_duration_ms(obj, "p", field, &u, &err), &err);
    check_rc(json_get_object(obj, "p", field, &borrowed, &err), &err);
    check_rc(json_get_array(obj, "p", field, &borrowed, &err), &err);
    check_rc(json_need_str(obj, "p", field, &s, &err), &err);
    check_rc(json_need_u64(obj, "p", field, &u, &err), &err);
}

static void check_text(json_t *value)
{
    _cleanup_json_ json_t *again = NULL;
    _cleanup_free_ char *text = json_text(value);
    assert(text != NULL);
    int rc = json_parse(text, strlen(text), &again, NULL);
    assert(rc == 0 && json_equal(value, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const known[] = {"a", "b", NULL};
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *value = NULL;
    int rc = json_parse((const char *)data, size, &value, &err);
    check_rc(rc, &err);
    if (rc != 0)
        return 0;
    const char *field;
    json_t *member;
    json_object_foreach(value, field, member) get_everything(value, field);
    get_everything(value, "missing");
    check_rc(json_only_fields(value, "p", known, &err), &err);
    check_text(value);
    return 0;
}
