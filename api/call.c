#include "api/call.h"

#include <openssl/crypto.h>

#include "api/failure.h"
#include "api/identity/login.h"
#include "api/signed.h"
#include "api/uri.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"

#define REDIRECTS_MAX 5
/* A body up to this size goes along at once, also where it may be redirected: inviting it would
 * cost a round trip, and a refused invitation the connection. */
#define BODY_UNINVITED_BYTES (16 << 10)
/* On the way to the owner itself, which refuses rarely. */
#define BODY_INVITED_BYTES (1 << 20)

void call_done(struct call *call)
{
    buf_done(&call->path);
    curl_slist_free_all(call->headers);
    body_free(call->body);
    exchange_reply_done(&call->reply);
    *call = CALL_INIT;
}

void call_headers_clear(struct call *call)
{
    curl_slist_free_all(call->headers);
    call->headers = NULL;
}

static void headers_push(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer == NULL)
        abort(); /* no memory for a line of text */
    *list = longer;
}

int call_header(struct call *call, struct dfc_error *err, const char *name, const char *value)
{
    for (const char *p = value; *p != '\0'; p++) {
        if ((unsigned char)*p < ' ' && *p != '\t')
            return failure_set(err, DFC_INVALID, E_INVALID,
                               "the value of header '%s' has a control character", name);
    }
    /* curl drops "Name:"; "Name;" sends it with an empty value. */
    _cleanup_free_ char *line =
        value[0] != '\0' ? xprintf("%s: %s", name, value) : xprintf("%s;", name);
    headers_push(&call->headers, line);
    return DFC_OK;
}

/* ---- places: the endpoints, or the origins that the call names ---- */

static size_t call_place_count(const struct dfc_client *c, const struct call *call)
{
    size_t count = 0;
    if (call->origins == NULL)
        return client_endpoint_count(c);
    while (call->origins[count] != NULL)
        count++;
    return count;
}

static const char *call_place_at(const struct dfc_client *c, const struct call *call, size_t i)
{
    return call->origins != NULL ? call->origins[i % call_place_count(c, call)]
                                 : client_endpoint_at(c, i);
}

/* ---- one try ---- */

struct attempt {
    struct call *call;
    struct handle *handle;
    const char *request_id;
    size_t endpoint;
    bool redirected;
    enum retry_outcome outcome;
    uint64_t retry_after_ms;
};

static bool body_is_invited(const struct call *call, bool at_owner)
{
    int64_t size = body_size(call->body);
    if (!call->meets_owner || size == 0)
        return false;
    if (size < 0)
        return true;
    if (!body_in_store(call->body) && size > (int64_t)BODY_KEPT_BYTES)
        return true;
    return size > (at_owner ? BODY_INVITED_BYTES : BODY_UNINVITED_BYTES);
}

static void headers_wipe(struct curl_slist *list)
{
    for (struct curl_slist *h = list; h != NULL; h = h->next)
        OPENSSL_cleanse(h->data, strlen(h->data)); /* one has the token */
    curl_slist_free_all(list);
}

static struct curl_slist *attempt_headers(const struct attempt *a, const char *token, bool at_owner)
{
    struct curl_slist *list = NULL;
    for (const struct curl_slist *h = a->call->headers; h != NULL; h = h->next)
        headers_push(&list, h->data);
    char line[96];
    snprintf(line, sizeof line, "X-Request-Id: %s", a->request_id);
    headers_push(&list, line);
    if (token != NULL) {
        _cleanup_(secret_freep)
        char *bearer = xprintf("Authorization: %s", token);
        headers_push(&list, bearer);
    }
    if (a->call->body != NULL)
        headers_push(&list,
                     body_is_invited(a->call, at_owner) ? "Expect: 100-continue" : "Expect:");
    return list;
}

