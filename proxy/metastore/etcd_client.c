#include "proxy/metastore/etcd_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/loop.h"
#include "net/auth/auth.h"
#include "net/client/client.h"
#include "proxy/metastore/etcd_wire.h"

enum { ENDPOINTS_MAX = 16, PASSWORD_MAX = 4096, REPLY_MAX = 64 << 20 };

static const char plain[] = "etcd://";
static const char secure[] = "etcds://";

struct etcd_client {
    struct loop *loop;
    struct http_client *http;
    size_t url_count;
    char *urls[ENDPOINTS_MAX];
    atomic_size_t at; /* counts failures: the endpoint in use is at % url_count */
    char *user;
    char *password_file;
    char *ca_file, *cert_file, *key_file;
    pthread_mutex_t lock; /* guards `token` */
    char *token;          /* NULL: nobody has logged in */
};

/* --- making ---------------------------------------------------------------------------------- */

static const char *hosts_of(const char *urls)
{
    if (strncmp(urls, plain, strlen(plain)) == 0)
        return urls + strlen(plain);
    return strncmp(urls, secure, strlen(secure)) == 0 ? urls + strlen(secure) : NULL;
}

/* Fills in up to ENDPOINTS_MAX URLs for curl; returns their number, 0 where the text is none. */
static size_t split(const char *text, char **urls)
{
    const char *hosts = hosts_of(text);
    const char *scheme = strncmp(text, secure, strlen(secure)) == 0 ? "https" : "http";
    size_t count = 0;
    while (hosts != NULL && *hosts != '\0' && count < ENDPOINTS_MAX) {
        size_t len = strcspn(hosts, ",");
        if (len == 0 || memchr(hosts, '/', len) != NULL)
            hosts = NULL;
        else
            urls[count++] = xprintf("%s://%.*s", scheme, (int)len, hosts);
        hosts = hosts != NULL ? hosts + len + (hosts[len] == ',') : NULL;
        if (hosts == NULL)
            break;
    }
    if (hosts != NULL && *hosts == '\0')
        return count;
    while (count > 0)
        free(urls[--count]);
    return 0;
}

/* "HOST:PORT" of "http://HOST:PORT". */
static bool is_here(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    size_t len = *host == '[' ? strcspn(++host, "]") : strcspn(host, ":");
    _cleanup_free_ char *name = xstrndup(host, len);
    return strcmp(name, "localhost") == 0 || auth_is_loopback(name);
}

/* Who listens on the way must not read it. */
static int check_password(const struct etcd_endpoints *e, char **urls, size_t count,
                          struct error *err)
{
    if (e->user[0] == '\0' || strncmp(e->urls, secure, strlen(secure)) == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_here(urls[i]))
            return error_set(err, E_INVALID,
                             "--etcd-user: the password is not sent to '%.200s': use etcds:// "
                             "(etcd:// is for a loopback address)",
                             urls[i]);
    }
    return 0;
}

int etcd_endpoints_check(const struct etcd_endpoints *e, struct error *err)
{
    char *urls[ENDPOINTS_MAX];
    bool tls = strncmp(e->urls, secure, strlen(secure)) == 0;
    size_t count = split(e->urls, urls);
    int password = check_password(e, urls, count, err);
    for (size_t i = 0; i < count; i++)
        free(urls[i]);
    if (password != 0)
        return password;
    if (count == 0)
        return error_set(err, E_INVALID,
                         "--metastore: '%.200s' is not embedded, etcd://HOST:PORT,… or "
                         "etcds://HOST:PORT,… with up to %d members",
                         e->urls, ENDPOINTS_MAX);
    if (!tls && (e->ca_file[0] != '\0' || e->cert_file[0] != '\0' || e->key_file[0] != '\0'))
        return error_set(err, E_INVALID, "--etcd-ca, --etcd-cert and --etcd-key are for etcds://");
    if ((e->cert_file[0] == '\0') != (e->key_file[0] == '\0'))
        return error_set(err, E_INVALID, "--etcd-cert and --etcd-key go together");
    if ((e->user[0] == '\0') != (e->password_file[0] == '\0'))
        return error_set(err, E_INVALID, "--etcd-user and --etcd-password-file go together");
    return 0;
}

static char *path_or_null(const char *path)
{
    return path[0] != '\0' ? xstrdup(path) : NULL;
}

int etcd_client_new(const struct etcd_endpoints *e, struct etcd_client **out, struct error *err)
{
    struct etcd_client *c = xcalloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    c->url_count = split(e->urls, c->urls);
    c->user = path_or_null(e->user);
    c->password_file = path_or_null(e->password_file);
    c->ca_file = path_or_null(e->ca_file);
    c->cert_file = path_or_null(e->cert_file);
    c->key_file = path_or_null(e->key_file);
    const struct http_client_config config = {.connect_timeout_ms = e->connect_timeout_ms,
                                              .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT,
                                              .ca_file = c->ca_file,
                                              .cert_file = c->cert_file,
                                              .key_file = c->key_file};
    int r = loop_new("etcd", &c->loop, err);
    if (r == 0)
        r = http_client_new(c->loop, &config, &c->http, err);
    if (r != 0) {
        etcd_client_free(c);
        return r;
    }
    *out = c;
    return 0;
}

