/* A tree of segments.  Each node has its literal children, at most one child for `{x}` and at most
 * one for `{x...}`, and the routes that end at it, one for each method.  A search goes down the
 * literals first and comes back for the parameters, so that it finds the most literal pattern; the
 * patterns of a program are few and shallow, and the way down is nearly always the only one. */
#include "net/http/router.h"

#include <assert.h>
#include <stdbool.h>

#include "common/cleanup.h"
#include "common/mem.h"

struct node {
    const char *literal; /* a piece of a pattern; NULL for a parameter */
    size_t len;
    struct node *next; /* sibling among the literals */
    struct node *literals;
    struct node *param;
    struct node *rest;
    unsigned methods;        /* bits of those that have a route */
    size_t routes[HTTP_ANY]; /* index; valid where the bit is set */
};

struct route_row {
    const struct http_route *route;
    size_t param_count;
    struct router_param params[ROUTER_PARAMS_MAX]; /* the names */
};

struct router {
    struct node root;
    size_t count;
    struct route_row *rows;
};

/* --- building --------------------------------------------------------------------------------- */

static void node_free_children(struct node *n);

static void node_free(struct node *n)
{
    if (n == NULL)
        return;
    node_free_children(n);
    free(n);
}

static void node_free_children(struct node *n)
{
    for (struct node *child = n->literals; child != NULL;) {
        struct node *next = child->next;
        node_free(child);
        child = next;
    }
    node_free(n->param);
    node_free(n->rest);
}

void router_free(struct router *r)
{
    if (r == NULL)
        return;
    node_free_children(&r->root);
    free(r->rows);
    free(r);
}
DEFINE_CLEANUP(struct router, router_free);

static struct node *node_literal(struct node *n, const char *text, size_t len)
{
    struct node **at = &n->literals;
    for (; *at != NULL; at = &(*at)->next) {
        if ((*at)->len == len && memcmp((*at)->literal, text, len) == 0)
            return *at;
    }
    *at = xcalloc(1, sizeof **at);
    (*at)->literal = text;
    (*at)->len = len;
    return *at;
}

static struct node *node_slot(struct node **slot)
{
    if (*slot == NULL)
        *slot = xcalloc(1, sizeof **slot);
    return *slot;
}

/* The child of `n` for a segment of a pattern.  NULL: malformed. */
static struct node *node_child(struct node *n, const char *text, size_t len, struct route_row *row)
{
    if (memchr(text, '{', len) == NULL && memchr(text, '}', len) == NULL)
        return node_literal(n, text, len);
    bool whole = len >= 3 && text[0] == '{' && text[len - 1] == '}';
    if (!whole || row->param_count == ROUTER_PARAMS_MAX)
        return NULL;
    size_t name_len = len - 2;
    bool rest = name_len > 3 && memcmp(text + len - 4, "...", 3) == 0;
    row->params[row->param_count++] =
        (struct router_param){.name = text + 1, .name_len = rest ? name_len - 3 : name_len};
    if (!rest)
        return node_slot(&n->param);
    return text[len] == '\0' ? node_slot(&n->rest) : NULL; /* only as the last */
}

/* The route ends at this node, for its method or for all. */
static int router_end(struct router *r, struct node *n, const struct http_route *route,
                      struct error *err)
{
    bool any = route->method == HTTP_ANY;
    enum http_method first = any ? HTTP_GET : route->method;
    enum http_method last = any ? HTTP_OTHER : route->method;
    for (enum http_method m = first; m <= last; m++) {
        if ((n->methods & (1u << m)) != 0)
            return error_set(err, E_INVALID, "routes '%s' and '%s' are the same call", route->name,
                             r->rows[n->routes[m]].route->name);
        n->methods |= 1u << m;
        n->routes[m] = r->count;
    }
    r->count++;
    return 0;
}

static int router_add(struct router *r, const struct http_route *route, struct error *err)
{
    struct route_row *row = &r->rows[r->count];
    *row = (struct route_row){.route = route};
    struct node *n = &r->root;
    size_t depth = 0;
    const char *at = route->pattern;
    bool is_public = (route->nets & NET_CLIENTS) != 0;
    if (route->right == RIGHT_UNSET || (route->right == RIGHT_NODE && is_public))
        return error_set(err, E_INVALID, "route '%s' does not say which right a user needs",
                         route->name);
    while (n != NULL && *at == '/' && ++depth <= ROUTER_SEGMENTS_MAX) {
        size_t len = strcspn(++at, "/");
        bool is_root = depth == 1 && *at == '\0';
        if (!is_root)
            n = len > 0 ? node_child(n, at, len, row) : NULL;
        at += len;
    }
    if (n == NULL || *at != '\0' || depth == 0 || route->method == HTTP_OTHER)
        return error_set(err, E_INVALID, "route '%s': pattern '%s' is malformed", route->name,
                         route->pattern);
    return router_end(r, n, route, err);
}

