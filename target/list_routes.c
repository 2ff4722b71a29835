/* One target's page of a list, for a proxy that merges them. */
#include "target/object_routes.h"

#include <assert.h>

#include "common/log.h"
#include "common/parse.h"
#include "target/call.h"
#include "target/list.h"
#include "target/member.h"
#include "target/target.h"

enum { LIMIT_DEFAULT = 1000 };
#define LIST_MAGIC 0x0b1ec711

struct list_call {
    unsigned magic;
    struct http_request *req;
    struct list_request list;
};

static const char *text_query(const struct http_request *req, const char *name)
{
    const char *text = http_query(req, name);
    return text != NULL ? text : "";
}

static int parse_limit(const struct http_request *req, size_t *limit, struct error *err)
{
    const char *text = http_query(req, "limit");
    uint64_t value = LIMIT_DEFAULT;
    int code = text != NULL ? parse_u64(text, &value, err) : 0;
    if (code != 0)
        return error_recode(err, code, "parameter 'limit'");
    if (value < 1 || value > LIST_LIMIT_MAX)
        return error_set(err, E_INVALID, "parameter 'limit' is not within 1 and %d",
                         LIST_LIMIT_MAX);
    *limit = value;
    return 0;
}

static int parse_list(struct http_request *req, struct list_request *out, struct error *err)
{
    uint64_t id;
    int code = parse_u64(http_path_param(req, "bucket_id"), &id, err);
    if (code != 0)
        return error_recode(err, code, "bucket id");
    *out = (struct list_request){.bucket_id = id & INT64_MAX,
                                 .prefix = text_query(req, "prefix"),
                                 .delimiter = text_query(req, "delimiter"),
                                 .start_after = text_query(req, "start_after")};
    if (id > INT64_MAX)
        return error_set(err, E_INVALID, "bucket id %llu is none", (unsigned long long)id);
    if (strlen(out->start_after) > ATTR_NAME_MAX || strlen(out->prefix) > ATTR_NAME_MAX)
        return error_set(err, E_NAME, "a name has at most %d bytes", ATTR_NAME_MAX);
    return parse_limit(req, &out->limit, err);
}

static void put_text(struct buf *out, const char *text)
{
    buf_putc(out, '"');
    buf_put_json_escaped(out, text, strlen(text));
    buf_putc(out, '"');
}

static void put_entry(struct buf *out, const struct list_entry *e)
{
    char version[VERSION_TEXT_MAX], hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&e->record.checksum, hex);
    buf_puts(out, "{\"name\":");
    put_text(out, e->name);
    buf_printf(out,
               ",\"size\":%llu,\"version\":\"%s\",\"checksum\":{\"type\":\"%s\",\"value\":\"%s\"},"
               "\"modified_ms\":%lld}",
               (unsigned long long)e->record.size, version_format(&e->record.version, version),
               checksum_name(e->record.checksum.type), hex, (long long)e->record.modified_ms);
}

static void put_page(struct buf *out, const struct list_page *page)
{
    buf_puts(out, "{\"entries\":[");
    for (size_t i = 0; i < page->entry_count; i++) {
        if (i > 0)
            buf_putc(out, ',');
        put_entry(out, &page->entries[i]);
    }
    buf_puts(out, "],\"prefixes\":[");
    for (size_t i = 0; i < page->prefix_count; i++) {
        if (i > 0)
            buf_putc(out, ',');
        put_text(out, page->prefixes[i]);
    }
    buf_puts(out, "],\"next\":");
    put_text(out, page->next);
    buf_puts(out, "}");
}

static void reply_page(const struct list_call *call)
{
    struct target *t = http_user(call->req);
    struct error err = ERROR_INIT;
    struct list_page page;
    if (list_page(t->store, &call->list, &page, &err) != 0) {
        log_error("list failed", lerr(&err));
        http_reply_error(call->req, &err);
        return;
    }
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    put_page(&text, &page);
    list_page_done(&page);
    http_reply_data(call->req, 200, "application/json", text.data, text.len);
}

/* With a state that is still older than the sender's the page could lack what a job has committed,
 * and nobody would see it. */
static void refreshed(void *arg)
{
    struct list_call *call = arg;
    assert(call->magic == LIST_MAGIC);
    const struct target *t = http_user(call->req);
    struct error err = ERROR_INIT;
    bool ahead;
    if (sender_is_ahead(call->req, &ahead, &err) == 0 && ahead)
        error_set(&err, E_NOT_READY, "target '%s' could not get cluster state %s", t->id,
                  http_query(call->req, "dfcv"));
    if (err.code != 0)
        http_reply_error(call->req, &err);
    else
        reply_page(call);
}

static void list_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct list_call *call = arena_alloc(http_arena(req), sizeof *call);
    *call = (struct list_call){.magic = LIST_MAGIC, .req = req};
    struct error err = ERROR_INIT;
    bool ahead;
    if (parse_list(req, &call->list, &err) != 0 || sender_is_ahead(req, &ahead, &err) != 0)
        http_reply_error(req, &err);
    else if (ahead)
        member_refresh(t->member, refreshed, call);
    else
        reply_page(call);
}

const struct http_route list_routes[] = {
    {.name = "target_list",
     .method = HTTP_GET,
     .pattern = "/v1/list/{bucket_id}",
     .nets = NET_DATA,
     .begin = list_begin,
     .summary = "One target's page of a bucket's list, in bytewise order.",
     .query = "prefix, delimiter, start_after, limit (1 to 10000, default 1000); dfcv=the sender's "
              "state version",
     .body = "",
     .reply = "`{\"entries\": [{\"name\", \"size\", \"version\", \"checksum\", \"modified_ms\"}], "
              "\"prefixes\", \"next\"}`; everything is greater than start_after; `next` is the "
              "start_after of the next page, \"\" on the last",
     .errors = "invalid_argument invalid_name io_error not_ready"},
    {.name = NULL},
};
