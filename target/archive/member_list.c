#include "target/archive/member_list.h"

#include "common/buf.h"
#include "common/parse.h"
#include "common/utf8.h"
#include "target/archive/member_table.h"

int member_list_limit(const char *text, size_t *out, struct error *err)
{
    uint64_t value = MEMBER_LIST_DEFAULT;
    int code = text != NULL ? parse_u64(text, &value, err) : 0;
    if (code != 0)
        return error_recode(err, E_INVALID, "parameter 'limit'");
    if (value < 1 || value > MEMBER_LIST_MAX)
        return error_set(err, E_INVALID, "parameter 'limit' is not within 1 and %d",
                         MEMBER_LIST_MAX);
    *out = value;
    return 0;
}

static void put_name(struct buf *out, const struct member_place *m)
{
    if (utf8_valid(m->name, m->name_len)) {
        buf_puts(out, "{\"name\":\"");
        buf_put_json_escaped(out, m->name, m->name_len);
    } else {
        buf_puts(out, "{\"escaped\":\"");
        buf_put_url_escaped(out, m->name, m->name_len, "/");
    }
}

static void put_member(struct buf *out, const struct member_place *m, bool packed)
{
    put_name(out, m);
    buf_printf(out, "\",\"type\":\"%s\",\"size\":%llu", member_kind_name(m->kind),
               (unsigned long long)m->size);
    if (!packed)
        buf_printf(out, ",\"offset\":%llu", (unsigned long long)m->offset);
    buf_printf(out, ",\"modified\":%lld}", (long long)m->mtime_s);
}

void member_list_put(struct buf *out, const struct member_table *t, const struct version *version,
                     const char *after, size_t limit)
{
    char text[VERSION_TEXT_MAX];
    const size_t count = member_table_count(t);
    size_t i = after != NULL ? member_table_after(t, after, strlen(after)) : 0;
    const size_t end = limit < count - i ? i + limit : count;
    buf_printf(out, "{\"version\":\"%s\",\"count\":%zu,\"members\":[",
               version_format(version, text), count);
    for (size_t first = i; i < end && out->len < MEMBER_LIST_BYTES; i++) {
        struct member_place m;
        member_table_at(t, i, &m);
        if (i > first)
            buf_putc(out, ',');
        put_member(out, &m, member_table_packed(t));
    }
    buf_printf(out, "],\"truncated\":%s}", i < count ? "true" : "false");
}
