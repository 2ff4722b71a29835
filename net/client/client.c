/* The life of calls: http_call_start() copies one and posts it to the loop; there it becomes a curl
 * transfer (call.c has its callbacks) in the client's list, until curl says that it has ended
 * or the watch cuts it. */
#include "net/client/client.h"

#include <assert.h>
#include <pthread.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "net/client/call.h"
#include "net/client/curl_loop.h"
#include "net/client/session.h"
#include "net/client/silence.h"

enum { WATCH_MS = 250 };

struct http_client {
    struct loop *loop;
    struct http_client_config config;
    struct curl_loop *curl;
    struct session_desk *desk; /* NULL: nothing is signed */
    struct loop_timer *watch;
    struct call *calls;  /* whose transfers run */
    uint64_t doubted_ms; /* when a peer was found to be gone without a word, or 0 */
    bool closing;
    atomic_ullong stall_max_ms; /* of every call */
    atomic_ullong last_number;
    atomic_ullong unfinished; /* calls whose done() has not returned */
};

/* --- the end of a call ------------------------------------------------------------------------ */

static void call_leave_curl(struct call *c)
{
    call_unlink(c);
    curl_easy_cleanup(c->easy);
    c->easy = NULL;
}

/* The transfer has left curl, or there was none: tell the world, drop its reference. */
static void call_end(struct call *c)
{
    struct http_client *client = c->client;
    call_leave_curl(c);
    if (client->desk != NULL && (c->result.code == E_NET || c->result.code == E_TIMEOUT))
        session_doubt(client->desk, c);
    call_sum_up(c);
    call_end_pipes(c);
    c->done(c->arg, &c->result);
    call_unref(c);
    atomic_fetch_sub(&client->unfinished, 1);
}

static void call_cut(struct call *c)
{
    if (c->easy != NULL)
        curl_loop_remove(c->client->curl, c->easy);
    call_end(c);
}

/* Whatever listens there, or nothing: else ports could be told apart. */
static const char address_words[] =
    "the address is private, local or the cluster's own; start targets with --backend-allow=CIDR";

static int code_of_curl(CURLcode result)
{
    return result == CURLE_OPERATION_TIMEDOUT ? E_TIMEOUT : E_NET;
}

static struct call *call_of_easy(CURL *easy)
{
    struct call *c = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c);
    return c;
}

static void on_socket(void *arg, CURL *easy, curl_socket_t fd)
{
    (void)arg;
    call_of_easy(easy)->socket = fd;
}

/* It took a kept connection, and may take another: no byte of a body went out, no reply came. */
static bool is_on_kept_one(const struct call *c)
{
    long connects = 1;
    curl_easy_getinfo(c->easy, CURLINFO_NUM_CONNECTS, &connects);
    return connects == 0 && !c->fresh && !c->head_seen && c->result.code == 0 &&
           (c->upload == NULL || c->sent == 0);
}

/* The peer gave up a kept connection just when this call took it.  Where that shows while the reply
 * is awaited curl repeats the call by itself; where it shows in the sending, not always (7.88), and
 * while the upload waits, never. */
static bool kept_one_died(const struct call *c, CURLcode result)
{
    return (result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR) && is_on_kept_one(c);
}

static void call_repeat(struct call *c)
{
    call_leave_curl(c);
    call_reset(c);
    c->life->begin(c);
}

static void note_peer(struct call *c)
{
    char *ip = NULL;
    long port = 0;
    curl_easy_getinfo(c->easy, CURLINFO_PRIMARY_IP, &ip);
    curl_easy_getinfo(c->easy, CURLINFO_PRIMARY_PORT, &port);
    if (ip != NULL && *ip != '\0')
        snprintf(c->result.peer, sizeof c->result.peer,
                 strchr(ip, ':') != NULL ? "[%s]:%ld" : "%s:%ld", ip, port);
}

static void on_finished(void *arg, CURL *easy, CURLcode result)
{
    (void)arg;
    struct call *c = call_of_easy(easy);
    if (kept_one_died(c, result))
        c->again = c->fresh = true;
    if (c->again) {
        call_repeat(c);
        return;
    }
    note_peer(c);
    c->result.not_sent = result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST;
    if (result != CURLE_OK && c->refused)
        call_fail(c, E_ADDRESS, address_words);
    else if (result != CURLE_OK)
        call_fail(c, code_of_curl(result), curl_easy_strerror(result));
    else
        call_check_whole(c);
    call_end(c);
}

static bool call_wants_again(struct call *c, const struct http_head *head)
{
    return c->client->desk != NULL && session_wants_again(c->client->desk, c, head);
}

/* --- the start of a call ---------------------------------------------------------------------- */

