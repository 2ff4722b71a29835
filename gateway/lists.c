#include "gateway/lists.h"

#include <string.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "gateway/etag.h"
#include "gateway/proxy_call.h"
#include "gateway/reply.h"
#include "s3/list.h"

enum { ENTRY_BYTES_MAX = 8 * 1024, PAGE_BYTES_MAX = 64 * 1024 };

/* Of the request's arena. */
struct listing {
    struct s3_list_asked asked;
    unsigned limit;
    uint64_t until_ms; /* empty pages are followed */
};

/* --- a native page ---------------------------------------------------------------------------- */

struct page {
    json_t *doc; /* whose texts the others are */
    struct s3_list_entry *entries;
    const char **prefixes;
    size_t entry_count, prefix_count;
    const char *next; /* "": none */
};

/* Without its quotes. */
static const char *tag_of(struct arena *arena, const char *native)
{
    _cleanup_buf_ struct buf tag = BUF_INIT;
    etag_put_s3(native, &tag);
    const char *text = buf_str(&tag);
    bool quoted = tag.len >= 2 && text[0] == '"' && text[tag.len - 1] == '"';
    return quoted ? arena_strndup(arena, text + 1, tag.len - 2) : arena_strdup(arena, text);
}

/* The MD5 where the object has one; of a name that only the backend has, its own tag. */
static int read_tag(struct arena *arena, json_t *item, const char **out, struct error *err)
{
    const char *version = NULL, *etag = NULL, *md5 = NULL;
    int code = json_need_str(item, "", "version", &version, err);
    if (code == 0)
        code = json_get_str(item, "", "etag", &etag, err);
    if (code == 0)
        code = json_get_str(item, "", "md5", &md5, err);
    if (code == 0)
        *out = md5 != NULL
                   ? md5
                   : tag_of(arena, arena_printf(arena, "\"%s\"", etag != NULL ? etag : version));
    return code;
}

static int read_entry(struct arena *arena, json_t *item, struct s3_list_entry *out,
                      struct error *err)
{
    uint64_t modified_ms = 0;
    int code;
    if ((code = json_need_str(item, "", "name", &out->key, err)) != 0 ||
        (code = json_need_u64(item, "", "size", &out->size, err)) != 0 ||
        (code = json_get_u64(item, "", "modified_ms", &modified_ms, err)) != 0)
        return code;
    out->modified_ms = (int64_t)modified_ms;
    return read_tag(arena, item, &out->etag, err);
}

static int read_entries(struct arena *arena, json_t *list, struct page *p, struct error *err)
{
    int code = 0;
    p->entry_count = json_array_size(list);
    p->entries = arena_alloc(arena, (p->entry_count + 1) * sizeof p->entries[0]);
    for (size_t i = 0; i < p->entry_count && code == 0; i++)
        code = read_entry(arena, json_array_get(list, i), &p->entries[i], err);
    return code;
}

static int read_prefixes(struct arena *arena, json_t *list, struct page *p, struct error *err)
{
    p->prefix_count = json_array_size(list);
    p->prefixes = arena_alloc(arena, (p->prefix_count + 1) * sizeof p->prefixes[0]);
    for (size_t i = 0; i < p->prefix_count; i++) {
        p->prefixes[i] = json_string_value(json_array_get(list, i));
        if (p->prefixes[i] == NULL)
            return error_set(err, E_CORRUPT, "a prefix of a list is no text");
    }
    return 0;
}

static int read_page(struct arena *arena, const struct buf *text, uint64_t until_ms, struct page *p,
                     struct error *err)
{
    struct proxy_page native;
    int code = proxy_call_page(text, until_ms, &native, err);
    p->doc = native.doc;
    p->next = native.next;
    if (code == 0)
        code = read_entries(arena, native.entries, p, err);
    return code != 0 ? code : read_prefixes(arena, native.prefixes, p, err);
}

/* --- the reply -------------------------------------------------------------------------------- */