static size_t tables_count(const struct http_route *const *tables)
{
    size_t count = 0;
    for (; *tables != NULL; tables++) {
        for (const struct http_route *route = *tables; route->name != NULL; route++)
            count++;
    }
    return count;
}

int router_new(const struct http_route *const *tables, unsigned nets, struct router **out,
               struct error *err)
{
    _cleanup_(router_freep)
    struct router *r = xcalloc(1, sizeof *r);
    r->rows = xcalloc(tables_count(tables) + 1, sizeof r->rows[0]);
    for (; *tables != NULL; tables++) {
        for (const struct http_route *route = *tables; route->name != NULL; route++) {
            if ((route->nets & nets) == 0 && !(route->admin && (nets & NET_ADMIN) != 0))
                continue;
            int rc = router_add(r, route, err);
            if (rc != 0)
                return rc;
        }
    }
    *out = steal(r);
    return 0;
}

size_t router_count(const struct router *r)
{
    return r->count;
}

const struct http_route *router_route(const struct router *r, size_t index)
{
    assert(index < r->count);
    return r->rows[index].route;
}

/* --- finding ---------------------------------------------------------------------------------- */

struct search {
    enum http_method method;
    unsigned allowed; /* methods of the patterns that match the path */
    const struct node *found;
    struct router_param params[ROUTER_PARAMS_MAX];
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Whether a segment of a path, unescaped, is this literal. */
static bool segment_is(const char *text, size_t len, const char *literal, size_t literal_len)
{
    if (memchr(text, '%', len) == NULL)
        return len == literal_len && memcmp(text, literal, len) == 0;
    size_t at = 0;
    for (size_t i = 0; i < literal_len; i++) {
        if (at == len)
            return false;
        int c = (unsigned char)text[at];
        if (c == '%') {
            int high = len - at > 2 ? hex_digit(text[at + 1]) : -1;
            int low = len - at > 2 ? hex_digit(text[at + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = high * 16 + low;
            at += 2;
        }
        at++;
        if (c != (unsigned char)literal[i])
            return false;
    }
    return at == len;
}

/* The path ends at this node.  True ends the search. */
static bool search_ends(struct search *s, const struct node *n)
{
    s->allowed |= n->methods;
    if ((n->methods & (1u << s->method)) == 0)
        return false;
    s->found = n;
    return true;
}

/* `path` begins with the slash before the next segment, or is at its end.  The depth of the
 * recursion is the patterns', not the path's. */
static bool search(struct search *s, const struct node *n, const char *path, const char *end,
                   size_t params)
{
    if (path == end)
        return search_ends(s, n);
    const char *text = path + 1;
    size_t left = (size_t)(end - text);
    const char *slash = left > 0 ? memchr(text, '/', left) : NULL;
    size_t len = slash != NULL ? (size_t)(slash - text) : left;
    for (const struct node *child = n->literals; len > 0 && child != NULL; child = child->next) {
        if (segment_is(text, len, child->literal, child->len) &&
            search(s, child, text + len, end, params))
            return true;
    }
    if (len > 0 && n->param != NULL) {
        s->params[params] = (struct router_param){.text = text, .len = len};
        if (search(s, n->param, text + len, end, params + 1))
            return true;
    }
    if (left > 0 && n->rest != NULL) {
        s->params[params] = (struct router_param){.text = text, .len = left};
        if (search_ends(s, n->rest))
            return true;
    }
    return left == 0 && search_ends(s, n); /* one slash too many at the end */
}

int router_find(const struct router *r, enum http_method method, const char *path, size_t len,
                struct router_match *out)
{
    struct search s = {.method = method};
    bool found = len > 0 && path[0] == '/' && search(&s, &r->root, path, path + len, 0);
    out->allowed = s.allowed;
    out->route = NULL;
    out->param_count = 0;
    if (!found)
        return s.allowed != 0 ? E_METHOD : E_ROUTE;
    out->index = s.found->routes[method];
    const struct route_row *row = &r->rows[out->index];
    out->route = row->route;
    out->param_count = row->param_count;
    for (size_t i = 0; i < row->param_count; i++) {
        out->params[i] = row->params[i];
        out->params[i].text = s.params[i].text;
        out->params[i].len = s.params[i].len;
    }
    return 0;
}

void router_allow(unsigned allowed, struct buf *out)
{
    for (enum http_method m = 0; m < HTTP_OTHER; m++) {
        if ((allowed & (1u << m)) == 0)
            continue;
        if (out->len > 0)
            buf_puts(out, ", ");
        buf_puts(out, http_method_name(m));
    }
}
