#include "proxy/list/expand.h"

#include <string.h>
#include <strings.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proxy/list/token.h"

enum { PAGE_BYTES = 8 << 20 }; /* a page that has so many ends */

struct list_expand {
    size_t limit, taken;
    struct buf entries, prefixes; /* of the result */
    json_t *page;                 /* of the plain list, of which these come next: */
    size_t entry, prefix;
    bool incomplete;
    bool more;     /* pages of the plain list follow, */
    char *token;   /* behind this one */
    char *last;    /* what was taken last; NULL: nothing yet */
    char *archive; /* whose members come next, … */
    char *after;   /* … behind this one; NULL: no archive */
};

bool list_expand_is_archive(const char *name)
{
    static const char *const ends[] = {".tar",     ".tgz",    ".tar.gz",   ".tar.lz4", ".tar.zst",
                                       ".tar.bz2", ".tar.xz", ".tar.zstd", ".zip",     ".cpio"};
    const size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t end = strlen(ends[i]);
        if (len > end && strcasecmp(name + len - end, ends[i]) == 0)
            return true;
    }
    return false;
}

static void replace(char **text, const char *by)
{
    char *copy = by != NULL ? xstrdup(by) : NULL;
    free(*text);
    *text = copy;
}

static void enter_archive(struct list_expand *e, const char *archive, const char *after)
{
    replace(&e->archive, archive);
    replace(&e->after, after);
}

/* The plain list goes on behind this name. */
static void go_on_behind(struct list_expand *e, const char *name)
{
    _cleanup_buf_ struct buf token = BUF_INIT;
    list_token_put(&token, &(struct list_position){.after = name, .from = ""});
    replace(&e->token, buf_str(&token));
}

struct list_expand *list_expand_new(const char *token, size_t limit)
{
    _cleanup_buf_ struct buf texts = BUF_INIT;
    struct list_expand *e = xcalloc(1, sizeof *e);
    const char *archive, *member;
    *e = (struct list_expand){.limit = limit, .more = true};
    if (token != NULL && list_token_parse_member(token, &texts, &archive, &member)) {
        enter_archive(e, archive, member);
        go_on_behind(e, archive);
    } else {
        replace(&e->token, token);
    }
    return e;
}

void list_expand_free(struct list_expand *e)
{
    if (e == NULL)
        return;
    buf_done(&e->entries);
    buf_done(&e->prefixes);
    json_decref(e->page);
    free(e->token);
    free(e->last);
    free(e->archive);
    free(e->after);
    free(e);
}

/* --- what comes next -------------------------------------------------------------------------- */

static const json_t *next_entry(const struct list_expand *e)
{
    return json_array_get(json_object_get(e->page, "entries"), e->entry);
}

static const char *next_prefix(const struct list_expand *e)
{
    return json_string_value(json_array_get(json_object_get(e->page, "prefixes"), e->prefix));
}

static const char *name_of(const json_t *entry)
{
    return json_string_value(json_object_get(entry, "name"));
}

static void separate(struct buf *out)
{
    if (out->len > 0)
        buf_putc(out, ',');
}

static void put_json(struct buf *out, const json_t *value)
{
    _cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    separate(out);
    buf_puts(out, text);
}

static void take_prefix(struct list_expand *e)
{
    put_json(&e->prefixes, json_array_get(json_object_get(e->page, "prefixes"), e->prefix));
    replace(&e->last, next_prefix(e));
    e->prefix++;
}

/* To read what only a backend has would fetch it. */
static void take_entry(struct list_expand *e)
{
    const json_t *entry = next_entry(e);
    const char *name = name_of(entry);
    put_json(&e->entries, entry);
    replace(&e->last, name);
    if (!json_is_false(json_object_get(entry, "cached")) && list_expand_is_archive(name))
        enter_archive(e, name, "");
    e->entry++;
}

static bool has_item(const struct list_expand *e)
{
    return next_entry(e) != NULL || next_prefix(e) != NULL;
}

static void take_item(struct list_expand *e)
{
    const json_t *entry = next_entry(e);
    const char *prefix = next_prefix(e);
    if (entry == NULL || (prefix != NULL && strcmp(prefix, name_of(entry)) < 0))
        take_prefix(e);
    else
        take_entry(e);
    e->taken++;
}

static bool is_full(const struct list_expand *e)
{
    return e->taken >= e->limit || e->entries.len + e->prefixes.len >= PAGE_BYTES;
}

enum list_expand_step list_expand_next(struct list_expand *e, struct list_expand_question *q)
{
    while (!is_full(e) && e->archive == NULL && has_item(e))
        take_item(e);
    if (is_full(e))
        return EXPAND_DONE;
    *q = (struct list_expand_question){
        .token = e->token, .limit = e->limit - e->taken, .archive = e->archive, .after = e->after};
    if (e->archive != NULL)
        return EXPAND_MEMBERS;
    return e->more ? EXPAND_PAGE : EXPAND_DONE;
}

/* --- replies ---------------------------------------------------------------------------------- */

