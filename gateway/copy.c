/* Both calls run in the client's loop, whose thread alone touches a copy after its start.
 *
 *   start ─▶ GET ── its head ──▶ PUT begins ──▶ both have ended ─▶ reply
 *             │ 307: the next target      │
 *             └ an error: reply           └ the call that fails first says why: its end of the pipe
 *                                           ends the other one
 *
 * A request whose body is over does not end before its reply. */
#include "gateway/copy.h"

#include <string.h>
#include <strings.h>

#include "access/guard.h"
#include "common/clock.h"
#include "common/mem.h"
#include "gateway/body.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "gateway/tags_head.h"
#include "gateway/target_call.h"
#include "gateway/uploads/upload_call.h"
#include "gateway/uploads/uploads.h"
#include "net/client/client.h"
#include "plog/type.h"
#include "s3/copy_reply.h"
#include "s3/copy_source.h"
#include "s3/uploads/sum_kind.h"

#define SOURCE_MAX ((int64_t)5 << 30)

enum { OVERTAKEN_MAX = 20 };

struct copy {
    struct gateway *gateway;
    struct http_request *req;      /* ends at any moment after its reply … */
    const struct gateway_call *s3; /* … and this with it */
    struct s3_copy_source source;
    const char *part;     /* of an upload: "part=3"; NULL: the copy is an object */
    bool replaces;        /* the metadata */
    bool replaces_tags;   /* by those of the request, or … */
    const char *new_tags; /* … by these, which is all that the copy is for */
    void (*reply_tagged)(struct http_request *req);
    unsigned overtaken;        /* so many times, by other writes */
    bool is_tagged;            /* the object has the tags already */
    bool wants_sum;            /* a checksum … */
    enum s3_sum_type sum_type; /* … of this type */
    struct arena *arena;
    struct http_call read, write;
    struct bpipe *pipe;                    /* between the two; NULL before the first */
    struct native_head get_head, put_head; /* the arena's */
    unsigned hops, running;                /* redirects of the read; calls that have not ended */
    struct target_call_header *found, *stored;
    const char *tag; /* of a stored part … */
    bool has_sum;    /* … and its checksum */
    struct s3_object_sum sum;
    struct error err;      /* the first failure … */
    struct s3_failure why; /* … and what S3 says, where the code has not its word */
};

static void copy_free(struct copy *c)
{
    gateway_leave_forward(c->gateway);
    bpipe_unref(c->pipe);
    arena_free(c->arena);
    free(c);
}

/* --- the reply -------------------------------------------------------------------------------- */

/* The time of what only a backend has stored is not known here: it is now. */
static int64_t stored_ms(const struct copy *c)
{
    const char *text = target_call_header(c->stored, "Last-Modified");
    int64_t seconds;
    if (text == NULL || clock_parse_http(text, &seconds) != 0)
        return (int64_t)clock_wall_ms();
    return seconds * 1000;
}

static void reply_copied(struct copy *c)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    struct s3_object_sum sum;
    bool has_sum = native_head_sum(c->stored, &sum);
    const struct s3_copied copied = {.modified_ms = stored_ms(c),
                                     .etag = native_head_bare_etag(c->stored, c->arena),
                                     .sum = has_sum ? &sum : NULL};
    s3_copied_document(&copied, &document);
    gateway_reply_xml(c->req, &document);
}

static void reply_copied_part(struct copy *c)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    const struct s3_copied copied = {
        .modified_ms = stored_ms(c), .etag = c->tag, .sum = c->has_sum ? &c->sum : NULL};
    s3_copied_part_document(&copied, &document);
    gateway_reply_xml(c->req, &document);
}

static void end(struct copy *c)
{
    if (c->err.code != 0 && c->why.error == S3_OK && !c->is_tagged)
        upload_call_failure(&c->err, &c->why);
    if (c->why.error != S3_OK)
        gateway_fail(c->req, &c->why);
    else if (c->part != NULL)
        reply_copied_part(c);
    else if (c->is_tagged || c->new_tags != NULL)
        c->reply_tagged(c->req);
    else
        reply_copied(c);
    copy_free(c);
}

/* New tags are for the newest version.  Of several writers at once, one gets on. */
static bool is_overtaken(struct copy *c)
{
    if (c->new_tags == NULL || c->err.code != E_PRECONDITION)
        return false;
    if (c->overtaken++ < OVERTAKEN_MAX)
        return true;
    error_set(&c->err, E_NOT_READY, "the object is written all the time; send the request again");
    return false;
}

static void start_over(struct copy *c);

