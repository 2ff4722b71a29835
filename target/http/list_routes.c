/* One target's page of a list, for a proxy that merges them. */
#include "target/http/object_routes.h"

#include <assert.h>

#include "cluster/placement/copies_reduce.h"
#include "common/log.h"
#include "common/parse.h"
#include "target/node/call.h"
#include "target/node/state_sync.h"
#include "target/store/list.h"
#include "target/node/member.h"
#include "target/node/target.h"

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
                                 .start_after = text_query(req, "start_after"),
                                 .from = http_query(req, "from"),
                                 .pending = true};
    if (id > INT64_MAX)
        return error_set(err, E_INVALID, "bucket id %llu is none", (unsigned long long)id);
    if (strlen(out->start_after) > ATTR_NAME_MAX || strlen(out->prefix) > ATTR_NAME_MAX ||
        (out->from != NULL && strlen(out->from) > ATTR_NAME_MAX))
        return error_set(err, E_NAME, "a name has at most %d bytes", ATTR_NAME_MAX);
    const char *tombstones = http_query(req, "tombstones");
    if (tombstones != NULL && parse_bool(tombstones, &out->tombstones, err) != 0)
        return error_recode(err, E_INVALID, "parameter 'tombstones'");
    const char *skips = http_query(req, "skip_internal");
    if (skips != NULL && parse_bool(skips, &out->skips_internal, err) != 0)
        return error_recode(err, E_INVALID, "parameter 'skip_internal'");
    return parse_limit(req, &out->limit, err);
}

static void put_text(struct buf *out, const char *text)
{
    buf_putc(out, '"');
    buf_put_json_escaped(out, text, strlen(text));
    buf_putc(out, '"');
}

#define PUT(out, literal) buf_append(out, literal, sizeof(literal) - 1)

static void put_u64(struct buf *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    buf_append(out, digits + at, sizeof digits - at);
}

static void put_version(struct buf *out, const struct version *v)
{
    put_u64(out, v->term);
    buf_putc(out, '.');
    put_u64(out, v->map);
    buf_putc(out, '.');
    put_u64(out, v->counter);
}

/* By hand: pages have thousands of these, and printf would be most of the work. */
static void put_entry(struct buf *out, const struct list_entry *e, bool shows_md5)
{
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&e->record.checksum, hex);
    PUT(out, "{\"name\":");
    put_text(out, e->name);
    PUT(out, ",\"size\":");
    put_u64(out, e->record.size);
    PUT(out, ",\"version\":\"");
    put_version(out, &e->record.version);
    PUT(out, "\",\"checksum\":{\"type\":\"");
    buf_puts(out, checksum_name(e->record.checksum.type));
    PUT(out, "\",\"value\":\"");
    buf_puts(out, hex);
    PUT(out, "\"}");
    if (shows_md5 && e->record.md5.type == CHECKSUM_MD5) {
        checksum_hex(&e->record.md5, hex);
        PUT(out, ",\"md5\":\"");
        buf_puts(out, hex);
        if (e->record.md5_parts > 0)
            buf_putc(out, '-');
        if (e->record.md5_parts > 0)
            put_u64(out, e->record.md5_parts);
        PUT(out, "\"");
    }
    PUT(out, ",\"modified_ms\":");
    put_u64(out, (uint64_t)e->record.modified_ms); /* never before 1970: index/record.h */
    if (e->record.tombstone)
        PUT(out, ",\"deleted\":true");
    buf_putc(out, '}');
}

static void put_page(struct buf *out, const struct list_page *page, bool shows_md5)
{
    buf_puts(out, "{\"entries\":[");
    for (size_t i = 0; i < page->entry_count; i++) {
        if (i > 0)
            buf_putc(out, ',');
        put_entry(out, &page->entries[i], shows_md5);
    }
    buf_puts(out, "],\"prefixes\":[");
    for (size_t i = 0; i < page->prefix_count; i++) {
        if (i > 0)
            buf_putc(out, ',');
        put_text(out, page->prefixes[i]);
    }
    PUT(out, "],\"next\":");
    put_text(out, page->next);
    if (*page->from != '\0') {
        PUT(out, ",\"from\":");
        put_text(out, page->from);
    }
    buf_putc(out, '}');
}

/* Where copies were lowered: whose names a target lists by a state. */
struct shown {
    const struct cluster_state *state;
    const struct bucket *bucket;
    const char *self;
};

static bool shows(void *ctx, const char *name)
{
    const struct shown *v = ctx;
    return copies_reduce_shows(v->state, v->bucket, name, v->self);
}

static int fill_page(struct target *t, struct list_request *list, struct list_page *page,
                     struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    struct shown shown = {
        .state = s, .bucket = bmd_bucket_by_id(&s->bmd, list->bucket_id), .self = t->id};
    if (shown.bucket != NULL && state_bucket_is_closed(s, shown.bucket))
        object_store_settle(t->store); /* from here on no object appears */
    if (shown.bucket != NULL && bucket_has_surplus(shown.bucket)) {
        list->shows = shows;
        list->ctx = &shown;
    }
    return list_page(t->store, list, page, err);
}

/* A backend has entity tags of its own. */
static bool has_backend(const struct target *t, uint64_t bucket_id)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    return b != NULL && b->props.backend != NULL;
}

static void reply_page(struct list_call *call)
{
    struct target *t = http_user(call->req);
    struct error err = ERROR_INIT;
    struct list_page page;
    /* Whoever does not know the present owners does not ask all of them: what has been moved to one
     * would be missing. */
    if (sender_knows_owners(call->req, &err) != 0) {
        http_reply_error(call->req, &err);
        return;
    }
    if (fill_page(t, &call->list, &page, &err) != 0) {
        log_error("list failed", lerr(&err));
        http_reply_error(call->req, &err);
        return;
    }
    _cleanup_buf_ struct buf text = BUF_INIT;
    put_page(&text, &page, !has_backend(t, call->list.bucket_id));
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
        member_refresh(t->member, http_query(req, "dfcv"), refreshed, call);
    else
        reply_page(call);
}

const struct http_route list_routes[] = {
    {.name = "target_list",
     .method = HTTP_GET,
     .pattern = "/v1/list/{bucket_id}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = list_begin,
     .summary = "One target's page of a bucket's list, in bytewise order.",
     .query = HTTP_PARAMETERS({"prefix", "text"}, {"delimiter", "text"}, {"start_after", "name"},
                              {"limit", "1 to 10000 (default 1000)"},
                              {"from", "that of the page before"},
                              {"dfcv", "the sender's state version"},
                              {"tombstones", "true: they are entries with `deleted`, too"},
                              {"skip_internal", "true: without names that begin with `.dfc-`"}),
     .body = "",
     .reply =
         "`{\"entries\": [{\"name\", \"size\", \"version\", \"checksum\", \"md5\" where it is "
         "known, \"modified_ms\"}], \"prefixes\", \"next\", \"from\"}`; everything is greater than "
         "start_after; "
         "`next` is the start_after of the next page and `from`, where it is given, its from: a "
         "page ends early where many names in a row are not shown; the last page has neither",
     .errors = "invalid_argument invalid_name io_error not_ready stale_map"},
    {.name = NULL},
};
