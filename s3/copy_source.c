#include "s3/copy_source.h"

#include <string.h>

#include "common/parse.h"
#include "common/utf8.h"
#include "s3/op.h"

#define VERSION "?versionId="
#define BYTES "bytes="

static enum s3_error read_names(const char *text, size_t len, struct arena *arena,
                                struct s3_copy_source *out, struct s3_failure *why)
{
    char *name = arena_bytes(arena, len + 1);
    int64_t decoded = parse_url_unescape(text, len, name, NULL);
    char *bucket = name + (decoded > 0 && *name == '/'), *slash = NULL;
    if (decoded > 0 && utf8_valid(name, (size_t)decoded))
        slash = strchr(bucket, '/');
    if (slash == NULL || slash == bucket || slash[1] == '\0')
        return s3_fail(why, S3_INVALID_ARGUMENT, "x-amz-copy-source must be BUCKET/KEY, escaped");
    *slash = '\0';
    out->bucket = bucket;
    out->key = slash + 1;
    return strlen(out->key) > S3_KEY_MAX ? s3_fail(why, S3_KEY_TOO_LONG, NULL) : S3_OK;
}

/* "bytes=0-9": both ends must be there, unlike in a Range. */
static bool read_range(const char *text, struct s3_copy_source *out, struct arena *arena)
{
    if (strncmp(text, BYTES, strlen(BYTES)) != 0)
        return false;
    char *first = arena_strdup(arena, text + strlen(BYTES)), *dash = strchr(first, '-');
    if (dash == NULL)
        return false;
    *dash = '\0';
    out->has_range = true;
    return parse_u64(first, &out->first, NULL) == 0 && parse_u64(dash + 1, &out->last, NULL) == 0 &&
           out->first <= out->last;
}

enum s3_error s3_copy_source_read(const struct s3_request *r, struct arena *arena,
                                  struct s3_copy_source *out, struct s3_failure *why)
{
    const char *text = s3_header(r, "x-amz-copy-source");
    const char *range = s3_header(r, "x-amz-copy-source-range");
    *out = (struct s3_copy_source){.has_range = false};
    if (text == NULL)
        return s3_fail(why, S3_INVALID_ARGUMENT, "The header x-amz-copy-source is missing");
    const char *version = strstr(text, VERSION);
    if (version != NULL && strcmp(version + strlen(VERSION), "null") != 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "An object has one version, null");
    size_t len = version != NULL ? (size_t)(version - text) : strlen(text);
    enum s3_error e = read_names(text, len, arena, out, why);
    if (e == S3_OK && range != NULL && !read_range(range, out, arena))
        return s3_fail(why, S3_INVALID_ARGUMENT,
                       "x-amz-copy-source-range must be bytes=FIRST-LAST");
    return e;
}
