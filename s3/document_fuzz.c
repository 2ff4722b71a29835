/* Any body as each document of a request: what is taken is within its limits. */
#include "s3/document.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "s3/acl.h"
#include "s3/uploads/complete_body.h"
#include "s3/delete_body.h"
#include "s3/location.h"
#include "s3/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_delete(const char *body, size_t len, struct arena *a)
{
    struct s3_delete d;
    if (s3_delete_parse(body, len, a, &d, NULL) != S3_OK)
        return;
    assert(d.count > 0 && d.count <= S3_DELETE_MAX);
    for (size_t i = 0; i < d.count; i++)
        assert(*d.keys[i].key != '\0' && strlen(d.keys[i].key) <= S3_KEY_MAX);
}

static void check_complete(const char *body, size_t len, struct arena *a)
{
    struct s3_complete c;
    if (s3_complete_parse(body, len, a, &c, NULL) != S3_OK)
        return;
    assert(c.count > 0 && c.parts[c.count - 1].number <= S3_PARTS_MAX);
    for (size_t i = 0; i < c.count; i++)
        assert(c.parts[i].number > (i > 0 ? c.parts[i - 1].number : 0) && c.parts[i].etag != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ struct arena *a = arena_new(4096);
    struct s3_failure why = {S3_OK, ""};
    const char *body = (const char *)data;
    check_delete(body, size, a);
    check_complete(body, size, a);
    enum s3_error e = s3_location_check(body, size, "us-east-1", &why);
    assert(e == why.error && (e == S3_OK) == (why.message[0] == '\0'));
    (void)s3_acl_check(body, size, "o", NULL);
    return 0;
}
