#include "api/ctl/print/user_print.h"

#include "api/ctl/print/table.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "";
}

static char *text_or_dash(struct buf *text)
{
    if (text->len == 0)
        buf_putc(text, '-');
    return buf_steal(text);
}

char *names_text(json_t *names)
{
    struct buf out = BUF_INIT;
    size_t i;
    json_t *one;
    json_array_foreach(names, i, one)
    {
        const char *name = json_string_value(one);
        buf_printf(&out, "%s%s", out.len > 0 ? ", " : "", name != NULL ? name : "?");
    }
    return text_or_dash(&out);
}

char *grants_text(json_t *grants)
{
    struct buf out = BUF_INIT;
    size_t i;
    json_t *one;
    json_array_foreach(grants, i, one)
    {
        _cleanup_free_ char *rights = names_text(json_object_get(one, "rights"));
        const char *bucket = text_at(one, "bucket"), *prefix = text_at(one, "prefix");
        buf_printf(&out, "%s%s on %s", out.len > 0 ? "; " : "", rights,
                   bucket[0] != '\0' ? bucket : "the cluster");
        if (prefix[0] != '\0')
            buf_printf(&out, ", below %s", prefix);
    }
    return text_or_dash(&out);
}

char *rate_text(const struct ctl *ctl, const json_t *rate)
{
    char size[32];
    json_int_t requests = json_integer_value(json_object_get(rate, "requests"));
    json_int_t bytes = json_integer_value(json_object_get(rate, "bytes"));
    struct buf text = BUF_INIT;
    if (requests > 0)
        buf_printf(&text, "%lld requests/s", (long long)requests);
    if (bytes > 0)
        buf_printf(&text, "%s%s/s", text.len > 0 ? ", " : "", ctl_size(ctl, (uint64_t)bytes, size));
    if (text.len > 0)
        buf_puts(&text, " on each node");
    return text_or_dash(&text);
}

/* No row where there is no limit. */
static void put_rate(struct table *t, const char *rate)
{
    if (strcmp(rate, "-") == 0)
        return;
    table_cell(t, "rate");
    table_cell(t, rate);
}

static void print_keys(struct table *t, json_t *keys)
{
    size_t i;
    json_t *one;
    json_array_foreach(keys, i, one)
    {
        char when[32];
        int64_t created_ms = json_integer_value(json_object_get(one, "created_ms"));
        table_cell(t, "key");
        table_cellf(t, "%s, made %s", text_at(one, "access"), ctl_time(created_ms, when));
    }
}

void user_print(const struct ctl *ctl, json_t *user)
{
    static const char *const headers[] = {"FIELD", "VALUE", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    _cleanup_free_ char *roles = names_text(json_object_get(user, "roles"));
    _cleanup_free_ char *grants = grants_text(json_object_get(user, "grants"));
    _cleanup_free_ char *rate = rate_text(ctl, json_object_get(user, "rate"));
    const json_t *enabled = json_object_get(user, "enabled");
    table_cell(t, "name");
    table_cell(t, text_at(user, "name"));
    table_cell(t, "kind");
    table_cell(t, text_at(user, "kind"));
    table_cell(t, "enabled");
    table_cell(t, json_is_false(enabled) ? "no" : "yes");
    table_cell(t, "roles");
    table_cell(t, roles);
    table_cell(t, "grants");
    table_cell(t, grants);
    put_rate(t, rate);
    print_keys(t, json_object_get(user, "keys"));
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}