static void call_ended(struct copy *c, const struct error *err)
{
    if (c->err.code == 0)
        c->err = *err;
    if (--c->running > 0)
        return;
    if (is_overtaken(c))
        start_over(c);
    else
        end(c);
}

/* --- the PUT ---------------------------------------------------------------------------------- */

static void write_head(void *arg, const struct http_head *head)
{
    struct copy *c = arg;
    c->stored = target_call_headers(c->arena, head);
}

/* The checksum was the source's: the caller has sent none. */
static void write_done(void *arg, struct http_result *result)
{
    struct copy *c = arg;
    struct error err = ERROR_INIT;
    if (target_call_error(result, c->write.url, &err) == E_CHECKSUM)
        error_recode(&err, E_CORRUPT, "the source has not the bytes that were stored");
    if (err.code == 0 && c->part != NULL)
        (void)upload_reply_read(&result->body, c->arena, &c->tag, &c->sum, &c->has_sum, &err);
    call_ended(c, &err);
}

static void add_checksum(struct copy *c)
{
    static const char *const names[] = {"Dfc-Checksum-Type", "Dfc-Checksum-Value"};
    const char *type = target_call_header(c->found, names[0]);
    const char *value = target_call_header(c->found, names[1]);
    if (type == NULL || value == NULL)
        return;
    native_head_add(&c->put_head, names[0], type);
    native_head_add(&c->put_head, names[1], value);
}

/* S3's checksum: that of the source, or the one that the request wants.  The parts of the source
 * are none of the copy, which gets a checksum of all bytes. */
static void add_sum(struct copy *c)
{
    struct s3_object_sum found;
    bool has_sum = native_head_sum(c->found, &found);
    struct s3_sum_text sum = {.value.type = c->sum_type};
    if (has_sum && (!c->wants_sum || found.value.type == c->sum_type))
        sum = (struct s3_sum_text){.is_known = found.parts == 0, .value = found.value};
    if (has_sum || c->wants_sum)
        native_head_add_sum(&c->put_head, &sum);
}

/* The request's are in the head already. */
static void add_tags(struct copy *c)
{
    if (!c->replaces_tags)
        tags_head_add(&c->put_head, c->new_tags != NULL ? c->new_tags : tags_head_of(c->found));
}

/* The version that was read; a backend may give none. */
static void add_version(struct copy *c)
{
    const char *tag = target_call_header(c->found, "ETag");
    if (c->new_tags != NULL && tag != NULL)
        native_head_add(&c->put_head, "If-Match", tag);
}

/* A part has none of these. */
static void add_content(struct copy *c)
{
    if (!c->replaces)
        native_head_content_of(&c->put_head, c->found);
    add_tags(c);
    add_version(c);
    add_checksum(c);
    add_sum(c);
}

static void start_write(struct copy *c, int64_t length)
{
    if (c->part == NULL)
        add_content(c);
    c->write.headers = c->put_head.lines;
    c->write.upload = length != 0 ? c->pipe : NULL;
    c->write.upload_length = length;
    c->write.once = length == 0; /* with bytes it cannot be repeated anyway */
    c->running++;
    http_call_start(gateway_config_of(c->gateway)->client, &c->write, write_done, c);
}

/* --- the GET ---------------------------------------------------------------------------------- */

/* The pipe is the reader's to leave: the call ends. */
static void stop_reading(struct copy *c, const char *why)
{
    struct error err = ERROR_INIT;
    error_set(&err, E_CANCELLED, "%s", why);
    bpipe_cancel(c->pipe, &err);
}

static void refuse_source(struct copy *c, enum s3_error error, const char *why)
{
    s3_fail(&c->why, error, "%s", why);
    stop_reading(c, c->why.message);
}

/* Two heads of one plog: the removal of one would drop the bytes of the other. */
static bool is_head_of_plog(const struct copy *c)
{
    const char *type = target_call_header(c->found, "Content-Type");
    return c->new_tags == NULL && type != NULL && strcmp(type, PLOG_TYPE) == 0;
}

/* A range that the source has not, or not all of, and a server that sends another. */
static bool is_as_asked(const struct copy *c, const struct http_head *head)
{
    const struct s3_copy_source *s = &c->source;
    const char *range = target_call_header(c->found, "Content-Range");
    const char *wanted = arena_printf(c->arena, "bytes %llu-%llu/", (unsigned long long)s->first,
                                      (unsigned long long)s->last);
    if (!s->has_range)
        return head->status == 200;
    return head->status == 206 && range != NULL && strncmp(range, wanted, strlen(wanted)) == 0;
}

