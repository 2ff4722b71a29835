#include "s3/tags.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "s3/document.h"
#include "s3/request.h"
#include "s3/xml_write.h"

struct reading {
    struct arena *arena;
    struct s3_tags *out;
    size_t max;
    const char *key; /* that has come and waits for its value */
};

/* Text that is not UTF-8 counts as longer than anything may be. */
static size_t characters(const char *text)
{
    size_t n = 0, len = strlen(text);
    if (!utf8_valid(text, len))
        return SIZE_MAX;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

enum s3_error s3_tags_add(struct s3_tags *t, size_t max, const char *key, const char *value,
                          struct arena *arena, struct s3_failure *why)
{
    assert(max <= S3_TAGS_MAX);
    if (t->count == max)
        return s3_fail(why, S3_INVALID_TAG, "There are more than %zu tags", max);
    if (*key == '\0' || characters(key) > S3_TAG_KEY_MAX)
        return s3_fail(why, S3_INVALID_TAG, "A tag's key has 1 to %d characters", S3_TAG_KEY_MAX);
    if (characters(value) > S3_TAG_VALUE_MAX)
        return s3_fail(why, S3_INVALID_TAG, "A tag's value has %d characters at most",
                       S3_TAG_VALUE_MAX);
    if (strncmp(key, "aws:", 4) == 0)
        return s3_fail(why, S3_INVALID_TAG, "The prefix aws: is reserved");
    if (s3_tags_get(t, key) != NULL)
        return s3_fail(why, S3_INVALID_TAG, "Two tags have one key");
    if (t->tags == NULL)
        t->tags = arena_alloc(arena, max * sizeof t->tags[0]);
    t->tags[t->count++] = (struct s3_tag){arena_strdup(arena, key), arena_strdup(arena, value)};
    return S3_OK;
}

static enum s3_error take_key(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (r->key != NULL)
        return s3_fail(why, S3_MALFORMED_XML, "A <Tag> has no <Value>");
    r->key = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error take_value(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    const char *key = r->key;
    if (key == NULL)
        return s3_fail(why, S3_MALFORMED_XML, "In a <Tag> the <Key> comes first");
    r->key = NULL;
    return s3_tags_add(r->out, r->max, key, text, r->arena, why);
}

static const struct document_leaf leaves[] = {
    {"Tagging", "TagSet", document_empty},
    {"Tag", "Key", take_key},
    {"Tag", "Value", take_value},
    {.name = NULL},
};

static const struct document document = {.root = "Tagging", .depth = 4, .leaves = leaves};

enum s3_error s3_tags_parse(const char *body, size_t len, size_t max, struct arena *arena,
                            struct s3_tags *out, struct s3_failure *why)
{
    *out = (struct s3_tags){.count = 0};
    struct reading r = {.arena = arena, .out = out, .max = max};
    enum s3_error e = document_read(&document, body, len, &r, why);
    return e == S3_OK && r.key != NULL ? take_key(&r, "", why) : e;
}

enum s3_error s3_tags_parse_header(const char *text, size_t max, struct arena *arena,
                                   struct s3_tags *out, struct s3_failure *why)
{
    struct s3_query q;
    *out = (struct s3_tags){.count = 0};
    if (s3_query_parse(text, arena, &q, NULL) != S3_OK)
        return s3_fail(why, S3_INVALID_ARGUMENT, "The header x-amz-tagging cannot be decoded");
    enum s3_error e = S3_OK;
    for (size_t i = 0; i < q.count && e == S3_OK; i++)
        e = s3_tags_add(out, max, q.fields[i].name, q.fields[i].value, arena, why);
    return e;
}

static int compare_keys(const void *a, const void *b)
{
    const struct s3_tag *x = a, *y = b;
    return strcmp(x->key, y->key);
}

void s3_tags_print(const struct s3_tags *t, struct buf *out)
{
    struct s3_tag sorted[S3_TAGS_MAX];
    if (t->count > 0)
        memcpy(sorted, t->tags, t->count * sizeof sorted[0]);
    qsort(sorted, t->count, sizeof sorted[0], compare_keys);
    for (size_t i = 0; i < t->count; i++) {
        if (i > 0)
            buf_putc(out, '&');
        buf_put_url_escaped(out, sorted[i].key, strlen(sorted[i].key), "");
        buf_putc(out, '=');
        buf_put_url_escaped(out, sorted[i].value, strlen(sorted[i].value), "");
    }
}

const char *s3_tags_get(const struct s3_tags *t, const char *key)
{
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->tags[i].key, key) == 0)
            return t->tags[i].value;
    }
    return NULL;
}

void s3_tags_document(const struct s3_tags *t, struct buf *out)
{
    xml_put_root(out, "Tagging", XML_S3_NAMESPACE);
    xml_put_open(out, "TagSet");
    for (size_t i = 0; i < t->count; i++) {
        xml_put_open(out, "Tag");
        xml_put_element(out, "Key", t->tags[i].key);
        xml_put_element(out, "Value", t->tags[i].value);
        xml_put_close(out, "Tag");
    }
    xml_put_close(out, "TagSet");
    xml_put_close(out, "Tagging");
}
