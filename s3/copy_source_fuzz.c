/* Any two lines as the headers of a copy: names within their limits, a range that has bytes. */
#include "s3/copy_source.h"

#include <assert.h>
#include <string.h>

#include "common/utf8.h"
#include "s3/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ struct arena *a = arena_new(1024);
    char *source = arena_strndup(a, (const char *)data, size), *range = strchr(source, '\n');
    struct s3_copy_source s;
    if (range != NULL)
        *range++ = '\0';
    const struct s3_field headers[] = {{"x-amz-copy-source", source},
                                       {"x-amz-copy-source-range", range}};
    const struct s3_request r = {.headers = headers, .header_count = range != NULL ? 2 : 1};
    if (s3_copy_source_read(&r, a, &s, NULL) != S3_OK)
        return 0;
    assert(*s.bucket != '\0' && strchr(s.bucket, '/') == NULL && *s.key != '\0');
    assert(strlen(s.key) <= S3_KEY_MAX && utf8_valid(s.key, strlen(s.key)));
    assert(s.has_range == (range != NULL) && s.first <= s.last);
    return 0;
}