static void call_enlist(struct call *c)
{
    struct http_client *client = c->client;
    c->next = client->calls;
    c->prev = &client->calls;
    if (c->next != NULL)
        c->next->prev = &c->next;
    client->calls = c;
}

static int call_may_begin(struct call *c, struct error *err)
{
    if (c->client->closing)
        return error_set(err, E_CANCELLED, "this node is stopping");
    if (!c->begun && !c->opens_session && fault_errno("net.connect") != 0)
        return error_set(err, E_NET, "injected: no connection");
    if (!c->begun)
        c->began_ms = clock_ms();
    c->begun = true;
    return 0;
}

/* Where one connection's peer has gone without a word, so may have that of others, which are not
 * taken any more.  The limit is in whole seconds. */
static void call_doubts(struct call *c)
{
    uint64_t since_ms = clock_ms() - c->client->doubted_ms;
    if (c->client->doubted_ms == 0 || since_ms > IDLE_CONNECTION_S * 1000)
        return;
    c->kept_s = (long)(since_ms / 1000);
    c->fresh = c->fresh || c->kept_s == 0;
}

static int call_transfer(struct call *c, struct error *err)
{
    struct http_client *client = c->client;
    call_doubts(c);
    c->easy = curl_easy_init();
    if (c->easy == NULL)
        return error_set(err, E_NOMEM, "no memory for a transfer");
    c->moved_ms = clock_ms();
    if (c->stall_timeout_ms == 0)
        c->stall_timeout_ms = client->config.stall_timeout_ms;
    call_set_options(c, &client->config);
    int code = curl_loop_add(client->curl, c->easy, err);
    if (code == 0)
        call_enlist(c);
    return code;
}

static void call_begin(struct call *c)
{
    struct session_desk *desk = c->to_public ? NULL : c->client->desk;
    struct error err = ERROR_INIT;
    int code = call_may_begin(c, &err);
    if (code == 0 && desk != NULL && session_sign(desk, c) == SESSION_WAIT)
        return;
    if (code == 0)
        code = call_transfer(c, &err);
    if (code == 0)
        return;
    call_fail(c, err.code, err.message);
    call_end(c);
}

static void call_begin_posted(void *arg)
{
    call_begin(arg);
}

static const struct call_life life = {
    .begin = call_begin, .end = call_end, .cut = call_cut, .wants_again = call_wants_again};

static uint64_t call_launch(struct http_client *client, struct call *c,
                            void (*done)(void *arg, struct http_result *r), void *arg)
{
    uint64_t number = atomic_fetch_add(&client->last_number, 1) + 1;
    c->client = client;
    c->life = &life;
    c->loop = client->loop;
    c->number = number;
    c->done = done;
    c->arg = arg;
    atomic_fetch_add(&client->unfinished, 1);
    loop_post(client->loop, call_begin_posted, c);
    return number; /* the call may have ended */
}

uint64_t http_call_start(struct http_client *client, const struct http_call *spec,
                         void (*done)(void *arg, struct http_result *r), void *arg)
{
    return call_launch(client, call_new(spec), done, arg);
}

/* --- cancelling ------------------------------------------------------------------------------- */

struct cancel {
    struct http_client *client;
    uint64_t number;
};

static void cancel(void *arg)
{
    struct cancel *x = arg;
    struct call *c = x->client->calls;
    while (c != NULL && c->number != x->number)
        c = c->next;
    if (c == NULL && x->client->desk != NULL)
        c = session_waiting(x->client->desk, x->number);
    if (c != NULL) {
        call_fail(c, E_CANCELLED, "the call was cancelled");
        call_cut(c);
    }
    atomic_fetch_sub(&x->client->unfinished, 1);
    free(x);
}

void http_call_cancel(struct http_client *client, uint64_t number)
{
    struct cancel *x = xmalloc(sizeof *x);
    *x = (struct cancel){.client = client, .number = number};
    atomic_fetch_add(&client->unfinished, 1);
    loop_post(client->loop, cancel, x);
}

/* --- the watch -------------------------------------------------------------------------------- */