static void read_head(void *arg, const struct http_head *head)
{
    struct copy *c = arg;
    c->found = target_call_headers(c->arena, head);
    if (head->status < 200 || head->status > 299)
        return;
    c->is_tagged = c->new_tags != NULL && strcmp(c->new_tags, tags_head_of(c->found)) == 0;
    if (!is_as_asked(c, head))
        refuse_source(c, S3_INVALID_RANGE, "x-amz-copy-source-range is not within the source");
    else if (is_head_of_plog(c))
        refuse_source(c, S3_INVALID_REQUEST,
                      "The source is a plog, whose bytes are in other objects: copy it with "
                      "'dfcctl plog cp'");
    else if (c->is_tagged)
        stop_reading(c, "the object has the tags");
    else if (c->new_tags == NULL && head->content_length > SOURCE_MAX)
        refuse_source(c, S3_INVALID_REQUEST,
                      "The source of a copy has at most 5 GiB; a larger one is copied in parts");
    else
        start_write(c, head->content_length);
}

static void read_done(void *arg, struct http_result *result);

static void start_read(struct copy *c)
{
    const struct gateway_config *config = gateway_config_of(c->gateway);
    bpipe_unref(c->pipe); /* of a call that was sent on: nobody has it */
    c->pipe = bpipe_new(config->buffer_bytes);
    c->read.download = c->pipe;
    c->read.headers = c->get_head.lines;
    http_call_start(config->client, &c->read, read_done, c);
}

static void start_over(struct copy *c)
{
    c->err = ERROR_INIT;
    c->running = 1;
    c->hops = 0;
    c->found = c->stored = NULL;
    native_head_begin(&c->put_head, c->arena);
    start_read(c);
}

/* A source that has not changed is a condition that does not hold. */
static void read_done(void *arg, struct http_result *result)
{
    struct copy *c = arg;
    struct error err = ERROR_INIT;
    const char *next = target_call_next(result, c->found, c->hops);
    if (next != NULL) {
        c->hops++;
        c->read.url = next;
        start_read(c);
        return;
    }
    if (target_call_error(result, c->read.url, &err) == E_NOT_MODIFIED)
        error_recode(&err, E_PRECONDITION, "the source");
    call_ended(c, &err);
}

/* --- the start -------------------------------------------------------------------------------- */

static enum s3_error read_directive(const struct gateway_call *call, const char *header,
                                    bool *replaces, struct s3_failure *why)
{
    const char *text = s3_header(&call->head, header);
    *replaces = text != NULL && strcmp(text, "REPLACE") == 0;
    if (text == NULL || *replaces || strcmp(text, "COPY") == 0)
        return S3_OK;
    return s3_fail(why, S3_INVALID_ARGUMENT, "%s must be COPY or REPLACE", header);
}

static enum s3_error read_algorithm(struct copy *c, struct s3_failure *why)
{
    const char *text = s3_header(&c->s3->head, "x-amz-checksum-algorithm");
    c->wants_sum = text != NULL;
    return text == NULL || s3_sum_type_find(text, &c->sum_type)
               ? S3_OK
               : s3_fail(why, S3_INVALID_REQUEST,
                         "The algorithm %.64s in x-amz-checksum-algorithm is not known", text);
}

static enum s3_error check_source(const struct copy *c, struct s3_failure *why)
{
    const struct s3_call *to = &c->s3->s3;
    if (c->source.has_range)
        return s3_fail(why, S3_INVALID_REQUEST, "Only a part is copied from a range of the source");
    if (c->replaces || strcmp(c->source.bucket, to->bucket) != 0 ||
        strcmp(c->source.key, to->key) != 0)
        return S3_OK;
    return s3_fail(why, S3_INVALID_REQUEST,
                   "An object can be copied to itself only with x-amz-metadata-directive: REPLACE");
}

/* What a copy to an object has, and one to a part has not. */
static enum s3_error read_object(struct copy *c, struct s3_failure *why)
{
    const struct gateway_call *call = c->s3;
    enum s3_error e;
    if ((e = read_directive(call, "x-amz-metadata-directive", &c->replaces, why)) != S3_OK ||
        (e = read_directive(call, "x-amz-tagging-directive", &c->replaces_tags, why)) != S3_OK ||
        (e = read_algorithm(c, why)) != S3_OK)
        return e;
    return check_source(c, why);
}

static enum s3_error read_request(struct copy *c, struct s3_failure *why)
{
    const struct gateway_call *call = c->s3;
    enum s3_error e;
    if ((e = body_check_none(c->req, call, why)) != S3_OK ||
        (e = s3_copy_source_read(&call->head, http_arena(c->req), &c->source, why)) != S3_OK)
        return e;
    return call->s3.op == S3_OP_CopyObject ? read_object(c, why)
                                           : upload_part_query(call, c->arena, &c->part, why);
}