/* The greater of the last name and the last prefix: all that follows is greater. */
static const char *last_of(const struct page *p)
{
    const char *key = p->entry_count > 0 ? p->entries[p->entry_count - 1].key : "";
    const char *prefix = p->prefix_count > 0 ? p->prefixes[p->prefix_count - 1] : "";
    return strcmp(key, prefix) > 0 ? key : prefix;
}

static const char *next_of(const struct listing *l, const struct page *p)
{
    if (*p->next == '\0')
        return NULL;
    return l->asked.form == S3_LIST_V2 ? p->next : last_of(p);
}

static void reply_page(struct http_request *req, const struct gateway_call *call,
                       const struct listing *l, const struct page *p)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    const struct http_actor *actor = http_actor(req);
    const struct s3_list list = {.bucket = call->s3.bucket,
                                 .owner_id = actor->id != NULL ? actor->id : actor->name,
                                 .owner_name = actor->name,
                                 .entries = p->entries,
                                 .entry_count = p->entry_count,
                                 .prefixes = p->prefixes,
                                 .prefix_count = p->prefix_count,
                                 .next = next_of(l, p)};
    s3_list_document(&l->asked, &list, &document);
    gateway_reply_xml(req, &document);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void ask(struct http_request *req, const struct gateway_call *call, struct listing *l,
                const char *token);

static void answered(struct http_request *req, const struct gateway_call *call, void *arg,
                     const struct error *failure, const struct buf *text)
{
    struct listing *l = arg;
    struct error err = *failure;
    struct page p = {.doc = NULL};
    if (err.code == 0)
        (void)read_page(http_arena(req), text, l->until_ms, &p, &err);
    bool is_empty = p.entry_count + p.prefix_count == 0;
    if (err.code != 0) {
        http_reply_error(req, &err);
    } else if (l->asked.max_keys == 0) {
        const struct page none = {.next = ""};
        reply_page(req, call, l, &none);
    } else if (is_empty && *p.next != '\0') {
        ask(req, call, l, arena_strdup(http_arena(req), p.next));
    } else {
        reply_page(req, call, l, &p);
    }
    json_decref(p.doc);
}

static void put_parameter(struct buf *query, const char *name, const char *value)
{
    if (*value == '\0')
        return;
    buf_printf(query, "&%s=", name);
    buf_put_url_escaped(query, value, strlen(value), "");
}

static void ask(struct http_request *req, const struct gateway_call *call, struct listing *l,
                const char *token)
{
    _cleanup_buf_ struct buf query = BUF_INIT;
    buf_printf(&query, "?limit=%u", l->limit);
    put_parameter(&query, "prefix", l->asked.prefix);
    put_parameter(&query, "delimiter", l->asked.delimiter);
    put_parameter(&query, "start_after", l->asked.after);
    put_parameter(&query, "token", token);
    const struct proxy_call spec = {.method = HTTP_GET,
                                    .bucket = call->s3.bucket,
                                    .rest = arena_strdup(http_arena(req), buf_str(&query)),
                                    .reply_max = PAGE_BYTES_MAX + l->limit * ENTRY_BYTES_MAX,
                                    .done = answered,
                                    .arg = l};
    proxy_call_start(req, call, &spec);
}

static enum s3_list_form form_of(enum s3_op_id op)
{
    if (op == S3_OP_ListObjectVersions)
        return S3_LIST_VERSIONS;
    return op == S3_OP_ListObjectsV2 ? S3_LIST_V2 : S3_LIST_V1;
}

void s3_list_objects(struct http_request *req, const struct gateway_call *call)
{
    struct listing *l = arena_alloc(http_arena(req), sizeof *l);
    struct s3_failure why;
    if (s3_list_ask(&call->s3.query, form_of(call->s3.op), &l->asked, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    l->limit = l->asked.max_keys > 0 ? l->asked.max_keys : 1;
    l->until_ms = clock_ms() + PROXY_CALL_PAGES_MS;
    ask(req, call, l, l->asked.token != NULL ? l->asked.token : "");
}
