#include "api/exchange.h"

#include "api/failure.h"
#include "api/uri.h"
#include "common/clock.h"

#define TRANSFER_MAGIC 0x7f3a91c5u

#define EXPECT_TIMEOUT_MS 3000       /* then the body goes without an invitation */
#define EXPECT_TIMEOUT_ONCE_MS 15000 /* where it can be sent only once */
#define OPEN_CONNECTIONS 64L         /* a handle's, to different nodes */

/* What curl's callbacks see. */
struct transfer {
    uint32_t magic;
    struct dfc_client *client;
    CURL *easy;
    const struct exchange *x;
    struct reply *reply;
    struct dfc_error *err;
    bool stopped;      /* err is final */
    bool begun;        /* the receiver knows the head */
    bool silent;       /* the idle timeout ran out */
    bool body_ended;   /* all of it was read */
    uint64_t moved_ms; /* when bytes moved last; time in our own callbacks does not count */
    uint32_t idle_ms;  /* the idle timeout */
    curl_off_t down;
    curl_off_t up;
};

void exchange_reply_done(struct reply *r)
{
    headers_done(&r->headers);
    buf_done(&r->text);
    r->status = 0;
}

static struct transfer *transfer_of(void *p)
{
    struct transfer *t = p;
    if (t->magic != TRANSFER_MAGIC)
        abort();
    return t;
}

static bool transfer_for_receiver(const struct transfer *t)
{
    return t->x->receiver != NULL && t->reply->status >= 200 && t->reply->status < 300;
}

static bool transfer_begin(struct transfer *t)
{
    if (t->begun)
        return true;
    t->begun = true;
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    t->reply->status = (int)status;
    if (transfer_for_receiver(t))
        t->stopped = t->x->receiver->begin(t->x->receiver_context, t->reply, t->err) != DFC_OK;
    return !t->stopped;
}

static bool transfer_keep_text(struct transfer *t, const char *data, size_t n)
{
    struct buf *text = &t->reply->text;
    bool error = t->reply->status >= 300;
    size_t room = (error ? REPLY_ERROR_BYTES : REPLY_TEXT_BYTES) - text->len;
    if (n > room && !error) {
        failure_set(t->err, DFC_FAILED, E_TOO_LARGE, "the reply is larger than %u MiB",
                    REPLY_TEXT_BYTES >> 20);
        t->stopped = true;
        return false;
    }
    buf_append(text, data, n < room ? n : room);
    return true;
}

static size_t on_header(char *line, size_t one, size_t n, void *p)
{
    (void)one;
    struct transfer *t = transfer_of(p);
    if (headers_add_line(&t->reply->headers, line, n))
        return n;
    failure_set(t->err, DFC_FAILED, E_HEADERS_TOO_LARGE, "the reply's headers are too large");
    t->stopped = true;
    return 0;
}

static size_t on_write(char *data, size_t one, size_t n, void *p)
{
    (void)one;
    struct transfer *t = transfer_of(p);
    if (!transfer_begin(t))
        return 0;
    if (!transfer_for_receiver(t))
        return transfer_keep_text(t, data, n) ? n : 0;
    t->stopped = t->x->receiver->write(t->x->receiver_context, data, n, t->err) != DFC_OK;
    t->moved_ms = clock_ms();
    return t->stopped ? 0 : n;
}

static size_t on_read(char *to, size_t one, size_t n, void *p)
{
    (void)one;
    struct transfer *t = transfer_of(p);
    ptrdiff_t got = body_read(t->x->body, to, n, t->err);
    t->moved_ms = clock_ms();
    t->body_ended = got == 0 || (int64_t)body_sent(t->x->body) == body_size(t->x->body);
    if (got < 0) {
        t->stopped = true;
        return CURL_READFUNC_ABORT;
    }
    if (t->x->progress != NULL) {
        int64_t size = body_size(t->x->body);
        t->x->progress(t->x->progress_context, body_sent(t->x->body),
                       size >= 0 ? (uint64_t)size : UINT64_MAX);
    }
    return (size_t)got;
}

/* curl asks when it repeats a request by itself, because a kept connection turned out dead. */
static int on_seek(void *p, curl_off_t offset, int origin)
{
    struct transfer *t = transfer_of(p);
    if (offset != 0 || origin != SEEK_SET || !body_repeatable(t->x->body))
        return CURL_SEEKFUNC_CANTSEEK;
    return body_begin(t->x->body, t->err) == DFC_OK ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static uint32_t idle_timeout_ms(const struct dfc_client *c, const struct exchange *x)
{
    return client_within_limit(c, x->idle_timeout_ms != 0 ? x->idle_timeout_ms
                                                          : client_idle_timeout_ms(c));
}

static int on_tick(void *p, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                   curl_off_t up)
{
    (void)down_total;
    (void)up_total;
    struct transfer *t = transfer_of(p);
    if (client_cancelled(t->client)) {
        client_say_cancelled(t->err);
        t->stopped = true;
        return 1;
    }
    uint64_t now = clock_ms();
    if (down != t->down || up != t->up) {
        t->down = down;
        t->up = up;
        t->moved_ms = now;
    }
    if (t->x->patient && t->body_ended)
        return 0;
    t->silent = now - t->moved_ms > t->idle_ms;
    return t->silent ? 1 : 0;
}

/* ---- options ---- */

static void set_method(CURL *e, const struct exchange *x)
{
    if (x->body != NULL)
        curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
    else if (strcmp(x->method, "HEAD") == 0)
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, x->method);
}

