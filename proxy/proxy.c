/* A proxy's life: what is made in which order, and how it ends. */
#include "proxy/primary/proxy.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "access/exposure_gate.h"
#include "access/guard.h"
#include "access/login.h"
#include "access/password_tries.h"
#include "access/witness.h"
#include "cluster/placement/protection.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/rng.h"
#include "io/file.h"
#include "io/lock_file.h"
#include "gateway/gateway.h"
#include "io/pool.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "net/daemon_sources.h"
#include "net/direct/direct.h"
#include "net/tls/tls.h"
#include "proxy/jobs/job_stall.h"
#include "proxy/listeners.h"
#include "proxy/primary/candidate.h"
#include "proxy/primary/etcd_params.h"
#include "proxy/primary/follower.h"
#include "proxy/primary/gauges.h"
#include "proxy/metastore/etcd.h"
#include "proxy/primary/migration.h"
#include "proxy/metastore/moved.h"
#include "proxy/primary/overtaken.h"
#include "proxy/params_check.h"
#include "proxy/primary/primary.h"
#include "proxy/primary/publish.h"
#include "proxy/ais/summaries.h"
#include "proxy/http/cache_groups.h"
#include "proxy/http/relay_waits.h"
#include "proxy/primary/root.h"
#include "proxy/primary/state_file.h"
#include "proxy/primary/refused_nodes.h"
#include "proxy/watch/events.h"
#include "proxy/watch/stat_samples.h"

/* Relays have a limit of their own: one that waits for the end of others would seem to stall. */
enum { DIR_MODE = 0700 };
enum { STOP_STALL_MS = 1000, RELAY_PAUSE_MS = 200, PUSH_TEXTS_MAX = 1024 };

/* --- making ---------------------------------------------------------------------------------- */

static bool is_embedded(const struct proxy_params *params)
{
    return strcmp(params->metastore, metastore_embedded.scheme) == 0;
}

int proxy_new(struct proxy_params *params, struct proxy **out, struct error *err)
{
    struct proxy lists = {.endpoints = NULL};
    int r = proxy_params_read(params, &lists, err);
    if (r == 0)
        r = root_params_check(params, err);
    if (r != 0) {
        proxy_lists_free(&lists);
        return r;
    }
    struct proxy *p = xcalloc(1, sizeof *p);
    p->params = *params;
    *params = (struct proxy_params){0};
    p->sources = daemon_sources_new(proxy_param_rows, &p->params, proxy_params_live);
    p->id = p->params.id;
    p->endpoints = lists.endpoints;
    p->visitors = lists.visitors;
    p->exposure = lists.exposure;
    p->is_shared = !is_embedded(&p->params);
    pthread_rwlock_init(&p->role_lock, NULL);
    pthread_mutex_init(&p->verdict_lock, NULL);
    p->stalls = job_stalls_new();
    p->summaries = summaries_new();
    p->lock_fd = -1;
    p->started_fd = eventfd(0, EFD_CLOEXEC);
    assert(p->started_fd >= 0);
    random_id("", p->boot);
    p->refused_nodes = refused_nodes_new();
    p->cache_groups = cache_groups_new();
    p->events = events_new(&(struct events_config){
        .run = p->boot, .keep = p->params.events_max, .waits_max = p->params.events_waits_max});
    p->samples = stat_samples_new(&(struct stat_samples_config){
        .interval_ms = p->params.stats_interval,
        .late_ms = p->params.keepalive_late,
        .keep = (size_t)(p->params.stats_keep / p->params.stats_interval)});
    *out = p;
    return 0;
}

/* --- documents ------------------------------------------------------------------------------- */

static int lock_dir(struct proxy *p, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/lock", p->params.dir);
    int r = file_mkdirs(p->params.dir, DIR_MODE, err);
    return r != 0 ? r : lock_file_take(path, &p->lock_fd, err);
}

/* What the embedded metastore of a proxy without --join has; *is_first: nothing yet. */
static int open_embedded(struct proxy *p, struct cluster_state **s, bool *is_first,
                         struct error *err)
{
    _cleanup_free_ char *dir = xprintf("%s/metastore", p->params.dir);
    const struct metastore_config config = {.dir = dir, .fold_bytes = p->params.metastore_fold};
    int r;
    if ((r = metastore_embedded.open(&config, &p->metastore, err)) != 0 ||
        (r = p->metastore->ops->load(p->metastore, s, err)) != 0)
        return r;
    *is_first = *s == NULL;
    if (!*is_first && p->params.import[0] != '\0')
        return error_set(err, E_EXISTS,
                         "--import: '%s' has documents already; it is for an empty directory", dir);
    if (*is_first && p->params.import[0] != '\0')
        return state_file_import(p->params.import, s, err);
    if (*is_first) {
        char id[16];
        _cleanup_free_ char *seen = xprintf("%s/state.json", p->params.dir);
        if ((r = state_file_refuse(seen, err)) != 0)
            return r;
        random_id("c-", id);
        *s = state_new(id); /* it is one when its first term is committed */
    }
    return 0;
}

