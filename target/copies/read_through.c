#include "target/copies/read_through.h"

#include <string.h>
#include <strings.h>

#include "cluster/members/location.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/http/pipe.h"
#include "target/node/call.h"
#include "target/copies/held.h"
#include "target/node/reply.h"
#include "target/node/target.h"
#include "target/store/own_meta.h"

enum { PIPE_BYTES = 256 << 10, LINES_MAX = 8 };

struct through {
    struct object_call *call; /* until it is answered */
    struct target *target;
    char *node;
    char *url;
    struct version version; /* that is wanted, where owners were compared */
    struct bpipe *pipe;
    bool replied;
    bool gone; /* it is not there any more */
    bool old;  /* the node does not know members */
};

static void through_free(struct through *h)
{
    bpipe_unref(h->pipe);
    free(h->node);
    free(h->url);
    free(h);
}

/* In any case: headers are not told apart by it. */
static bool is_own_meta(const char *pair)
{
    for (const struct own_meta *own = own_metas; own->name != NULL; own++) {
        if (strcasecmp(own->name, pair) == 0)
            return true;
    }
    return false;
}

/* The rest of the connection's own; Dfc-Node and X-Request-Id are ours. */
static bool passes(const char *name)
{
    static const char *const own[] = {"Connection", "Keep-Alive",        "Content-Length",
                                      "Date",       "Transfer-Encoding", "Server",
                                      "Dfc-Node",   "X-Request-Id"};
    size_t prefix = strlen(OBJECT_META_PREFIX);
    if (strncasecmp(name, OBJECT_META_PREFIX, prefix) == 0)
        return !is_own_meta(name + prefix);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcasecmp(name, own[i]) == 0)
            return false;
    }
    return true;
}

static void copy_header(void *ctx, const char *name, const char *value)
{
    struct http_request *req = ctx;
    if (passes(name))
        http_reply_header(req, name, value);
}

bool read_through_is_gone(const struct version *wanted, int status, const char *sent)
{
    struct version version;
    if (status == 404)
        return sent == NULL;
    if (wanted == NULL)
        return false;
    if (status != 200 && status != 206)
        return status >= 500;
    return sent == NULL || version_parse(sent, &version, NULL) != 0 ||
           version_compare(&version, wanted) != 0;
}

/* Its bytes are not wanted. */
static void refuse_old(const struct through *h)
{
    struct error err;
    error_set(&err, E_CANCELLED, "target '%s' is of a release that does not know members", h->node);
    bpipe_cancel(h->pipe, &err);
}

/* In the data loop's thread; the request is parked. */
static void on_head(void *arg, const struct http_head *head)
{
    struct through *h = arg;
    h->gone = read_through_is_gone(h->call->read.compared ? &h->version : NULL, head->status,
                                   head->header(head, "Dfc-Version"));
    h->old = object_call_wants_members(h->call) && head->status < 300 &&
             head->header(head, ARCHIVE_HEADER) == NULL;
    if (h->gone)
        return;
    if (h->old) {
        refuse_old(h);
        return;
    }
    struct http_request *req = h->call->req;
    h->replied = true;
    head->each_header(head, copy_header, req);
    if (head->status == 204 || head->status == 304)
        http_reply_empty(req, head->status);
    else
        http_reply_pipe(req, head->status, head->content_length, h->pipe);
}

static void serve_here(void *arg)
{
    struct through *h = arg;
    log_set_request(http_request_id(h->call->req));
    h->call->read.here(h->call);
    log_set_request(NULL);
    through_free(h);
}

static void ended(void *arg, struct http_result *r)
{
    struct through *h = arg;
    struct error err = ERROR_INIT;
    if (!h->replied && h->gone && pool_submit(h->target->workers, serve_here, h, &err) == 0)
        return;
    if (!h->replied && err.code == 0 && h->old)
        error_set(&err, E_NOT_READY,
                  "target '%s', which has the archive, is of a release that does "
                  "not know members",
                  h->node);
    if (!h->replied && err.code == 0)
        error_set(&err, E_NODE_UNREACHABLE, "target '%s' has it, and does not answer: %s", h->node,
                  r->err.message);
    if (!h->replied)
        object_call_fail(h->call, "get", &err);
    through_free(h);
}

/* What the client asks of the object goes along; and the version, where only that is to be read. */
static void add_lines(struct object_call *call, const struct earlier_answer *from,
                      const char **lines)
{
    char version[VERSION_TEXT_MAX];
    static const char *const names[] = {
        "Range",         "If-Range",          "If-Match",
        "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = http_header_list(call->req, names[i]);
        if (value != NULL)
            lines[count++] = arena_printf(http_arena(call->req), "%s: %s", names[i], value);
    }
    if (call->read.compared)
        lines[count++] = arena_printf(http_arena(call->req), "Dfc-Version: %s",
                                      version_format(&from->held.version, version));
    lines[count] = NULL;
}

static char *url_of(const struct object_call *call, const struct earlier_answer *from)
{
    static const char *const ours[] = {"dfcb", "dfcv", "redirect", NULL};
    char separator = '?';
    struct buf url = BUF_INIT;
    buf_puts(&url, from->data_url);
    location_put_object(&url, call->bucket->name, call->name);
    location_put_query(&url, http_raw_query(call->req), ours, &separator);
    location_put_version(&url, call->state, call->bucket->id, &separator);
    return buf_steal(&url);
}

void read_through_begin(struct object_call *call, const struct earlier_answer *from)
{
    struct through *h = xcalloc(1, sizeof *h);
    *h = (struct through){.call = call,
                          .target = call->target,
                          .node = xstrdup(from->node),
                          .url = url_of(call, from),
                          .version = from->held.version,
                          .pipe = bpipe_new(PIPE_BYTES)};
    const char *lines[LINES_MAX];
    add_lines(call, from, lines);
    const struct http_call get = {.method = http_method(call->req),
                                  .url = h->url,
                                  .node = h->node,
                                  .headers = lines,
                                  .download = h->pipe,
                                  .any_status_streams = true,
                                  .on_head = on_head,
                                  .request_id = http_request_id(call->req)};
    http_call_start(h->target->data_client, &get, ended, h);
}
