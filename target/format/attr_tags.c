#include "target/format/attr_tags.h"

#include "target/format/attr.h"

int attr_tags_normalize(const char *text, struct buf *out, struct error *err)
{
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_tags tags;
    struct s3_failure why;
    if (s3_tags_parse_header(text, S3_OBJECT_TAGS_MAX, a, &tags, &why) != S3_OK)
        return error_set(err, E_INVALID, "tags: %s", why.message);
    s3_tags_print(&tags, out);
    return 0;
}

void attr_tags_read(const struct attr *a, struct arena *arena, struct s3_tags *out)
{
    const char *text = attr_meta_find(a, ATTR_TAGS);
    if (text == NULL || s3_tags_parse_header(text, S3_OBJECT_TAGS_MAX, arena, out, NULL) != S3_OK)
        *out = (struct s3_tags){.count = 0};
}
