/* The document `access` from bytes: it is refused with a sentence, or survives its own JSON form,
 * finds all its users by name, id and access key, and its public view has no secret. */
#include "cluster/access/identity.h"

#include <assert.h>
#include <string.h>

#include "cluster/base/document.h"
#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lookups(const struct access *a)
{
    for (size_t i = 0; i < a->user_count; i++) {
        const struct user *u = &a->users[i];
        assert(access_user(a, u->name) == u && access_user_by_id(a, u->id) == u);
        for (size_t k = 0; k < u->key_count; k++)
            assert(access_key_owner(a, u->keys[k].access)->user == u);
        access_is_admin(a, u);
        access_rate_of(a, u);
    }
}

static void check_round_trip(const struct access *a)
{
    struct access again = {0};
    _cleanup_json_ json_t *doc = access_to_json(a, ACCESS_WHOLE);
    int r = access_from_json(doc, &again, NULL);
    assert(r == 0);
    (void)r;
    _cleanup_json_ json_t *doc_again = access_to_json(&again, ACCESS_WHOLE);
    assert(json_equal(doc, doc_again));
    document_unref(again.memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *doc = NULL;
    struct access a = {0};
    struct error err = ERROR_INIT;
    if (json_parse((const char *)data, size, &doc, NULL) != 0)
        return 0;
    if (access_from_json(doc, &a, &err) != 0 || access_check(&a, &err) != 0) {
        assert(err.code != 0 && err.message[0] != '\0');
    } else {
        check_lookups(&a);
        check_round_trip(&a);
    }
    document_unref(a.memory);
    return 0;
}
