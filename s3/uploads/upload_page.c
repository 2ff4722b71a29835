#include "s3/uploads/upload_page.h"

#include <string.h>

void s3_upload_page_init(struct s3_upload_page *p, const struct s3_uploads_asked *asked,
                         struct arena *arena)
{
    *p = (struct s3_upload_page){.asked = asked, .arena = arena};
    p->uploads = arena_alloc(arena, (asked->max + 1) * sizeof p->uploads[0]);
    p->prefixes = arena_alloc(arena, (asked->max + 1) * sizeof p->prefixes[0]);
}

/* The key up to the delimiter and with it; 0: it has none behind the prefix. */
static size_t folded_length(const struct s3_uploads_asked *asked, const char *key)
{
    size_t prefix = strlen(asked->prefix);
    if (*asked->delimiter == '\0' || strlen(key) < prefix)
        return 0;
    const char *at = strstr(key + prefix, asked->delimiter);
    return at != NULL ? (size_t)(at - key) + strlen(asked->delimiter) : 0;
}

static bool begins_with(const char *text, const char *with, size_t len)
{
    return strncmp(text, with, len) == 0 && strlen(with) == len;
}

/* Does a prefix that was shown stand for the key: on this page, or as the end of the one before? */
static bool is_shown(const struct s3_upload_page *p, const char *key, size_t folded)
{
    const char *before = p->asked->after_key;
    bool is_last =
        p->prefix_count > 0 && begins_with(key, p->prefixes[p->prefix_count - 1], folded);
    return folded > 0 && (is_last || begins_with(key, before, folded));
}

static void add_prefix(struct s3_upload_page *p, const char *key, size_t len)
{
    const char *prefix = arena_strndup(p->arena, key, len);
    p->prefixes[p->prefix_count++] = prefix;
    p->last_key = prefix;
    p->last_upload_id = "";
}

static void add_upload(struct s3_upload_page *p, const struct s3_listed_upload *upload)
{
    p->uploads[p->upload_count++] = *upload;
    p->last_key = upload->key;
    p->last_upload_id = upload->upload_id;
}

bool s3_upload_page_add(struct s3_upload_page *p, const struct s3_listed_upload *upload)
{
    size_t folded = folded_length(p->asked, upload->key);
    if (is_shown(p, upload->key, folded))
        return true;
    if (p->upload_count + p->prefix_count == p->asked->max) {
        p->next_key = p->last_key; /* NULL: an empty page was asked for */
        p->next_upload_id = p->last_upload_id;
        return false;
    }
    if (folded > 0)
        add_prefix(p, upload->key, folded);
    else
        add_upload(p, upload);
    return true;
}
