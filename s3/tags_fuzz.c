/* Any body and any header: tags that are written are read again the same. */
#include "s3/tags.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_and_read(const struct s3_tags *t, struct arena *a)
{
    _cleanup_buf_ struct buf once = BUF_INIT, twice = BUF_INIT;
    struct s3_tags again;
    s3_tags_print(t, &once);
    assert(s3_tags_parse_header(buf_str(&once), S3_OBJECT_TAGS_MAX, a, &again, NULL) == S3_OK);
    s3_tags_print(&again, &twice);
    assert(again.count == t->count && strcmp(buf_str(&once), buf_str(&twice)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ struct arena *a = arena_new(4096);
    _cleanup_buf_ struct buf once = BUF_INIT, twice = BUF_INIT;
    struct s3_tags t, again;
    const char *text = arena_strndup(a, (const char *)data, size);
    if (s3_tags_parse_header(text, S3_OBJECT_TAGS_MAX, a, &t, NULL) == S3_OK)
        print_and_read(&t, a);
    assert(t.count <= S3_OBJECT_TAGS_MAX);
    if (s3_tags_parse((const char *)data, size, S3_TAGS_MAX, a, &t, NULL) != S3_OK)
        return 0;
    assert(t.count <= S3_TAGS_MAX);
    s3_tags_document(&t, &once);
    assert(s3_tags_parse(once.data, once.len, S3_TAGS_MAX, a, &again, NULL) == S3_OK);
    s3_tags_document(&again, &twice);
    assert(strcmp(buf_str(&once), buf_str(&twice)) == 0);
    return 0;
}
