/* Any head: credentials that are complete, or an error with words; and no signature that holds for
 * a key that nobody has. */
#include "s3/verify.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "s3/testing/request_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_credential(const struct s3_request *r, const struct s3_query *q,
                             const struct s3_credential *c, struct arena *a)
{
    static const unsigned char key[AUTH_MAC_BYTES] = {1};
    struct s3_failure why = {S3_OK, ""};
    assert(*c->access_key != '\0' && strlen(c->day) == 8 && strncmp(c->time, c->day, 8) == 0);
    assert(c->expires_s <= S3_EXPIRES_MAX_S);
    assert(s3_verify_signature(r, q, c, key, a, &why) != S3_OK && why.message[0] != '\0');
    enum s3_error e = s3_verify_scope(c, "us-east-1", 1369353600, &why);
    assert(e != S3_OK || strcmp(c->region, "us-east-1") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ struct arena *a = arena_new(4096);
    const struct s3_request r = request_text(a, (const char *)data, size);
    struct s3_query q;
    struct s3_credential c;
    struct s3_failure why = {S3_OK, ""};
    if (s3_query_parse(r.query, a, &q, &why) != S3_OK)
        return 0;
    enum s3_error e = s3_verify_read(&r, &q, a, &c, &why);
    assert(e == why.error && (e == S3_OK) == (why.message[0] == '\0'));
    if (e == S3_OK && c.signing != S3_SIGNED_NOT)
        check_credential(&r, &q, &c, a);
    return 0;
}