/* token: NULL for none, as behind a redirect, which has its own proof. */
static enum exchange_end attempt_exchange(struct dfc_client *c, struct attempt *a, const char *url,
                                          const char *token, bool at_owner, struct dfc_error *err)
{
    struct call *call = a->call;
    if (call->body != NULL && body_begin(call->body, err) != DFC_OK)
        return EXCHANGE_STOPPED;
    struct exchange x = {
        .method = call->method,
        .url = url,
        .headers = attempt_headers(a, token, at_owner),
        .body = call->body,
        .node = call->node,
        .patient = call->patient,
        .fresh = !call->twice_is_harmless || call->counted,
        .receiver = call->receiver,
        .receiver_context = call->receiver_context,
        .idle_timeout_ms = call->idle_timeout_ms,
        .progress = call->progress,
        .progress_context = call->progress_context,
    };
    enum exchange_end end = (call->administers ? signed_exchange_run
                                               : exchange_run)(c, a->handle, &x, &call->reply, err);
    headers_wipe(x.headers);
    return end;
}

/* Logs in at a proxy: where the call begins at one there, too, so that a node that is down is left
 * out alike. */
static enum exchange_end attempt_token(struct dfc_client *c, const struct attempt *a,
                                       const char *url, char **token, struct dfc_error *err)
{
    size_t at = a->call->origins == NULL ? a->endpoint : client_endpoint_current(c);
    if (client_is_tls(c) && !uri_is_tls(url)) {
        failure_set(err, DFC_DENIED, E_UNAUTHORIZED,
                    "%s is plain HTTP and the endpoint is not: the token is not sent there", url);
        return EXCHANGE_STOPPED;
    }
    return login_token(c, a->handle, client_endpoint_at(c, at), token, err);
}

/* The first exchange, with a token where the client has a login; with a newer one where the token
 * has ended meanwhile. */
static enum exchange_end attempt_first(struct dfc_client *c, struct attempt *a, const char *url,
                                       struct dfc_error *err)
{
    const struct call *call = a->call;
    if (call->administers || client_identity(c) == NULL)
        return attempt_exchange(c, a, url, NULL, false, err);
    for (bool again = false;; again = true) {
        _cleanup_(secret_freep)
        char *token = NULL;
        enum exchange_end end = attempt_token(c, a, url, &token, err);
        if (end != EXCHANGE_REPLIED)
            return end;
        end = attempt_exchange(c, a, url, token, false, err);
        if (end != EXCHANGE_REPLIED || again ||
            (call->body != NULL && !body_repeatable(call->body)) ||
            !login_refused(c, token, &call->reply))
            return end;
    }
}

static bool is_redirect(int status)
{
    return status == 307 || status == 308;
}

/* What the reply means for the next try. */
static enum retry_outcome outcome_of_status(int status, const struct dfc_error *err)
{
    switch (status) {
    case 429:
        return RETRY_REFUSED;
    case 503:
        return strcmp(err->code, error_name(E_IN_DOUBT)) == 0 ? RETRY_BROKEN : RETRY_REFUSED;
    case 408:
    case 502:
    case 504:
        return RETRY_BROKEN;
    case 409:
        return strcmp(err->code, error_name(E_STALE_MAP)) == 0 ? RETRY_REFUSED : RETRY_NEVER;
    default:
        return RETRY_NEVER;
    }
}

/* A proxy gives a redirect a proof anew.  (The reply to a HEAD has no code, but this header.) */
static bool redirect_expired(const struct attempt *a)
{
    const struct reply *r = &a->call->reply;
    const char *challenge = r->status == 401 ? headers_get(&r->headers, "WWW-Authenticate") : NULL;
    return a->redirected && challenge != NULL && strstr(challenge, "error=\"expired\"") != NULL;
}

static void error_fill_from_headers(struct dfc_error *err, const struct headers *h,
                                    const char *request_id)
{
    const char *node = headers_get(h, "Dfc-Node");
    const char *id = headers_get(h, "X-Request-Id");
    if (err->node[0] == '\0' && node != NULL)
        snprintf(err->node, sizeof err->node, "%s", node);
    if (err->request_id[0] == '\0')
        snprintf(err->request_id, sizeof err->request_id, "%s", id != NULL ? id : request_id);
}

