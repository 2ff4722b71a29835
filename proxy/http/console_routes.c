#include "proxy/http/console_routes.h"

#include <string.h>

#include "console/console.h"
#include "proxy/primary/proxy.h"

/* No script, style or frame but the console's own; blobs are previews of objects. */
static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; img-src 'self' blob:; media-src 'self' blob:; object-src 'none'; "
     "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-cache"},
    {"Vary", "Accept-Encoding"},
};

static void refuse(struct http_request *req, const char *what)
{
    struct error err;
    error_set(&err, E_ROUTE, "%s", what);
    http_reply_error(req, &err);
}

static void reply_file(struct http_request *req, const struct console_file *f)
{
    const char *accepts = http_header(req, "Accept-Encoding");
    const char *has = http_header(req, "If-None-Match");
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        http_reply_constant(req, headers[i].name, headers[i].value);
    http_reply_constant(req, "ETag", f->etag);
    if (has != NULL && http_list_has(has, f->etag)) {
        http_reply_empty(req, 304);
        return;
    }
    bool packed = accepts != NULL && http_list_has(accepts, "gzip");
    if (packed)
        http_reply_constant(req, "Content-Encoding", "gzip");
    http_reply_data(req, 200, f->type, packed ? f->packed : f->plain,
                    packed ? f->packed_len : f->plain_len);
}

static void file_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    const char *path = http_path_param(req, "path");
    const struct console_file *f = console_find(path != NULL ? path : "");
    if (!p->params.console)
        refuse(req, "this proxy serves no web console (console=false)");
    else if (f == NULL)
        refuse(req, "the web console has no such file: it begins at /ui/");
    else
        reply_file(req, f);
}

/* The page names its files relative to /ui/. */
static void root_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    const char *path = http_path(req);
    if (p->params.console && path[strlen(path) - 1] != '/') {
        http_reply_constant(req, "Location", "/ui/");
        http_reply_empty(req, 308);
        return;
    }
    file_begin(req);
}

const struct http_route console_routes[] = {
    {.name = "console",
     .method = HTTP_GET,
     .pattern = "/ui",
     .nets = NET_PUBLIC,
     .right = RIGHT_NONE,
     .begin = root_begin,
     .summary = "The web console: a page for browsers, which makes public calls as its user.",
     .body = "",
     .reply = "HTML; 308 to `/ui/` without the slash at the end",
     .errors = "no_such_route (console=false)"},
    {.name = "console_file",
     .method = HTTP_GET,
     .pattern = "/ui/{path...}",
     .nets = NET_PUBLIC,
     .right = RIGHT_NONE,
     .begin = file_begin,
     .summary = "A file of the web console.",
     .body = "",
     .reply = "the file, with `ETag`; compressed by gzip where `Accept-Encoding` has it",
     .errors = "no_such_route"},
    {.name = NULL},
};
