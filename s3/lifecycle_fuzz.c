/* Any body: rules that are written are read again the same, and decide alike. */
#include "s3/lifecycle.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct s3_tags none = {.count = 0};
    static const struct s3_lifecycle_object object = {.key = "logs/a", .size = 1000, .tags = &none};
    static const struct s3_lifecycle_now now = {.now_s = 1000000000, .day_s = 86400};
    _cleanup_arena_ struct arena *a = arena_new(4096);
    _cleanup_buf_ struct buf once = BUF_INIT, twice = BUF_INIT;
    struct s3_lifecycle l, again;
    struct s3_lifecycle_expiration end;
    if (s3_lifecycle_parse((const char *)data, size, a, &l, NULL) != S3_OK)
        return 0;
    assert(l.count > 0 && l.count <= S3_LIFECYCLE_RULES_MAX);
    s3_lifecycle_document(&l, &once);
    assert(s3_lifecycle_parse(once.data, once.len, a, &again, NULL) == S3_OK);
    s3_lifecycle_document(&again, &twice);
    assert(strcmp(buf_str(&once), buf_str(&twice)) == 0);
    assert(s3_lifecycle_object(&l, &object, &now, NULL) ==
           s3_lifecycle_object(&again, &object, &now, NULL));
    if (s3_lifecycle_expiration(&l, &object, now.day_s, &end))
        assert((end.at_s <= now.now_s) ==
               (s3_lifecycle_object(&l, &object, &now, NULL) == S3_LIFECYCLE_EXPIRE));
    assert(s3_lifecycle_aborts(&l, "logs/a", 0, &now) ==
           s3_lifecycle_aborts(&again, "logs/a", 0, &now));
    return 0;
}
