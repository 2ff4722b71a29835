#include "net/client/session.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>
#include <strings.h>

#include "common/clock.h"
#include "common/mem.h"
#include "net/auth/auth.h"
#include "net/http/session_routes.h"

enum {
    PEERS_MAX = 1024,
    SIGNINGS_MAX = 3, /* of one call */
    OPEN_TIMEOUT_MS = 10000,
    ANSWER_MAX = 4096,
};

struct peer {
    struct peer *next;
    struct session_desk *desk;
    char *origin; /* "http://host:port" */
    bool opening;
    bool asking;      /* for a challenge, with which the session is then opened */
    bool asked_again; /* the first challenge was refused: late, used, or of a process that ended */
    bool open;
    struct auth_opening opened_with; /* its `node` is proven while the session is open */
    char id[2 * AUTH_SESSION_BYTES + 1];
    unsigned char key[AUTH_MAC_BYTES];
    uint64_t counter;
    uint64_t asked_ms;
    struct call *waiting;
};

struct session_desk {
    session_launch_fn *launch;
    struct http_client *client;
    struct auth *auth;
    struct peer *peers;
    size_t count;
};

/* --- peers ------------------------------------------------------------------------------------ */

/* The length of "http://host:port". */
static size_t origin_len(const char *url)
{
    const char *host = strstr(url, "://");
    if (host == NULL)
        return strcspn(url, "/?");
    return (size_t)(host + 3 - url) + strcspn(host + 3, "/?");
}

static void peer_close(struct peer *p)
{
    OPENSSL_cleanse(p->key, sizeof p->key);
    p->open = false;
}

static void peer_free(struct peer *p)
{
    assert(p->waiting == NULL);
    peer_close(p);
    free(p->origin);
    free(p);
}

/* The one that was not asked for longest goes. */
static void make_room(struct session_desk *d)
{
    struct peer **oldest = NULL;
    if (d->count < PEERS_MAX)
        return;
    for (struct peer **at = &d->peers; *at != NULL; at = &(*at)->next) {
        if (!(*at)->opening && (oldest == NULL || (*at)->asked_ms < (*oldest)->asked_ms))
            oldest = at;
    }
    if (oldest == NULL)
        return;
    struct peer *gone = *oldest;
    *oldest = gone->next;
    d->count--;
    peer_free(gone);
}

static struct peer *find_peer(struct session_desk *d, const char *url)
{
    size_t len = origin_len(url);
    struct peer *p = d->peers;
    while (p != NULL && (strncmp(p->origin, url, len) != 0 || p->origin[len] != '\0'))
        p = p->next;
    return p;
}

static struct peer *need_peer(struct session_desk *d, const char *url)
{
    struct peer *p = find_peer(d, url);
    if (p != NULL)
        return p;
    make_room(d);
    p = xcalloc(1, sizeof *p);
    p->desk = d;
    p->origin = xstrndup(url, origin_len(url));
    p->next = d->peers;
    d->peers = p;
    d->count++;
    return p;
}

struct session_desk *session_desk_new(session_launch_fn *launch, struct http_client *client,
                                      struct auth *auth)
{
    struct session_desk *d = xcalloc(1, sizeof *d);
    d->launch = launch;
    d->client = client;
    d->auth = auth;
    return d;
}