/* A call of the contract that the other side does not have: it is another kind of node, or port. */
static int say_not_a_proxy(struct dfc_error *err)
{
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used,
             "; the endpoint has to be a proxy's public address");
    return err->result = DFC_INVALID;
}

/* The final reply of a try. */
static int attempt_conclude(struct attempt *a, struct dfc_error *err)
{
    const struct reply *r = &a->call->reply;
    a->outcome = RETRY_NEVER;
    if (r->status >= 200 && r->status < 300)
        return DFC_OK;
    int rc = failure_reply(err, r->status, r->text.data, r->text.len);
    a->outcome = redirect_expired(a) ? RETRY_REFUSED : outcome_of_status(r->status, err);
    a->retry_after_ms = headers_retry_after_ms(&r->headers, clock_wall_ms() / 1000);
    error_fill_from_headers(err, &r->headers, a->request_id);
    if (strcmp(err->code, error_name(E_ROUTE)) == 0 && a->call->origins == NULL)
        return say_not_a_proxy(err);
    return rc;
}

static int attempt_ended(struct attempt *a, enum exchange_end end, struct dfc_error *err)
{
    static const enum retry_outcome outcomes[] = {
        [EXCHANGE_UNSENT] = RETRY_UNSENT,
        [EXCHANGE_BROKEN] = RETRY_BROKEN,
        [EXCHANGE_STOPPED] = RETRY_NEVER,
    };
    if (end == EXCHANGE_REPLIED)
        return attempt_conclude(a, err);
    a->outcome = outcomes[end];
    if (err->result != DFC_LOCAL) /* which no node has to do with */
        error_fill_from_headers(err, &a->call->reply.headers, a->request_id);
    return err->result;
}

/* Where a redirect leads.  Nothing that began over TLS goes on without. */
static int follow(const char *url, const char *location, char **next, struct dfc_error *err)
{
    _cleanup_free_ char *from = uri_for_people(url);
    _cleanup_free_ char *to = uri_resolve(url, location);
    if (to == NULL)
        return failure_set(err, DFC_FAILED, E_NET, "%s redirects to nowhere", from);
    if (uri_is_tls(url) && !uri_is_tls(to))
        return failure_set(err, DFC_FAILED, E_NET, "%s redirects to plain HTTP: refused", from);
    *next = steal(to);
    return DFC_OK;
}

static int attempt_run(struct dfc_client *c, struct attempt *a, struct dfc_error *err)
{
    struct call *call = a->call;
    const char *origin = call_place_at(c, call, a->endpoint);
    _cleanup_free_ char *url = xprintf("%s%s", origin, buf_str(&call->path));
    a->outcome = RETRY_NEVER;
    for (int hops = 0; hops <= REDIRECTS_MAX; hops++) {
        enum exchange_end end =
            hops > 0 ? attempt_exchange(c, a, url, NULL, true, err) : attempt_first(c, a, url, err);
        if (hops == 0 && end != EXCHANGE_UNSENT && call->origins == NULL)
            client_endpoint_answered(c, a->endpoint);
        if (end != EXCHANGE_REPLIED || !is_redirect(call->reply.status))
            return attempt_ended(a, end, err);
        char *next = NULL;
        int rc = follow(url, headers_get(&call->reply.headers, "Location"), &next, err);
        if (rc != DFC_OK)
            return rc;
        free(url);
        url = next;
        a->redirected = true;
    }
    _cleanup_free_ char *last = uri_for_people(url);
    return failure_set(err, DFC_FAILED, E_NET, "more than %d redirects, the last to %s",
                       REDIRECTS_MAX, last);
}

/* ---- all tries ---- */

/* The place where the next try begins, and how many of this round are left to try. */
struct round {
    size_t endpoint;
    size_t left;
};

static void round_begin(struct round *r, const struct dfc_client *c, const struct call *call)
{
    r->endpoint = call->origins != NULL ? 0 : client_endpoint_current(c);
    r->left = call_place_count(c, call) - 1;
}

static void round_next(struct round *r)
{
    r->endpoint++;
    r->left--;
}