/* Documents of an earlier, embedded life would be forgotten in silence; those that have moved, or
 * are on their way, are taken along. */
static int refuse_embedded_documents(const struct proxy *p, struct error *err)
{
    _cleanup_free_ char *dir = xprintf("%s/metastore", p->params.dir);
    _cleanup_free_ char *path = xprintf("%s/snapshot", dir);
    if (access(path, F_OK) != 0 || p->params.import[0] != '\0' || moved_refuse(dir, NULL) != 0)
        return 0;
    return error_set(err, E_EXISTS,
                     "'%s' has documents of an embedded metastore. To take them along, start this "
                     "proxy once more without --metastore, and let 'dfcctl cluster "
                     "migrate-metastore --to %s' move them",
                     p->params.dir, p->params.metastore);
}

static int open_shared(struct proxy *p, struct error *err)
{
    const struct etcd_store_config etcd =
        etcd_params(&p->params, p->params.metastore, p->params.etcd_prefix);
    const struct metastore_config config = {.etcd = &etcd};
    int r = refuse_embedded_documents(p, err);
    return r != 0 ? r : metastore_etcd.open(&config, &p->metastore, err);
}

static int load_state_file(struct proxy *p, struct cluster_state **s, struct error *err)
{
    p->state_path = xprintf("%s/state.json", p->params.dir);
    file_restrict(p->state_path, STATE_FILE_MODE);
    int r = state_file_read(p->state_path, s, err);
    if (r != E_NOT_FOUND)
        return r;
    if (p->is_shared && (r = migration_last(p, s, err)) != 0)
        return r;
    if (*s == NULL)
        *s = state_new(""); /* to be heard of */
    return 0;
}

static bool is_sole_primary(const struct proxy *p)
{
    return !p->is_shared && p->params.join[0] == '\0';
}

static int load_documents(struct proxy *p, bool *is_first, struct error *err)
{
    struct cluster_state *s = NULL;
    int r = is_sole_primary(p) ? open_embedded(p, &s, is_first, err) : load_state_file(p, &s, err);
    if (r == 0 && p->is_shared)
        r = open_shared(p, err);
    if (r != 0) {
        state_unref(s);
        return r;
    }
    events_begin(p->events, s);
    p->state = state_holder_new(s);
    return 0;
}

/* --- what other nodes are told and asked ------------------------------------------------------ */

static void stamp_of(void *ctx, struct auth_stamp *out)
{
    const struct proxy *p = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    snprintf(out->cluster, sizeof out->cluster, "%s", s->cluster_id);
    out->term = s->term;
    out->version = s->version;
}

static int start_auth(struct proxy *p, struct error *err)
{
    const struct auth_config config = {.key_file = p->params.cluster_key_file,
                                       .node = p->id,
                                       .boot = p->boot,
                                       .stamp = stamp_of,
                                       .ctx = p};
    return auth_new(&config, &p->auth, err);
}

static struct exposure_gate *gate_of(const struct proxy *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    return exposure_gate_new(p->id, s->access.user_count > 0);
}

static int start_guard(struct proxy *p, struct error *err)
{
    const struct guard_config config = {.key_file = p->params.cluster_key_file,
                                        .state = p->state,
                                        .redirect_ttl_ms = p->params.redirect_ttl};
    if (p->exposure != EXPOSURE_AUTH) {
        p->gate = gate_of(p);
        return 0;
    }
    p->login = login_new();
    p->password_tries = password_tries_new();
    return guard_new(&config, &p->guard, err);
}

static int start_witness(struct proxy *p, struct error *err)
{
    const struct witness_config config = {.node = p->id,
                                          .file = p->params.audit_log,
                                          .level = p->params.audit,
                                          .buffer_bytes = p->params.audit_buffer,
                                          .must = p->params.audit_must};
    return witness_new(&config, &p->witness, err);
}

/* --- threads, clients, servers ---------------------------------------------------------------- */

int proxy_client_new(struct proxy *p, struct loop *loop, unsigned connections_per_host_max,
                     struct http_client **out, struct error *err)
{
    const struct http_client_config config = {
        .connect_timeout_ms = p->params.connect_timeout,
        .stall_timeout_ms = p->params.stall_timeout,
        .silence_ms = p->params.peer_silence,
        .connections_per_host_max = connections_per_host_max,
        .ca_file = *p->params.tls_ca != '\0' ? p->params.tls_ca : NULL,
        .auth = p->auth,
    };
    return http_client_new(loop, &config, out, err);
}