static void set_body(CURL *e, struct transfer *t)
{
    const struct body *b = t->x->body;
    if (b == NULL)
        return;
    bool once = !body_in_store(b);
    curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)body_size(b));
    curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(e, CURLOPT_READDATA, t);
    curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(e, CURLOPT_SEEKDATA, t);
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS,
                     (long)(once ? EXPECT_TIMEOUT_ONCE_MS : EXPECT_TIMEOUT_MS));
}

static void set_trust(CURL *e, const struct dfc_client *c)
{
    if (client_ca_file(c) != NULL)
        curl_easy_setopt(e, CURLOPT_CAINFO, client_ca_file(c));
    if (!client_is_insecure(c))
        return;
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
}

static void set_options(struct handle *h, struct transfer *t)
{
    CURL *e = h->easy;
    curl_easy_reset(e); /* keeps the connections */
    h->text[0] = '\0';
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, h->text);
    curl_easy_setopt(e, CURLOPT_URL, t->x->url);
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L); /* ".." is a plain part of an object's name */
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_PROXY, ""); /* bulk data does not go through $http_proxy */
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_MAXCONNECTS, OPEN_CONNECTIONS);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, t->x->fresh ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, t->x->patient ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)client_within_limit(t->client, client_connect_timeout_ms(t->client)));
    curl_easy_setopt(e, CURLOPT_USERAGENT, client_user_agent(t->client));
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->x->headers);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_tick);
    curl_easy_setopt(e, CURLOPT_XFERINFODATA, t);
    set_trust(e, t->client);
    set_method(e, t->x);
    set_body(e, t);
}

/* ---- the end ---- */

static bool nothing_was_sent(CURL *easy)
{
    long bytes = 0;
    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes == 0;
}

/* A refusal counts although the connection broke after it, under the body that we were sending. */
static bool was_refused(struct transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 400)
        return false;
    t->reply->status = (int)status;
    return true;
}

/* What to do about it, if that is known. */
static const char *advice(CURLcode code, const char *why)
{
    bool plain = code == CURLE_SSL_CONNECT_ERROR && strstr(why, "wrong version number") != NULL;
    return plain ? " (if the port speaks plain HTTP, use http://)" : "";
}

static enum exchange_end exchange_failed(struct transfer *t, struct handle *h, CURLcode code)
{
    const char *why = h->text[0] != '\0' ? h->text : curl_easy_strerror(code);
    _cleanup_free_ char *url = uri_for_people(t->x->url);
    if (nothing_was_sent(h->easy)) {
        failure_set(t->err, DFC_UNREACHABLE, E_NET, "%s: %s%s", url, why, advice(code, why));
        return EXCHANGE_UNSENT;
    }
    if (t->silent)
        failure_set(t->err, DFC_TIMED_OUT, E_TIMEOUT, "%s %s: silent for %u ms", t->x->method, url,
                    t->idle_ms);
    else
        failure_set(t->err, DFC_UNREACHABLE, E_NET, "%s %s: %s", t->x->method, url, why);
    return EXCHANGE_BROKEN;
}

enum exchange_end exchange_run(struct dfc_client *c, struct handle *h, const struct exchange *x,
                               struct reply *reply, struct dfc_error *err)
{
    struct dfc_error own;
    struct transfer t = {
        .magic = TRANSFER_MAGIC,
        .client = c,
        .easy = h->easy,
        .x = x,
        .reply = reply,
        .err = err != NULL ? err : &own,
        .moved_ms = clock_ms(),
        .idle_ms = idle_timeout_ms(c, x),
    };
    exchange_reply_done(reply);
    set_options(h, &t);
    CURLcode code = curl_easy_perform(h->easy);
    if (code == CURLE_OK)
        transfer_begin(&t); /* a reply without a body */
    if (t.stopped)
        return EXCHANGE_STOPPED;
    if (code == CURLE_OK || was_refused(&t))
        return EXCHANGE_REPLIED;
    return exchange_failed(&t, h, code);
}

enum exchange_end exchange_post(struct dfc_client *c, struct handle *h, const char *url,
                                const char *json, struct reply *reply, struct dfc_error *err)
{
    _cleanup_(body_freep)
    struct body *body = body_from_memory(json, strlen(json));
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    const struct exchange x = {.method = "POST", .url = url, .headers = headers, .body = body};
    enum exchange_end end = EXCHANGE_STOPPED;
    if (body_begin(body, err) == DFC_OK)
        end = exchange_run(c, h, &x, reply, err);
    curl_slist_free_all(headers);
    return end == EXCHANGE_BROKEN ? EXCHANGE_UNSENT : end;
}