static uint64_t random_u64(void)
{
    uint64_t value;
    random_bytes(&value, sizeof value);
    return value;
}

static bool call_again(struct dfc_client *c, const struct attempt *a, struct retry_state *state,
                       struct round *round)
{
    struct call *call = a->call;
    struct retry_question q = {
        .outcome = a->outcome,
        .twice_is_harmless = call->twice_is_harmless,
        .other_endpoint = round->left > 0,
        .retry_after_ms = a->retry_after_ms,
        .now_ms = clock_ms(),
        .random = random_u64(),
    };
    uint64_t wait_ms;
    if (call->once || (call->body != NULL && !body_repeatable(call->body)))
        return false;
    const struct retry_policy policy = client_retry(c);
    if (!retry_next(&policy, state, &q, &wait_ms) || wait_ms >= client_left_ms(c))
        return false;
    call->doubtful |= a->outcome == RETRY_BROKEN;
    if (a->outcome == RETRY_UNSENT && q.other_endpoint)
        round_next(round);
    else
        round_begin(round, c, call);
    return client_pause(c, wait_ms);
}

static int call_try(struct dfc_client *c, struct attempt *a, struct dfc_error *err)
{
    struct call *call = a->call;
    a->outcome = RETRY_NEVER;
    a->retry_after_ms = 0;
    call->tries++;
    if (call->prepare != NULL) {
        int rc = call->prepare(call->receiver_context, call, err);
        if (rc != DFC_OK)
            return rc;
    }
    a->handle = client_take(c, err);
    if (a->handle == NULL)
        return DFC_LOCAL;
    int rc = attempt_run(c, a, err);
    client_give(c, a->handle);
    return rc;
}

int call_run(struct dfc_client *c, struct call *call, struct dfc_error *err)
{
    struct dfc_error own;
    if (err == NULL)
        err = &own;
    char request_id[32];
    random_id("c-", request_id);
    struct retry_state state = {.since_ms = clock_ms()};
    struct round round;
    round_begin(&round, c, call);
    for (;;) {
        if (client_cancelled(c))
            return client_say_cancelled(err);
        uint64_t moved = call->moved != NULL ? *call->moved : 0;
        struct attempt a = {.call = call, .request_id = request_id, .endpoint = round.endpoint};
        int rc = call_try(c, &a, err);
        if (rc == DFC_OK)
            return rc;
        if (call->moved != NULL && *call->moved != moved)
            retry_progress(&state, clock_ms());
        if (!call_again(c, &a, &state, &round))
            return client_cancelled(c) ? client_say_cancelled(err) : rc;
    }
}

static int call_check_password(const struct dfc_client *c, const struct call *call,
                               struct dfc_error *err)
{
    for (size_t i = 0; i < call_place_count(c, call); i++) {
        const char *place = call_place_at(c, call, i);
        if (!uri_is_tls(place) && !uri_is_of_this_machine(place))
            return failure_set(err, DFC_INVALID, E_INVALID,
                               "a password is not sent to '%s' in clear: use https://, or run the "
                               "program on that machine",
                               place);
    }
    return DFC_OK;
}

int call_small(struct dfc_client *c, const struct call_small *what, struct buf *path, char **text,
               struct dfc_error *err)
{
    _cleanup_(call_done)
    struct call call = {
        .method = what->method,
        .path = *path,
        .twice_is_harmless = what->twice_is_harmless,
        .origins = what->origins,
        .administers = what->administers,
        .node = what->node,
    };
    *path = BUF_INIT;
    if (what->body != NULL) {
        call.body = body_from_memory(what->body, strlen(what->body));
        call_header(&call, err, "Content-Type", "application/json");
    }
    int rc = what->has_password ? call_check_password(c, &call, err) : DFC_OK;
    if (rc == DFC_OK)
        rc = call_run(c, &call, err);
    if (rc == DFC_OK && text != NULL)
        *text = call.reply.text.data != NULL ? buf_steal(&call.reply.text) : xstrdup("");
    return rc;
}