void session_desk_free(struct session_desk *d)
{
    if (d == NULL)
        return;
    for (struct peer *p; (p = d->peers) != NULL;) {
        d->peers = p->next;
        peer_free(p);
    }
    free(d);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* In the order in which they came. */
static void wait_for(struct peer *p, struct call *c)
{
    struct call **end = &p->waiting;
    while (*end != NULL)
        end = &(*end)->next;
    c->next = NULL;
    c->prev = end;
    *end = c;
}

/* Is the node that has proven itself the one that the call is for? */
static bool is_meant(const struct peer *p, const struct call *c)
{
    return c->node != NULL &&
           (strcmp(c->node, HTTP_ANY_NODE) == 0 || strcmp(c->node, p->opened_with.node) == 0);
}

static int refuse_other(const struct peer *p, const struct call *c, struct error *err)
{
    return error_set(err, E_NET, "node '%s' answers at this address, and not node '%s'",
                     p->opened_with.node, c->node != NULL ? c->node : "(none is named)");
}

static void fail_unsent(struct call *c, const struct error *err)
{
    call_fail(c, err->code, err->message);
    c->result.not_sent = true;
    c->life->end(c);
}

/* Those that come from here on wait for the next opening. */
static void go_on(struct peer *p, const struct error *err)
{
    struct error other = ERROR_INIT;
    struct call *list = steal(p->waiting);
    if (list != NULL)
        list->prev = &list;
    for (struct call *c; (c = list) != NULL;) {
        call_unlink(c);
        if (err != NULL) {
            fail_unsent(c, err);
        } else if (is_meant(p, c)) {
            c->life->begin(c);
        } else {
            (void)refuse_other(p, c, &other);
            fail_unsent(c, &other);
        }
    }
}

/* A peer of an earlier release, or without a key, has no proof to give. */
static int code_of_refusal(int code)
{
    return code == E_ROUTE || code == E_METHOD || code == E_UNSUPPORTED ? E_UNAUTHORIZED : code;
}

/* Public ports do not have the call. */
static const char *no_session(int code)
{
    return code == E_ROUTE ? "no session (is this a node's public address? "
                             "nodes call one another at their control addresses)"
                           : "no session";
}

static void settle(struct peer *p, int code, struct error *err)
{
    p->opening = false;
    p->asked_again = false;
    p->open = code == 0;
    p->counter = 0;
    if (code != 0)
        error_recode(err, code_of_refusal(code), "%s", no_session(code));
    go_on(p, code != 0 ? err : NULL);
}

static void send_greeting(struct peer *p, bool asking);

static void answered(void *arg, struct http_result *r)
{
    struct peer *p = arg;
    struct error err = ERROR_INIT;
    int code = http_result_error(r, p->origin, &err);
    bool earlier = p->asking && auth_caller_is_earlier(code);
    if (code == 0 && p->asking)
        code = auth_caller_challenged(&p->opened_with, buf_str(&r->body), r->body.len, &err);
    else if (code == 0)
        code = auth_opened(p->desk->auth, &p->opened_with, buf_str(&r->body), r->body.len, p->id,
                           p->key, &err);
    bool refused = code == E_UNAUTHORIZED && !p->asking && !p->asked_again;
    if (p->asking && (code == 0 || earlier)) {
        send_greeting(p, false);
    } else if (refused) {
        p->asked_again = true;
        send_greeting(p, true);
    } else {
        settle(p, code, &err);
    }
}

static void send_greeting(struct peer *p, bool asking)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    _cleanup_free_ char *url = xprintf("%s%s", p->origin, SESSION_PATH);
    _cleanup_free_ char *greeting = asking ? auth_ask(p->desk->auth, &p->opened_with)
                                           : auth_greet(p->desk->auth, &p->opened_with);
    const struct http_call spec = {.method = HTTP_POST,
                                   .url = url,
                                   .headers = headers,
                                   .body = greeting,
                                   .body_len = strlen(greeting),
                                   .reply_max = ANSWER_MAX,
                                   .total_timeout_ms = OPEN_TIMEOUT_MS,
                                   .to_public = true};
    struct call *c = call_new(&spec);
    c->opens_session = true;
    p->opening = true;
    p->asking = asking;
    p->desk->launch(p->desk->client, c, answered, p);
}

/* --- signing ---------------------------------------------------------------------------------- */