static void note_progress(struct call *c, uint64_t now)
{
    curl_off_t up = 0, down = 0;
    curl_easy_getinfo(c->easy, CURLINFO_SIZE_UPLOAD_T, &up);
    curl_easy_getinfo(c->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
    uint64_t bytes = (uint64_t)up + (uint64_t)down + (c->head_seen ? 1 : 0);
    /* One that waits for our own pipes does not stall; the other side might. */
    if (bytes != c->moved_bytes || c->upload_waits || c->download_waits)
        c->moved_ms = now;
    c->moved_bytes = bytes;
}

static bool call_stalls(struct call *c, uint64_t now)
{
    note_progress(c, now);
    uint64_t limit = atomic_load(&c->client->stall_max_ms);
    if (c->stall_timeout_ms != 0 && c->stall_timeout_ms < limit)
        limit = c->stall_timeout_ms;
    if (now - c->moved_ms <= limit)
        return false;
    call_fail(c, E_TIMEOUT, "no byte moved within the stall timeout");
    return true;
}

static bool call_meets_silence(struct call *c, uint64_t now)
{
    uint64_t silence_ms = c->client->config.silence_ms;
    if (silence_ms == 0 || c->socket == CURL_SOCKET_BAD || !silence_found(c->socket, silence_ms))
        return false;
    c->client->doubted_ms = now;
    call_fail(c, E_NET, "the other machine acknowledges nothing");
    return true;
}

/* One that waits for a session has no transfer yet that would see to its time. */
static void watch_waiting(struct call *c, uint64_t now)
{
    if (!call_is_abandoned(c) &&
        (c->total_timeout_ms == 0 || now - c->began_ms < c->total_timeout_ms))
        return;
    call_fail(c, E_TIMEOUT, "no session within the call's time");
    c->result.not_sent = true;
    call_end(c);
}

static void cancel_waiting(struct call *c, uint64_t now)
{
    (void)now;
    call_fail(c, E_CANCELLED, "this node is stopping");
    call_end(c);
}

/* done() starts and cancels calls by messages, so that `next` stays. */
static void watch(void *arg)
{
    struct http_client *client = arg;
    uint64_t now = clock_ms();
    for (struct call *c = client->calls, *next; c != NULL; c = next) {
        next = c->next;
        if (call_server_left(c) && is_on_kept_one(c)) {
            curl_loop_remove(client->curl, c->easy);
            c->fresh = true;
            call_repeat(c);
        } else if (call_is_abandoned(c) || call_stalls(c, now) || call_meets_silence(c, now)) {
            call_cut(c);
        }
    }
    if (client->desk != NULL)
        session_each_waiting(client->desk, watch_waiting, now);
}

/* --- the client ------------------------------------------------------------------------------- */

struct open_args {
    struct http_client *client;
    struct error *err;
    int code;
};

static void client_open(void *arg)
{
    struct open_args *a = arg;
    struct http_client *client = a->client;
    static const struct curl_loop_ops ops = {.socket = on_socket, .finished = on_finished};
    a->code = curl_loop_new(client->loop, client->config.connections_per_host_max, &ops, client,
                            &client->curl, a->err);
    if (a->code != 0)
        return;
    if (client->config.auth != NULL)
        client->desk = session_desk_new(call_launch, client, client->config.auth);
    client->watch = loop_timer_new(client->loop, watch, client);
    loop_timer_start(client->watch, WATCH_MS, WATCH_MS);
}

static void curl_global_start(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_client_new(struct loop *loop, const struct http_client_config *config,
                    struct http_client **out, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_global_start);
    struct http_client *client = xcalloc(1, sizeof *client);
    client->loop = loop;
    client->config = *config;
    atomic_init(&client->stall_max_ms, HTTP_NO_STALL_TIMEOUT);
    struct open_args a = {.client = client, .err = err};
    if (loop_here(loop))
        client_open(&a);
    else
        loop_call(loop, client_open, &a);
    if (a.code != 0) {
        free(client);
        return a.code;
    }
    *out = client;
    return 0;
}

const struct http_client_config *http_client_config_of(const struct http_client *client)
{
    return &client->config;
}

uint64_t http_client_patience_ms(struct http_client *client)
{
    uint64_t most_ms = atomic_load(&client->stall_max_ms);
    return client->config.stall_timeout_ms < most_ms ? client->config.stall_timeout_ms : most_ms;
}

void http_client_hurry(struct http_client *client, uint64_t stall_timeout_ms)
{
    atomic_store(&client->stall_max_ms, stall_timeout_ms);
}

/* From here on every call fails at once. */
static void client_close(void *arg)
{
    struct http_client *client = arg;
    client->closing = true;
    if (client->desk != NULL)
        session_each_waiting(client->desk, cancel_waiting, 0);
    while (client->calls != NULL) {
        call_fail(client->calls, E_CANCELLED, "this node is stopping");
        call_cut(client->calls);
    }
    loop_timer_free(client->watch);
    curl_loop_free(client->curl);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

void http_client_free(struct http_client *client)
{
    if (client == NULL)
        return;
    loop_call(client->loop, client_close, client);
    /* What was posted before is run before; it may have posted more. */
    while (atomic_load(&client->unfinished) > 0)
        loop_call(client->loop, do_nothing, NULL);
    session_desk_free(client->desk);
    free(client);
}