static bool is_page(const json_t *page)
{
    const json_t *entries = json_object_get(page, "entries");
    const json_t *prefixes = json_object_get(page, "prefixes");
    bool is = json_is_array(entries) && json_is_array(prefixes) &&
              json_is_string(json_object_get(page, "next"));
    for (size_t i = 0; is && i < json_array_size(entries); i++)
        is = name_of(json_array_get(entries, i)) != NULL;
    for (size_t i = 0; is && i < json_array_size(prefixes); i++)
        is = json_is_string(json_array_get(prefixes, i));
    return is;
}

int list_expand_page(struct list_expand *e, const char *text, size_t len, struct error *err)
{
    _cleanup_json_ json_t *page = NULL;
    int code = json_parse(text, len, &page, err);
    if (code != 0 || !is_page(page))
        return code != 0 ? code : error_set(err, E_CORRUPT, "a page of a list is none");
    replace(&e->token, json_string_value(json_object_get(page, "next")));
    e->more = e->token[0] != '\0';
    e->incomplete = e->incomplete || json_is_true(json_object_get(page, "incomplete"));
    json_decref(e->page);
    e->page = steal(page);
    e->entry = e->prefix = 0;
    return 0;
}

/* Its name as it is shown, and whether that is escaped; NULL: it has none. */
static const char *shown_name(const json_t *member, bool *escaped)
{
    const char *name = name_of(member);
    *escaped = name == NULL;
    return *escaped ? json_string_value(json_object_get(member, "escaped")) : name;
}

/* A time that has no milliseconds is none. */
static json_int_t milliseconds_of(const json_t *member)
{
    json_int_t ms = json_integer_value(json_object_get(member, "modified"));
    return __builtin_mul_overflow(ms, 1000, &ms) ? 0 : ms;
}

static void put_member(struct list_expand *e, const json_t *member, const char *name, bool escaped,
                       const char *version)
{
    struct buf *out = &e->entries;
    separate(out);
    buf_puts(out, "{\"name\":\"");
    buf_put_json_escaped(out, e->archive, strlen(e->archive));
    buf_putc(out, '/');
    buf_put_json_escaped(out, name, strlen(name));
    buf_printf(out, "\",\"size\":%lld,\"version\":\"",
               json_integer_value(json_object_get(member, "size")));
    buf_put_json_escaped(out, version, strlen(version));
    buf_printf(out, "\",\"modified_ms\":%lld,\"member\":true%s}", milliseconds_of(member),
               escaped ? ",\"escaped\":true" : "");
}

static int go_behind(struct list_expand *e, const char *name, bool escaped, struct error *err)
{
    _cleanup_free_ char *raw = xstrdup(name);
    if (escaped) {
        int64_t len = parse_url_unescape(name, strlen(name), raw, err);
        if (len < 0)
            return (int)len;
        raw[len] = '\0';
    }
    replace(&e->after, raw);
    return 0;
}

static int take_member(struct list_expand *e, const json_t *member, const char *version,
                       struct error *err)
{
    bool escaped;
    const char *type = json_string_value(json_object_get(member, "type"));
    const char *name = shown_name(member, &escaped);
    if (type == NULL || name == NULL)
        return error_set(err, E_CORRUPT, "a member has no name or no type");
    if (strcmp(type, "file") == 0) {
        put_member(e, member, name, escaped, version);
        e->taken++;
    }
    return go_behind(e, name, escaped, err);
}

int list_expand_members(struct list_expand *e, const char *text, size_t len, struct error *err)
{
    _cleanup_json_ json_t *page = NULL;
    int code = json_parse(text, len, &page, err);
    const json_t *members = json_object_get(page, "members"), *member;
    const char *version = json_string_value(json_object_get(page, "version"));
    const bool more = json_is_true(json_object_get(page, "truncated"));
    size_t i;
    if (code == 0 && (version == NULL || (more && json_array_size(members) == 0)))
        code = error_set(err, E_CORRUPT, "a page of members is none");
    json_array_foreach(members, i, member)
    {
        if (code == 0)
            code = take_member(e, member, version, err);
    }
    if (code == 0 && !more)
        list_expand_no_members(e);
    return code;
}

void list_expand_no_members(struct list_expand *e)
{
    replace(&e->archive, NULL);
    replace(&e->after, NULL);
}

/* --- the page --------------------------------------------------------------------------------- */

static void put_token(const struct list_expand *e, struct buf *out)
{
    if (e->archive != NULL)
        list_token_put_member(out, e->archive, e->after);
    else if (has_item(e))
        list_token_put(out, &(struct list_position){.after = e->last, .from = ""});
    else if (e->more)
        buf_put_json_escaped(out, e->token, strlen(e->token));
}

void list_expand_put(struct list_expand *e, struct buf *out)
{
    buf_puts(out, "{\"entries\":[");
    buf_append(out, buf_str(&e->entries), e->entries.len);
    buf_puts(out, "],\"prefixes\":[");
    buf_append(out, buf_str(&e->prefixes), e->prefixes.len);
    buf_puts(out, "],\"next\":\"");
    put_token(e, out);
    buf_puts(out, e->incomplete ? "\",\"incomplete\":true}" : "\",\"incomplete\":false}");
}
