/* Any body: rules that are written are read again the same, and decide alike. */
#include "s3/cors.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ struct arena *a = arena_new(4096);
    _cleanup_buf_ struct buf once = BUF_INIT, twice = BUF_INIT;
    struct s3_cors c, again;
    if (s3_cors_parse((const char *)data, size, a, &c, NULL) != S3_OK)
        return 0;
    assert(c.count > 0 && c.count <= S3_CORS_RULES_MAX);
    s3_cors_document(&c, &once);
    assert(s3_cors_parse(once.data, once.len, a, &again, NULL) == S3_OK);
    s3_cors_document(&again, &twice);
    assert(strcmp(buf_str(&once), buf_str(&twice)) == 0);
    const struct s3_cors_rule *rule = s3_cors_match(&c, "http://a.example", "GET", "range");
    const struct s3_cors_rule *other = s3_cors_match(&again, "http://a.example", "GET", "range");
    assert(rule == NULL ? other == NULL : rule - c.rules == other - again.rules);
    return 0;
}