static int start_loop(struct proxy *p, const char *name, unsigned connections_per_host_max,
                      struct loop **loop, struct http_client **client, struct error *err)
{
    int r = loop_new(name, loop, err);
    return r != 0 ? r : proxy_client_new(p, *loop, connections_per_host_max, client, err);
}

static void start_overtaken(void *arg)
{
    struct proxy *p = arg;
    p->overtaken = overtaken_new(p->loop, p->data_client, p->state, p->params.overtaken_grace);
}

/* A primary that stops, or is replaced, answers at once. */
static bool waits_are_over(void *ctx)
{
    struct proxy *p = ctx;
    return !atomic_load(&p->ready) || atomic_load(&p->leaving) || !proxy_is_primary(p);
}

static void start_relay_waits(void *arg)
{
    struct proxy *p = arg;
    p->relay_waits = relay_waits_new(p->data_loop, RELAY_PAUSE_MS);
}

static void stop_relay_waits(void *arg)
{
    struct proxy *p = arg;
    relay_waits_free(p->relay_waits);
}

/* The data loop's calls end early where the control loop hears of another primary. */
static int start_data(struct proxy *p, struct error *err)
{
    int r = start_loop(p, "data", 0, &p->data_loop, &p->data_client, err);
    if (r == 0)
        loop_call(p->data_loop, start_relay_waits, p);
    if (r == 0)
        loop_call(p->loop, start_overtaken, p);
    if (r == 0)
        events_start(p->events, p->loop, waits_are_over, p);
    return r;
}

static int start_io(struct proxy *p, struct error *err)
{
    int r;
    if ((r = start_loop(p, "control", PROXY_CONNECTIONS_PER_HOST, &p->loop, &p->client, err)) !=
            0 ||
        (r = committer_new(p, &p->committer, err)) != 0 ||
        (r = pool_new("overhaul", 1, 2, &p->overhaul, err)) != 0 ||
        (r = pool_new("push-text", 1, PUSH_TEXTS_MAX, &p->push_pool, err)) != 0 ||
        (r = pool_keep(p->push_pool, 1, err)) != 0 || (r = pool_keep(p->overhaul, 1, err)) != 0 ||
        (r = pool_new("passwords", 2, 64, &p->passwords, err)) != 0 ||
        (r = start_data(p, err)) != 0 ||
        (r = start_loop(p, "list", PROXY_CONNECTIONS_PER_HOST, &p->list_loop, &p->list_client,
                        err)) != 0 ||
        (r = daemon_tls_new(p->params.tls_cert, p->params.tls_key, &p->tls, err)) != 0)
        return r;
    return listeners_start(p, err);
}

/* --- roles ----------------------------------------------------------------------------------- */

static void follow_primary(void *arg)
{
    struct proxy *p = arg;
    p->follower = follower_start(p);
}

static int start_sole_primary(struct proxy *p, bool is_first, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct primary_base base = {
        .state = s, .is_first = is_first, .next_epoch = is_first && p->params.import[0] != '\0'};
    int r = primary_begin(p, &base, (uint64_t)clock_wall_ms(), err);
    if (r == 0)
        r = root_settle(p, err);
    if (r != 0)
        return r;
    if (is_first && p->params.import[0] == '\0')
        log_info("a new cluster", lstr("cluster", s->cluster_id));
    proxy_start_succeeded(p);
    return 0;
}

/* What it holds from its last life serves clients until it hears more. */
static int start_follower(struct proxy *p, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    loop_call(p->loop, follow_primary, p);
    atomic_store(&p->started, true);
    if (s->cluster_id[0] != '\0' && p->params.import[0] == '\0')
        proxy_start_succeeded(p);
    return p->is_shared ? candidate_start(p, &p->candidate, err) : 0;
}

int proxy_start(struct proxy *p, struct error *err)
{
    bool is_first = false;
    int r;
    if ((r = start_auth(p, err)) != 0 || (r = lock_dir(p, err)) != 0 ||
        (r = load_documents(p, &is_first, err)) != 0 || (r = start_guard(p, err)) != 0 ||
        (r = start_witness(p, err)) != 0 || (r = start_io(p, err)) != 0)
        return r;
    return is_sole_primary(p) ? start_sole_primary(p, is_first, err) : start_follower(p, err);
}

/* --- started --------------------------------------------------------------------------------- */