void etcd_client_free(struct etcd_client *c)
{
    if (c == NULL)
        return;
    http_client_free(c->http);
    loop_free(c->loop);
    for (size_t i = 0; i < c->url_count; i++)
        free(c->urls[i]);
    free(c->user);
    free(c->password_file);
    free(c->ca_file);
    free(c->cert_file);
    free(c->key_file);
    free(c->token);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* --- one attempt ----------------------------------------------------------------------------- */

static int attempt(struct etcd_client *c, const char *path, const json_t *body, const char *token,
                   uint64_t timeout_ms, json_t **reply, struct error *err)
{
    size_t at = atomic_load(&c->at);
    _cleanup_free_ char *url = xprintf("%s%s", c->urls[at % c->url_count], path);
    _cleanup_free_ char *text = json_text(body);
    _cleanup_free_ char *login = token != NULL ? xprintf("Authorization: %s", token) : NULL;
    const char *const headers[] = {"Content-Type: application/json", login, NULL};
    const struct http_call call = {.method = HTTP_POST,
                                   .url = url,
                                   .headers = headers,
                                   .body = text,
                                   .body_len = strlen(text),
                                   .reply_max = REPLY_MAX,
                                   .total_timeout_ms = timeout_ms > 0 ? timeout_ms : 1};
    _cleanup_(http_result_done)
    struct http_result result = {0};
    http_call_wait(c->http, &call, &result, NULL);
    int r = 0;
    if (result.code != 0)
        r = error_set(err, E_IN_DOUBT, "%s", result.err.message);
    else if ((r = etcd_answer_check(result.status, buf_str(&result.body), result.body.len, err)) ==
             0)
        r = json_parse(buf_str(&result.body), result.body.len, reply, err);
    if (r == E_JSON)
        r = error_recode(err, E_IN_DOUBT, "%s", url);
    if (r == E_IN_DOUBT) /* where another call has not gone on to the next one already */
        atomic_compare_exchange_strong(&c->at, &at, at + 1);
    return r;
}

/* --- logging in ------------------------------------------------------------------------------ */

static int read_password(const struct etcd_client *c, struct buf *out, struct error *err)
{
    int r = file_read_all(c->password_file, PASSWORD_MAX, out, err);
    if (r != 0)
        return error_recode(err, E_UNAUTHORIZED, "--etcd-password-file");
    out->len = strcspn(buf_str(out), "\r\n");
    out->data[out->len] = '\0';
    return 0;
}

static int log_in(struct etcd_client *c, uint64_t timeout_ms, struct error *err)
{
    _cleanup_(buf_done)
    struct buf password = BUF_INIT;
    _cleanup_json_ json_t *reply = NULL;
    const char *token;
    int r = read_password(c, &password, err);
    if (r != 0)
        return r;
    _cleanup_json_ json_t *body =
        json_pack("{s:s, s:s}", "name", c->user, "password", buf_str(&password));
    if ((r = attempt(c, "/v3/auth/authenticate", body, NULL, timeout_ms, &reply, err)) != 0 ||
        (r = json_need_str(reply, "", "token", &token, err)) != 0) {
        error_wrap(err, "log in as '%s'", c->user);
        return r;
    }
    pthread_mutex_lock(&c->lock);
    free(c->token);
    c->token = xstrdup(token);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static char *token_copy(struct etcd_client *c)
{
    pthread_mutex_lock(&c->lock);
    char *token = c->token != NULL ? xstrdup(c->token) : NULL;
    pthread_mutex_unlock(&c->lock);
    return token;
}

/* --- calls ----------------------------------------------------------------------------------- */

static int attempt_logged_in(struct etcd_client *c, const char *path, const json_t *body,
                             uint64_t timeout_ms, json_t **reply, struct error *err)
{
    _cleanup_free_ char *token = token_copy(c);
    return attempt(c, path, body, token, timeout_ms, reply, err);
}

/* A token ends some minutes after its last use, and with the members' restart. */
int etcd_call(struct etcd_client *c, const char *path, const json_t *body, uint64_t timeout_ms,
              json_t **reply, struct error *err)
{
    *reply = NULL;
    int r = attempt_logged_in(c, path, body, timeout_ms, reply, err);
    if (r != E_UNAUTHORIZED || c->user == NULL)
        return r;
    if ((r = log_in(c, timeout_ms, err)) != 0)
        return r;
    return attempt_logged_in(c, path, body, timeout_ms, reply, err);
}