static int put_write_url(struct copy *c, struct buf *url, struct error *err)
{
    const struct target_call object = {
        .method = HTTP_PUT, .bucket = c->s3->s3.bucket, .key = c->s3->s3.key};
    const struct upload_call part = {
        .method = HTTP_PUT, .upload = upload_id_of(c->s3), .query = c->part};
    return c->part == NULL ? target_call_url(c->req, c->gateway, &object, url, err)
                           : upload_call_url(c->req, c->s3, &part, url, err);
}

static int set_urls(struct copy *c, const char *range, struct error *err)
{
    _cleanup_buf_ struct buf from = BUF_INIT, to = BUF_INIT;
    const struct target_call read = {
        .method = HTTP_GET, .bucket = c->source.bucket, .key = c->source.key, .range = range};
    int code = c->new_tags == NULL /* which give nothing of the source away */
                   ? guard_ask(c->req, RIGHT_READ, c->source.bucket, c->source.key, err)
                   : 0;
    if (code == 0)
        code = target_call_url(c->req, c->gateway, &read, &from, err);
    if (code == 0)
        code = put_write_url(c, &to, err);
    c->read.url = arena_strdup(c->arena, buf_str(&from));
    c->write.url = arena_strdup(c->arena, buf_str(&to));
    return code;
}

/* NULL: all of the source. */
static const char *range_of(const struct copy *c)
{
    const struct s3_copy_source *s = &c->source;
    return s->has_range ? arena_printf(c->arena, "bytes=%llu-%llu", (unsigned long long)s->first,
                                       (unsigned long long)s->last)
                        : NULL;
}

static void set_calls(struct copy *c)
{
    const char *request_id = arena_strdup(c->arena, http_request_id(c->req));
    c->read = (struct http_call){.method = HTTP_GET, .on_head = read_head};
    c->write = (struct http_call){.method = HTTP_PUT, .on_head = write_head};
    c->read.to_public = c->write.to_public = true;
    c->read.request_id = c->write.request_id = request_id;
    native_head_begin(&c->get_head, c->arena);
    native_head_begin(&c->put_head, c->arena);
}

/* What the request says of the two objects. */
static enum s3_error set_heads(struct copy *c, struct s3_failure *why)
{
    enum s3_error e = S3_OK;
    const char *range = range_of(c);
    native_head_conditions_of_source(&c->get_head, c->s3);
    if (range != NULL)
        native_head_add(&c->get_head, "Range", range);
    if (c->part != NULL)
        return S3_OK;
    native_head_conditions_of_write(&c->put_head, c->s3);
    if (c->replaces)
        e = native_head_content(&c->put_head, c->s3, why);
    if (e == S3_OK && c->replaces_tags)
        e = tags_head_add_asked(&c->put_head, c->s3, why);
    return e;
}

static void refuse(struct copy *c, const struct s3_failure *why)
{
    struct http_request *req = c->req;
    copy_free(c);
    gateway_fail(req, why);
}

/* NULL: it has been replied to. */
static struct copy *begin(struct http_request *req, const struct gateway_call *call)
{
    struct error err = ERROR_INIT;
    if (!gateway_enter_forward(call->gateway)) {
        error_set(&err, E_OVERLOAD, "s3_forwards_max requests are under way");
        http_reply_error(req, &err);
        return NULL;
    }
    struct copy *c = xcalloc(1, sizeof *c);
    *c = (struct copy){
        .gateway = call->gateway, .req = req, .s3 = call, .arena = arena_new(1024), .running = 1};
    set_calls(c);
    return c;
}

static void start(struct copy *c)
{
    struct error err = ERROR_INIT;
    struct s3_failure why;
    if (set_urls(c, range_of(c), &err) == 0) {
        start_read(c);
    } else {
        upload_call_failure(&err, &why);
        refuse(c, &why);
    }
}

void s3_copy_object(struct http_request *req, const struct gateway_call *call)
{
    struct s3_failure why;
    struct copy *c = begin(req, call);
    if (c == NULL)
        return;
    if (read_request(c, &why) == S3_OK && set_heads(c, &why) == S3_OK)
        start(c);
    else
        refuse(c, &why);
}

void copy_with_tags(struct http_request *req, const struct gateway_call *call,
                    const struct s3_tags *tags, void (*reply)(struct http_request *req))
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct copy *c = begin(req, call);
    if (c == NULL)
        return;
    s3_tags_print(tags, &text);
    c->source = (struct s3_copy_source){.bucket = call->s3.bucket, .key = call->s3.key};
    c->new_tags = arena_strdup(c->arena, buf_str(&text));
    c->reply_tagged = reply;
    start(c);
}