/* "Name: value" as curl sends it; "Name;" is a header without a value, and "Name:" none at all. */
static void put_header(const char *line, struct buf *out)
{
    size_t len = strcspn(line, ":;");
    _cleanup_free_ char *name = xstrndup(line, len);
    const char *value = line + len + (line[len] != '\0' ? 1 : 0);
    value += strspn(value, " \t");
    size_t value_len = strlen(value);
    while (value_len > 0 && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
        value_len--;
    if (value_len > 0 || line[len] == ';')
        auth_header_text(name, value, value_len, out);
}

static void request_text(const struct call *c, const struct auth_claim *claim, struct buf *out)
{
    const char *target = c->url + origin_len(c->url);
    size_t path_len = strcspn(target, "?#");
    _cleanup_free_ char *path = path_len > 0 ? xstrndup(target, path_len) : xstrdup("/");
    const char *query = target + path_len;
    query += *query == '?' ? 1 : 0;
    _cleanup_free_ char *plain_query = xstrndup(query, strcspn(query, "#"));
    const struct auth_request r = {.session = claim->session,
                                   .counter = claim->counter,
                                   .method = http_method_name(c->method),
                                   .path = path,
                                   .query = plain_query,
                                   .length =
                                       c->upload != NULL ? c->upload_length : (int64_t)c->body_len,
                                   .digest = claim->digest};
    auth_request_text(&r, out);
    const struct curl_slist *all = c->signature != NULL ? c->signature : c->headers;
    for (; all != NULL; all = all->next)
        put_header(all->data, out);
}

static void sign(struct peer *p, struct call *c)
{
    struct auth_claim claim = {.counter = ++p->counter, .digest = "-"};
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    _cleanup_(buf_done)
    struct buf line = BUF_INIT;
    snprintf(claim.session, sizeof claim.session, "%s", p->id);
    snprintf(c->session, sizeof c->session, "%s", p->id);
    if (c->upload == NULL && c->body_len > 0)
        auth_digest(c->body, c->body_len, claim.digest);
    request_text(c, &claim, &text);
    auth_request_mac(p->key, &text, claim.mac);
    buf_puts(&line, "Dfc-Auth: ");
    auth_claim_text(&claim, &line);
    call_add_signature(c, line.data);
    if (c->upload != NULL)
        call_add_signature(c, "Expect: 100-continue");
    c->signings++;
}

static void add_stamp(struct session_desk *d, struct call *c)
{
    struct auth_stamp stamp;
    auth_stamp(d->auth, &stamp);
    if (stamp.cluster[0] == '\0')
        return;
    _cleanup_free_ char *line =
        xprintf("Dfc-State: %s %llu.%llu", stamp.cluster, (unsigned long long)stamp.term,
                (unsigned long long)stamp.version);
    call_add_signature(c, line);
}

enum session_answer session_sign(struct session_desk *d, struct call *c)
{
    if (!auth_has_key(d->auth)) {
        call_unsign(c);
        add_stamp(d, c);
        return SESSION_GO;
    }
    struct peer *p = need_peer(d, c->url);
    p->asked_ms = clock_ms();
    if (p->open && !is_meant(p, c)) /* another node answers there by now, or did */
        peer_close(p);
    if (!p->open) {
        wait_for(p, c);
        if (!p->opening)
            send_greeting(p, true);
        return SESSION_WAIT;
    }
    call_unsign(c);
    add_stamp(d, c);
    sign(p, c);
    return SESSION_GO;
}

/* --- what the peer says ----------------------------------------------------------------------- */

static bool can_be_repeated(const struct call *c)
{
    return c->signings < SIGNINGS_MAX && (c->upload == NULL || c->sent == 0);
}

static struct peer *peer_of(struct session_desk *d, const struct call *c)
{
    struct peer *p = c->session[0] != '\0' ? find_peer(d, c->url) : NULL;
    return p != NULL && p->open && strcmp(p->id, c->session) == 0 ? p : NULL;
}

bool session_wants_again(struct session_desk *d, struct call *c, const struct http_head *head)
{
    if (c->session[0] == '\0')
        return false;
    struct peer *p = peer_of(d, c);
    const char *challenge = head->status == 401 ? head->header(head, "WWW-Authenticate") : NULL;
    bool unknown = challenge != NULL && strcmp(challenge, "Dfc error=\"session\"") == 0;
    bool replayed = challenge != NULL && strcmp(challenge, "Dfc error=\"replay\"") == 0;
    if (p != NULL && unknown)
        peer_close(p);
    if (!unknown && !replayed)
        return false;
    if (!can_be_repeated(c))
        call_fail(c, E_NET, "the peer has begun anew and does not know the session");
    return can_be_repeated(c);
}

void session_doubt(struct session_desk *d, const struct call *c)
{
    struct peer *p = peer_of(d, c);
    if (p != NULL)
        peer_close(p);
}

/* --- those who wait --------------------------------------------------------------------------- */

struct call *session_waiting(struct session_desk *d, uint64_t number)
{
    for (const struct peer *p = d->peers; p != NULL; p = p->next) {
        for (struct call *c = p->waiting; c != NULL; c = c->next) {
            if (c->number == number)
                return c;
        }
    }
    return NULL;
}

void session_each_waiting(struct session_desk *d, void (*fn)(struct call *c, uint64_t now),
                          uint64_t now)
{
    for (struct peer *p = d->peers; p != NULL; p = p->next) {
        for (struct call *c = p->waiting, *next; c != NULL; c = next) {
            next = c->next;
            fn(c, now);
        }
    }
}
