#include "cluster/documents/bucket_texts.h"

#include <string.h>

#include "common/jsonx.h"

static const char *const names[] = {
    [BUCKET_TAGS] = "tags", [BUCKET_CORS] = "cors", [BUCKET_LIFECYCLE] = "lifecycle"};

const char *bucket_text_name(enum bucket_text which)
{
    return names[which];
}

enum bucket_text bucket_text_find(const char *name)
{
    size_t i = 0;
    while (i < BUCKET_TEXTS && strcmp(names[i], name) != 0)
        i++;
    return (enum bucket_text)i;
}

size_t bucket_texts_bytes(const struct bucket_texts *t)
{
    size_t bytes = 0;
    for (size_t i = 0; i < BUCKET_TEXTS; i++)
        bytes += t->text[i] != NULL ? strlen(t->text[i]) : 0;
    return bytes;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool bucket_texts_equal(const struct bucket_texts *a, const struct bucket_texts *b)
{
    for (size_t i = 0; i < BUCKET_TEXTS; i++) {
        if (!is_same(a->text[i], b->text[i]))
            return false;
    }
    return true;
}

struct bucket_texts bucket_texts_copy(const struct bucket_texts *t, struct arena *a)
{
    struct bucket_texts copy = {{NULL}};
    for (size_t i = 0; i < BUCKET_TEXTS; i++)
        copy.text[i] = t->text[i] != NULL ? arena_strdup(a, t->text[i]) : NULL;
    return copy;
}

json_t *bucket_texts_to_json(const struct bucket_texts *t)
{
    json_t *doc = NULL;
    for (size_t i = 0; i < BUCKET_TEXTS; i++) {
        if (t->text[i] == NULL)
            continue;
        if (doc == NULL)
            doc = json_object();
        json_object_set_new(doc, names[i], json_string(t->text[i]));
    }
    return doc;
}

static int check(const char *text, const char *path, const char *name, struct error *err)
{
    if (text == NULL || strlen(text) <= BUCKET_TEXT_MAX)
        return 0;
    return error_set(err, E_INVALID, "field '%s.%s' has more than %d bytes", path, name,
                     BUCKET_TEXT_MAX);
}

int bucket_texts_patch(json_t *doc, const char *path, struct bucket_texts *t, struct error *err)
{
    for (size_t i = 0; i < BUCKET_TEXTS; i++) {
        json_t *value = json_object_get(doc, names[i]);
        const char *text = NULL;
        int r = 0;
        if (value == NULL)
            continue;
        if (!json_is_null(value))
            r = json_need_str(doc, path, names[i], &text, err);
        if (r == 0)
            r = check(text, path, names[i], err);
        if (r != 0)
            return r;
        t->text[i] = text;
    }
    return 0;
}
