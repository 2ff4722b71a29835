/* dfc_list_*: the names of a bucket, page by page.
 *
 * A page has its entries and its folded prefixes in two sorted arrays; the iterator walks both as
 * one. */
#include "api/dfc.h"

#include "api/call.h"
#include "api/failure.h"
#include "api/uri.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define PAGE_SIZE 1000

struct dfc_list {
    struct dfc_client *client;
    char *bucket;
    char *prefix;
    char *delimiter;
    char *start_after;
    uint32_t page_size;
    bool partial;
    bool cached;
    bool internal;

    json_t *page;
    json_t *entries;  /* of the page */
    json_t *prefixes; /* of the page */
    size_t entry_at;
    size_t prefix_at;
    char *token; /* of the next page; NULL before the first */
    bool last;   /* the page has no next one */
    bool incomplete;
    struct dfc_entry entry;
};

int dfc_list_open(struct dfc_client *client, const char *bucket,
                  const struct dfc_list_options *options, struct dfc_list **list,
                  struct dfc_error *err)
{
    static const struct dfc_list_options none;
    const struct dfc_list_options *o = options != NULL ? options : &none;
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = uri_bucket(&path, "objects", bucket, err);
    if (rc != DFC_OK)
        return rc;
    struct dfc_list *l = xcalloc(1, sizeof *l);
    *l = (struct dfc_list){
        .client = client,
        .bucket = xstrdup(bucket),
        .prefix = xstrdup(o->prefix),
        .delimiter = xstrdup(o->delimiter),
        .start_after = xstrdup(o->start_after),
        .page_size = o->page_size != 0 ? o->page_size : PAGE_SIZE,
        .partial = o->partial,
        .cached = o->cached,
        .internal = o->internal,
    };
    *list = l;
    return DFC_OK;
}

void dfc_list_close(struct dfc_list *l)
{
    if (l == NULL)
        return;
    json_decref(l->page);
    free(l->token);
    free(l->start_after);
    free(l->delimiter);
    free(l->prefix);
    free(l->bucket);
    free(l);
}

bool dfc_list_incomplete(const struct dfc_list *l)
{
    return l->incomplete;
}

static int list_path(const struct dfc_list *l, struct buf *path, struct dfc_error *err)
{
    int rc = uri_bucket(path, "objects", l->bucket, err);
    if (rc != DFC_OK)
        return rc;
    uri_query(path, "prefix", l->prefix);
    uri_query(path, "delimiter", l->delimiter);
    uri_query(path, "start_after", l->token == NULL ? l->start_after : NULL);
    uri_query(path, "token", l->token);
    uri_query_u64(path, "limit", l->page_size);
    if (l->partial)
        uri_query(path, "partial", "true");
    if (l->cached)
        uri_query(path, "cached", "true");
    if (l->internal)
        uri_query(path, "internal", "true");
    return DFC_OK;
}

static int list_take_page(struct dfc_list *l, const char *text, struct error *e)
{
    const char *next = "";
    bool incomplete = false;
    _cleanup_json_ json_t *page = NULL;
    json_t *entries = NULL;
    json_t *prefixes = NULL;
    if (json_parse(text, strlen(text), &page, e) != 0 ||
        json_get_array(page, "", "entries", &entries, e) != 0 ||
        json_get_array(page, "", "prefixes", &prefixes, e) != 0 ||
        json_get_str(page, "", "next", &next, e) != 0 ||
        json_get_bool(page, "", "incomplete", &incomplete, e) != 0)
        return e->code;
    if (l->token != NULL && strcmp(l->token, next) == 0 && next[0] != '\0')
        return error_set(e, E_JSON, "the page's 'next' is the page itself");
    free(l->token);
    l->token = xstrdup(next);
    l->last = next[0] == '\0';
    l->incomplete |= incomplete;
    json_decref(l->page);
    l->page = steal(page);
    l->entries = entries;
    l->prefixes = prefixes;
    l->entry_at = l->prefix_at = 0;
    return 0;
}

static int list_fetch(struct dfc_list *l, struct dfc_error *err)
{
    static const struct call_small list_call = {.method = "GET", .twice_is_harmless = true};
    struct error e = ERROR_INIT;
    _cleanup_free_ char *text = NULL;
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = list_path(l, &path, err);
    if (rc == DFC_OK)
        rc = call_small(l->client, &list_call, &path, &text, err);
    if (rc != DFC_OK)
        return rc;
    if (list_take_page(l, text, &e) == 0)
        return DFC_OK;
    error_wrap(&e, "a page of bucket '%s'", l->bucket);
    return failure_common(err, DFC_FAILED, &e);
}

/* "checksum" is a text ("xxh3:…") or an object. */
static void entry_checksum(struct dfc_entry *out, json_t *sum)
{
    const char *type = json_string_value(json_object_get(sum, "type"));
    const char *value = json_string_value(json_object_get(sum, "value"));
    out->checksum_type = type != NULL ? type : "";
    out->checksum = value != NULL ? value : "";
    if (json_is_string(sum))
        out->checksum = json_string_value(sum);
}

static int entry_read(struct dfc_list *l, json_t *one, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    bool cached = true;
    l->entry = (struct dfc_entry){.version = ""};
    if (json_need_str(one, "entries", "name", &l->entry.name, &e) != 0 ||
        json_get_u64(one, "entries", "size", &l->entry.size, &e) != 0 ||
        json_get_i64(one, "entries", "modified_ms", &l->entry.modified_ms, &e) != 0 ||
        json_get_str(one, "entries", "version", &l->entry.version, &e) != 0 ||
        json_get_bool(one, "entries", "cached", &cached, &e) != 0)
        return failure_common(err, DFC_FAILED, &e);
    l->entry.cold = !cached;
    entry_checksum(&l->entry, json_object_get(one, "checksum"));
    return 1;
}

static int prefix_read(struct dfc_list *l, const char *name)
{
    l->entry = (struct dfc_entry){
        .name = name, .is_prefix = true, .version = "", .checksum_type = "", .checksum = ""};
    return 1;
}

int dfc_list_next(struct dfc_list *l, const struct dfc_entry **entry, struct dfc_error *err)
{
    *entry = &l->entry;
    for (;;) {
        json_t *one = json_array_get(l->entries, l->entry_at);
        const char *folded = json_string_value(json_array_get(l->prefixes, l->prefix_at));
        const char *name = json_string_value(json_object_get(one, "name"));
        if (folded != NULL && (name == NULL || strcmp(folded, name) < 0)) {
            l->prefix_at++;
            return prefix_read(l, folded);
        }
        if (one != NULL) {
            l->entry_at++;
            return entry_read(l, one, err);
        }
        if (l->last)
            return 0;
        int rc = list_fetch(l, err);
        if (rc != DFC_OK)
            return rc;
    }
}