static void start_decided(struct proxy *p)
{
    uint64_t one = 1;
    ssize_t n = write(p->started_fd, &one, sizeof one);
    assert(n == sizeof one);
    (void)n;
}

void proxy_start_succeeded(struct proxy *p)
{
    if (atomic_exchange(&p->ready, true))
        return;
    atomic_store(&p->started, true);
    start_decided(p);
}

void proxy_start_failed(struct proxy *p, const struct error *err)
{
    if (atomic_load(&p->ready) || p->start_error.code != 0)
        return;
    p->start_error = *err;
    start_decided(p);
}

int proxy_await(struct proxy *p, int stop_fd, struct error *err)
{
    struct pollfd fds[] = {
        {.fd = p->started_fd, .events = POLLIN},
        {.fd = stop_fd, .events = POLLIN},
    };
    while (poll(fds, 2, -1) < 0) {
        if (errno != EINTR)
            return error_errno(err, errno, "wait for the start");
    }
    if (fds[0].revents == 0)
        return error_set(err, E_CANCELLED, "stopped while starting");
    uint64_t ones;
    ssize_t n = read(p->started_fd, &ones, sizeof ones);
    assert(n == sizeof ones);
    (void)n;
    if (atomic_load(&p->ready))
        return 0;
    *err = p->start_error;
    return err->code;
}

void proxy_state_changed(struct proxy *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    gauges_of_state(s);
    events_state(p->events, s);
    if (p->follower != NULL)
        follower_state_changed(p->follower);
    overtaken_state_changed(p->overtaken);
    if (p->publisher != NULL)
        publisher_state_changed(p->publisher);
}

/* --- ending ---------------------------------------------------------------------------------- */

/* From here on nothing is begun in the control loop; what was begun ends by itself. */
static void close_parts(void *arg)
{
    struct proxy *p = arg;
    p->closing = true;
    if (p->follower != NULL)
        follower_close(p->follower);
}

static void stop_parts(void *arg)
{
    struct proxy *p = arg;
    follower_stop(p->follower);
    overtaken_free(p->overtaken);
    events_stop(p->events);
}

static void hurry(struct http_client *client)
{
    if (client != NULL)
        http_client_hurry(client, STOP_STALL_MS);
}

/* Servers first, whose requests all the rest answers, whatever a node does; then the primary's
 * parts, if it is one; then the calls under way, whose answers the follower takes; then this. */
static void stop_io(struct proxy *p)
{
    hurry(p->data_client);
    hurry(p->list_client);
    hurry(p->client);
    http_server_free(p->public_server);
    http_server_free(p->s3_server);
    http_server_free(p->admin_server);
    http_server_free(p->control_server);
    direct_reader_free(p->direct);
    pool_free(p->overhaul);
    pool_free(p->passwords);
    candidate_stop(p->candidate);
    if (p->loop != NULL) {
        primary_end(p);
        loop_call(p->loop, close_parts, p);
    }
    if (p->data_loop != NULL)
        loop_call(p->data_loop, stop_relay_waits, p);
    http_client_free(p->list_client);
    http_client_free(p->data_client);
    http_client_free(p->client);
    if (p->loop != NULL)
        loop_call(p->loop, stop_parts, p);
    pool_free(p->push_pool);
    loop_free(p->list_loop);
    loop_free(p->data_loop);
    loop_free(p->loop);
    committer_free(p->committer);
}

void proxy_free(struct proxy *p)
{
    if (p == NULL)
        return;
    atomic_store(&p->ready, false);
    atomic_store(&p->started, false);
    stop_io(p);
    gateway_free(p->gateway);
    guard_free(p->guard);
    exposure_gate_free(p->gate);
    witness_free(p->witness);
    login_free(p->login);
    password_tries_free(p->password_tries);
    auth_free(p->auth);
    tls_free(p->tls);
    state_holder_free(p->state);
    if (p->metastore != NULL)
        p->metastore->ops->close(p->metastore);
    candidate_free(p->candidate);
    pthread_rwlock_destroy(&p->role_lock);
    pthread_mutex_destroy(&p->verdict_lock);
    job_stalls_free(p->stalls);
    if (p->lock_fd >= 0)
        close(p->lock_fd);
    close(p->started_fd);
    refused_nodes_free(p->refused_nodes);
    cache_groups_free(p->cache_groups);
    events_free(p->events);
    stat_samples_free(p->samples);
    free(p->public_url);
    free(p->s3_url);
    free(p->admin_url);
    free(p->control_url);
    free(p->state_path);
    proxy_lists_free(p);
    summaries_free(p->summaries);
    daemon_sources_free(p->sources);
    params_free(proxy_param_rows, &p->params);
    free(p);
}
