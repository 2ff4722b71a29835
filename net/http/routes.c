/* Route tables as documents. */
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "net/http/handler.h"

static const struct {
    enum http_net net;
    const char *name;
} nets[] = {{NET_PUBLIC, "public"}, {NET_CONTROL, "control"}, {NET_DATA, "data"}, {NET_S3, "S3"}};

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void put_nets(unsigned mask, struct buf *out)
{
    const char *separator = "";
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        if ((mask & nets[i].net) == 0)
            continue;
        buf_printf(out, "%s%s", separator, nets[i].name);
        separator = ", ";
    }
}

static void put_line(struct buf *out, const char *label, const char *text)
{
    if (text != NULL && text[0] != '\0')
        buf_printf(out, "- %s: %s\n", label, text);
}

/* "`offset`=bytes; `length`=bytes" */
static void put_parameters(const struct http_parameter *p, struct buf *out)
{
    for (const char *separator = ""; p != NULL && p->name != NULL; p++, separator = "; ") {
        if (strcmp(p->name, HTTP_ANY_PARAMETER) == 0)
            buf_printf(out, "%s%s", separator, p->value);
        else
            buf_printf(out, "%s`%s`=%s", separator, p->name, p->value);
    }
}

/* What the listeners between nodes ask for. */
static const char *proof_of(const struct http_route *r)
{
    if ((r->nets & (NET_CONTROL | NET_DATA)) == 0)
        return NULL;
    if (r->open)
        return "open: no signature is needed";
    return r->fenced ? "signed by a node (Dfc-Auth), of a term that is not over"
                     : "signed by a node (Dfc-Auth)";
}

/* What access control asks for on the public listener. */
static const char *right_of(const struct http_route *r)
{
    return (r->nets & NET_CLIENTS) != 0 ? right_name(r->right) : NULL;
}

static void put_route(const struct http_route *r, struct buf *out)
{
    _cleanup_(buf_done)
    struct buf query = BUF_INIT;
    put_parameters(r->query, &query);
    buf_printf(out, "### %s\n\n`%s %s`\n\n%s\n\n", r->name, http_method_name(r->method), r->pattern,
               text_or_empty(r->summary));
    buf_puts(out, "- Listeners: ");
    put_nets(r->nets, out);
    buf_putc(out, '\n');
    put_line(out, "Right", right_of(r));
    put_line(out, "Between nodes", proof_of(r));
    put_line(out, "Query", buf_str(&query));
    put_line(out, "Body", r->body);
    put_line(out, "Reply", r->reply);
    put_line(out, "Errors", r->errors);
    buf_putc(out, '\n');
}

void http_routes_markdown(const struct http_route *const *tables, struct buf *out)
{
    for (; *tables != NULL; tables++) {
        for (const struct http_route *r = *tables; r->name != NULL; r++)
            put_route(r, out);
    }
}

static json_t *route_nets_json(unsigned mask)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        if ((mask & nets[i].net) != 0)
            json_array_append_new(list, json_string(nets[i].name));
    }
    return list;
}

static json_t *parameters_json(const struct http_parameter *p)
{
    json_t *list = json_array();
    for (; p != NULL && p->name != NULL; p++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", p->name, "value", p->value));
    return list;
}

static json_t *route_json(const struct http_route *r)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:b, s:b, s:b, s:s, s:o, s:s, s:s, s:s}", "name",
                     r->name, "method", http_method_name(r->method), "path", r->pattern,
                     "listeners", route_nets_json(r->nets), "right", right_name(r->right), "open",
                     r->open, "any_cluster", r->any_cluster, "fenced", r->fenced, "summary",
                     text_or_empty(r->summary), "query", parameters_json(r->query), "body",
                     text_or_empty(r->body), "reply", text_or_empty(r->reply), "errors",
                     text_or_empty(r->errors));
}

json_t *http_routes_json(const struct http_route *const *tables)
{
    json_t *routes = json_array();
    for (; *tables != NULL; tables++) {
        for (const struct http_route *r = *tables; r->name != NULL; r++)
            json_array_append_new(routes, route_json(r));
    }
    return json_pack("{s:o}", "routes", routes);
}
