#include "api/client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/failure.h"
#include "api/identity/identity.h"
#include "api/interruptible.h"
#include "api/identity/profile.h"
#include "api/signer.h"
#include "api/identity/token_cache.h"
#include "api/uri.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"

#define RETRY_BASE_MS 100
#define RETRY_CAP_MS 5000
#define INTERRUPT_MS 50 /* how often a pause looks */

struct endpoints {
    char **list; /* NULL at the end */
    size_t count;
};

struct dfc_client {
    uint32_t connect_timeout_ms;
    uint32_t idle_timeout_ms;
    struct retry_policy retry; /* but for its attempts */
    atomic_uint attempts;
    struct signer *signer;
    struct identity *identity; /* or NULL */
    struct token_cache tokens; /* of its key */
    char *user_agent;
    char *ca_file; /* or NULL */
    bool insecure;
    struct endpoints endpoints;
    bool is_default;           /* nobody named the endpoints */
    struct endpoints controls; /* of control listeners; none: they are looked up */
    atomic_size_t endpoint;
    atomic_uint_fast64_t until_ms; /* 0: no limit */
    atomic_bool cancelled;
    int wake_fd; /* an eventfd, readable once cancelled */
    pthread_mutex_t lock;
    struct handle *idle;
    unsigned idle_count;
    unsigned idle_max;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void curl_start(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

const char *dfc_version(void)
{
    return DFC_VERSION;
}

void dfc_free(void *memory)
{
    free(memory);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* Of an option, the environment and the profile the first that is there. */
static const char *client_value(const char *option, const char *variable, const char *profile)
{
    const char *of_environment = getenv(variable);
    if (option != NULL)
        return option;
    return of_environment != NULL && of_environment[0] != '\0' ? of_environment : profile;
}

/* Of "URL,URL…"; what was read before an error is the list's, too. */
static int endpoints_parse(const char *list, struct endpoints *out, struct dfc_error *err)
{
    while (list != NULL) {
        const char *comma = strchr(list, ',');
        size_t len = comma != NULL ? (size_t)(comma - list) : strlen(list);
        char *one;
        int rc = uri_endpoint(list, len, &one, err);
        if (rc != DFC_OK)
            return rc;
        out->list = xrealloc(out->list, (out->count + 2) * sizeof *out->list);
        out->list[out->count++] = one;
        out->list[out->count] = NULL;
        list = comma != NULL ? comma + 1 : NULL;
    }
    return DFC_OK;
}

static void endpoints_done(struct endpoints *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->list[i]);
    free(e->list);
}

static const char *endpoints_or_default(const char *list)
{
    return list != NULL && list[0] != '\0' ? list : "http://127.0.0.1:8080";
}

static int client_controls(struct dfc_client *c, const char *option, struct dfc_error *err)
{
    const char *list = client_value(option, "DFC_CONTROL_ENDPOINT", NULL);
    return list != NULL && list[0] != '\0' ? endpoints_parse(list, &c->controls, err) : DFC_OK;
}

/* A token that one endpoint has given would go to another in plain text. */
static int client_identify(struct dfc_client *c, const struct dfc_client_options *o,
                           const struct profile *p, struct dfc_error *err)
{
    int rc = identity_new(o, p, &c->identity, err);
    for (size_t i = 1; rc == DFC_OK && c->identity != NULL && i < c->endpoints.count; i++) {
        if (uri_is_tls(c->endpoints.list[i]) != uri_is_tls(c->endpoints.list[0]))
            return failure_set(err, DFC_INVALID, E_INVALID,
                               "of endpoints with a login all are https://, or none: '%s' and '%s'",
                               c->endpoints.list[0], c->endpoints.list[i]);
    }
    return rc;
}

/* An earlier client's token. */
static void client_recall(struct dfc_client *c, const struct dfc_client_options *o,
                          const char *endpoints)
{
    struct kept_token kept;
    if (!o->keep_token || o->insecure || c->identity == NULL ||
        identity_secret(c->identity) == NULL)
        return;
    token_cache_init(&c->tokens, endpoints, identity_access(c->identity),
                     identity_secret(c->identity));
    uint64_t now_ms = (uint64_t)clock_wall_ms();
    if (!token_cache_get(&c->tokens, now_ms, &kept))
        return;
    uint64_t left_ms = kept.renew_ms > now_ms ? kept.renew_ms - now_ms : 0;
    identity_recall(c->identity, kept.text, clock_ms() + left_ms);
    secret_free(kept.text);
}

/* Where the cluster is, whom it must be certified by, and as whom to call it. */
static int client_reach(struct dfc_client *c, const struct dfc_client_options *o,
                        struct dfc_error *err)
{
    _cleanup_(profile_done)
    struct profile p = {0};
    const char *endpoints = client_value(o->endpoints, "DFC_ENDPOINT", NULL);
    int rc = profile_load(o->profile, endpoints, &p, err);
    if (rc != DFC_OK)
        return rc;
    const char *ca_file = client_value(o->ca_file, "DFC_CA_FILE", p.ca_file);
    c->ca_file = ca_file != NULL && ca_file[0] != '\0' ? xstrdup(ca_file) : NULL;
    c->is_default = endpoints == NULL && p.endpoints == NULL;
    endpoints = endpoints_or_default(endpoints != NULL ? endpoints : p.endpoints);
    rc = endpoints_parse(endpoints, &c->endpoints, err);
    if (rc == DFC_OK)
        rc = client_controls(c, o->control_endpoints, err);
    if (rc == DFC_OK)
        rc = client_identify(c, o, &p, err);
    if (rc == DFC_OK)
        client_recall(c, o, endpoints);
    return rc;
}

static struct dfc_client *client_new(const struct dfc_client_options *o)
{
    struct dfc_client *c = xcalloc(1, sizeof *c);
    c->connect_timeout_ms = or_default(o->connect_timeout_ms, 5000);
    c->idle_timeout_ms = or_default(o->idle_timeout_ms, 60000);
    c->retry = (struct retry_policy){
        .budget_ms = or_default(o->retry_budget_ms, 60000),
        .base_ms = RETRY_BASE_MS,
        .cap_ms = RETRY_CAP_MS,
    };
    c->attempts = or_default(o->attempts, 6);
    c->idle_max = or_default(o->idle_connections, 32);
    c->user_agent = xstrdup(o->user_agent != NULL ? o->user_agent : "libdfc/" DFC_VERSION);
    c->signer = signer_new(o->cluster_key_file != NULL ? o->cluster_key_file
                                                       : getenv("DFC_CLUSTER_KEY_FILE"));
    c->insecure = o->insecure;
    pthread_mutex_init(&c->lock, NULL);
    c->wake_fd = -1;
    return c;
}

int dfc_client_open(const struct dfc_client_options *options, struct dfc_client **client,
                    struct dfc_error *err)
{
    static const struct dfc_client_options none;
    if (options == NULL)
        options = &none;
    pthread_once(&curl_once, curl_start);
    if (curl_ready != CURLE_OK)
        return failure_set(err, DFC_LOCAL, E_INTERNAL, "libcurl: %s",
                           curl_easy_strerror(curl_ready));
    struct dfc_client *c = client_new(options);
    int rc = client_reach(c, options, err);
    if (rc != DFC_OK) {
        dfc_client_close(c);
        return rc;
    }
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake_fd < 0) {
        rc = failure_errno(err, errno, "eventfd");
        dfc_client_close(c);
        return rc;
    }
    *client = c;
    return DFC_OK;
}

static void handle_free(struct handle *h)
{
    curl_easy_cleanup(h->easy);
    free(h);
}

void dfc_client_close(struct dfc_client *c)
{
    if (c == NULL)
        return;
    while (c->idle != NULL) {
        struct handle *h = c->idle;
        c->idle = h->next;
        handle_free(h);
    }
    endpoints_done(&c->endpoints);
    endpoints_done(&c->controls);
    free(c->user_agent);
    free(c->ca_file);
    signer_free(c->signer);
    identity_free(c->identity);
    token_cache_done(&c->tokens);
    if (c->wake_fd >= 0)
        close(c->wake_fd);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void dfc_client_cancel(struct dfc_client *c)
{
    int saved = errno; /* this may be a signal handler */
    atomic_store(&c->cancelled, true);
    const uint64_t one = 1;
    ssize_t n = write(c->wake_fd, &one, sizeof one);
    (void)n; /* fails only where it is readable already */
    errno = saved;
}

const char *dfc_client_endpoint(const struct dfc_client *c)
{
    return c->endpoints.list[client_endpoint_current(c)];
}

struct handle *client_take(struct dfc_client *c, struct dfc_error *err)
{
    pthread_mutex_lock(&c->lock);
    struct handle *h = c->idle;
    if (h != NULL) {
        c->idle = h->next;
        c->idle_count--;
    }
    pthread_mutex_unlock(&c->lock);
    if (h != NULL)
        return h;
    h = xcalloc(1, sizeof *h);
    h->easy = curl_easy_init();
    if (h->easy != NULL)
        return h;
    free(h);
    failure_set(err, DFC_LOCAL, E_NOMEM, "libcurl has no memory for a handle");
    return NULL;
}

void client_give(struct dfc_client *c, struct handle *h)
{
    pthread_mutex_lock(&c->lock);
    bool keep = c->idle_count < c->idle_max;
    if (keep) {
        h->next = c->idle;
        c->idle = h;
        c->idle_count++;
    }
    pthread_mutex_unlock(&c->lock);
    if (!keep)
        handle_free(h);
}

bool client_cancelled(const struct dfc_client *c)
{
    return atomic_load_explicit(&c->cancelled, memory_order_relaxed) || client_is_interrupted();
}

int client_say_cancelled(struct dfc_error *err)
{
    return failure_set(err, DFC_CANCELLED, E_CANCELLED, "the call was cancelled");
}

bool client_pause(struct dfc_client *c, uint64_t ms)
{
    uint64_t until = clock_ms() + ms;
    for (;;) {
        uint64_t now = clock_ms();
        if (client_cancelled(c))
            return false;
        if (now >= until)
            return true;
        struct pollfd wake = {.fd = c->wake_fd, .events = POLLIN};
        uint64_t left = until - now;
        uint64_t most = client_is_interruptible() ? INTERRUPT_MS : 60000;
        poll(&wake, 1, (int)(left < most ? left : most));
    }
}

struct signer *client_signer(const struct dfc_client *c)
{
    return c->signer;
}

const struct token_cache *client_tokens(const struct dfc_client *c)
{
    return &c->tokens;
}

const char *const *client_control_endpoints(const struct dfc_client *c)
{
    return (const char *const *)c->controls.list;
}

struct identity *client_identity(const struct dfc_client *c)
{
    return c->identity;
}

bool client_is_tls(const struct dfc_client *c)
{
    for (size_t i = 0; i < c->endpoints.count; i++) {
        if (!uri_is_tls(c->endpoints.list[i]))
            return false;
    }
    return true;
}

const char *client_ca_file(const struct dfc_client *c)
{
    return c->ca_file;
}

bool client_is_default(const struct dfc_client *c)
{
    return c->is_default && c->controls.count == 0;
}

bool client_is_insecure(const struct dfc_client *c)
{
    return c->insecure;
}

uint32_t client_connect_timeout_ms(const struct dfc_client *c)
{
    return c->connect_timeout_ms;
}

uint32_t client_idle_timeout_ms(const struct dfc_client *c)
{
    return c->idle_timeout_ms;
}

struct retry_policy client_retry(const struct dfc_client *c)
{
    struct retry_policy policy = c->retry;
    policy.attempts = atomic_load_explicit(&c->attempts, memory_order_relaxed);
    return policy;
}

void client_attempts(struct dfc_client *c, uint32_t attempts)
{
    atomic_store_explicit(&c->attempts, attempts, memory_order_relaxed);
}

void client_limit(struct dfc_client *c, uint64_t until_ms)
{
    atomic_store_explicit(&c->until_ms, until_ms, memory_order_relaxed);
}

uint64_t client_left_ms(const struct dfc_client *c)
{
    uint64_t until = atomic_load_explicit(&c->until_ms, memory_order_relaxed);
    uint64_t now = clock_ms();
    if (until == 0)
        return UINT64_MAX;
    return until > now ? until - now : 0;
}

uint32_t client_within_limit(const struct dfc_client *c, uint32_t ms)
{
    uint64_t left = client_left_ms(c);
    if (left >= ms)
        return ms;
    return left > 0 ? (uint32_t)left : 1;
}

const char *client_user_agent(const struct dfc_client *c)
{
    return c->user_agent;
}

size_t client_endpoint_count(const struct dfc_client *c)
{
    return c->endpoints.count;
}

size_t client_endpoint_current(const struct dfc_client *c)
{
    return atomic_load_explicit(&c->endpoint, memory_order_relaxed);
}

const char *client_endpoint_at(const struct dfc_client *c, size_t i)
{
    return c->endpoints.list[i % c->endpoints.count];
}

void client_endpoint_answered(struct dfc_client *c, size_t i)
{
    atomic_store_explicit(&c->endpoint, i % c->endpoints.count, memory_order_relaxed);
}
