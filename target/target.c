#include "target/node/target.h"
#include "target/node/thread_classes.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "access/witness.h"
#include "cluster/documents/job.h"
#include "cluster/documents/layout.h"
#include "cluster/placement/owners.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "net/auth/auth.h"
#include "net/daemon_sources.h"
#include "net/direct/direct.h"
#include "net/tls/tls.h"
#include "gateway/gateway.h"
#include "io/file.h"
#include "io/lock_file.h"
#include "target/listeners.h"
#include "target/archive/appends.h"
#include "target/archive/archives.h"
#include "target/archive/unpackers.h"
#include "target/archive/batch.h"
#include "target/cold/back.h"
#include "target/cold/cold.h"
#include "target/copies/copies.h"
#include "target/cold/fresh.h"
#include "target/store/evict.h"
#include "target/store/file_md5.h"
#include "target/copies/earlier_owners.h"
#include "target/uploads/upload_sweep.h"
#include "target/uploads/uploads.h"
#include "target/slices/ec.h"
#include "target/format/ec_manifest.h"
#include "target/slices/slice_repair.h"
#include "target/slices/slices.h"
#include "target/disk/boot_id.h"
#include "target/disk/health.h"
#include "target/copies/hidden.h"
#include "target/disk/job_files.h"
#include "target/jobs/job_notify.h"
#include "target/jobs/kinds.h"
#include "target/node/state_sync.h"
#include "target/copies/unrecoverable.h"
#include "target/node/member.h"
#include "target/node/params_check.h"
#include "target/node/quotas.h"
#include "target/node/readiness.h"
#include "target/node/settings.h"
#include "target/node/start_progress.h"
#include "target/node/public_guard.h"
#include "target/copies/object_copy.h"
#include "target/store/renames.h"
#include "target/ring/rings.h"
#include "target/sort/host.h"
#include "target/copies/repair_wanted.h"
#include "target/copies/dirty_worker.h"
#include "target/copies/staged.h"
#include "target/store/sweep.h"
#include "xaction/xaction.h"

/* Streams between targets wait for each other's other streams: they are not limited. */
enum {
    CONTROL_CONNECTIONS_PER_HOST = 64,
    GROW_FIRST = 1 << 20, /* of a body of unknown length: most are small */
};

static const struct xaction_ops *const kinds[] = {
#define KIND(name, shown, label, resumes, again, bare, undone, summary) &shown##_xaction,
#include "xaction/kinds.def"
#undef KIND
    NULL};

/* --- what the store asks ---------------------------------------------------------------------- */

static void env_map(void *ctx, uint64_t *term, uint64_t *map_version)
{
    struct target *t = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    *term = s->term;
    /* Of the whole state, not of its smap: that of a bucket that was destroyed and made anew would
     * be the same, and so would the versions, and with them the entity tags, of its objects. */
    *map_version = s->version;
}

static bool env_job_committed(void *ctx, const char *job_id)
{
    struct target *t = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct job *job = jobs_find(&s->jobs, job_id);
    return job != NULL && !job_leaves_out(job, t->id) &&
           (job->state == JOB_COMMITTING || job->state == JOB_FINISHED);
}

/* A list of a closed bucket must miss no object that is there in the end (list_routes.c).  Replicas
 * and slices may come before this target hears of their bucket: its leader has. */
static int env_takes(void *ctx, uint64_t bucket_id, struct error *err)
{
    struct target *t = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    uint64_t id = ec_bucket_of_slices(bucket_id);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, id);
    if (state_bucket_is_gone(s, id))
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    if (b != NULL && state_bucket_is_closed(s, b))
        return error_set(err, E_NOT_READY, "bucket '%s' is being destroyed; try again", b->name);
    return 0;
}

/* Of several copies each owner writes its own, told by the one that acts. */
static bool env_owns(void *ctx, uint64_t bucket_id, const char *name)
{
    struct target *t = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct node *owner;
    struct owners owners;
    if (ec_is_slices_bucket(bucket_id)) /* who has made it says where it goes */
        return true;
    if (smap_owners(&s->smap, bucket_id, name, 1, &owner) == 1 && strcmp(owner->id, t->id) == 0)
        return true;
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    if (b == NULL || !bucket_has_copies(b))
        return false;
    owners_of(s, b, name, &owners);
    return owners_has(&owners, t->id);
}

static void env_pending(void *ctx, uint64_t bucket_id, const char *name, int64_t written_ms)
{
    struct target *t = ctx;
    back_note(t->back, bucket_id, name, written_ms);
}

static bool env_uploading(void *ctx, uint64_t bucket_id, const char *name)
{
    struct target *t = ctx;
    return back_is_uploading(t->back, bucket_id, name);
}

/* --- what membership asks --------------------------------------------------------------------- */

static void lease(struct target *t, int64_t sent_ms, uint64_t lease_ms)
{
    copies_lease(t->copies, sent_ms, lease_ms);
}

/* What is here and not yet where it belongs, and what is nowhere any more. */
static void add_capacity(struct target *t, json_t *capacity)
{
    struct back_count back = back_count(t->back);
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct cold_outages out = cold_outages(t->cold, s);
    json_object_set_new(capacity, "backends_failing", json_integer((json_int_t)out.buckets));
    json_object_set_new(capacity, "failing_bucket", json_string(out.bucket));
    json_object_set_new(capacity, "failing_endpoint", json_string_escaped(out.endpoint));
    json_object_set_new(capacity, "lost",
                        json_integer((json_int_t)unrecoverable_count(t->unrecoverable)));
    json_object_set_new(capacity, "uploads_waiting", json_integer((json_int_t)back.waiting));
    json_object_set_new(capacity, "uploads_late", json_integer((json_int_t)back.late));
    json_object_set_new(capacity, "uploads_oldest_ms", json_integer((json_int_t)back.oldest_ms));
    json_object_set_new(capacity, "certificate_left_s",
                        json_integer((json_int_t)tls_left_s(t->tls)));
}

/* --- a new state ------------------------------------------------------------------------------ */

void target_readiness(struct target *t, bool synced, struct readiness *out)
{
    struct error refusal;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    bool serves = atomic_load(&t->serving) && state_sync_has_state(t->state_sync);
    bool refused = serves && member_is_refused(t->member, &refusal);
    const struct readiness_question q = {.state = s,
                                         .self = t->id,
                                         .boot = t->boot,
                                         .serves = serves,
                                         .stops = atomic_load(&t->leaving),
                                         .refused = refused ? refusal.message : NULL,
                                         .synced = synced,
                                         .is_full = atomic_load(&t->is_full)};
    readiness(&q, out);
}

void target_ready_changed(struct target *t)
{
    uint64_t one = 1;
    ssize_t n = write(t->ready_fd, &one, sizeof one);
    assert(n == sizeof one);
    (void)n;
}

static void state_changed(void *ctx, const struct cluster_state *s)
{
    struct target *t = ctx;
    settings_take(t, s);
    sweeper_wake(t->sweeper);
    back_look(t->back);
    cold_list_forget(t->cold, &s->jobs);
    job_files_settle(t->mountpaths, t->xactions, &s->jobs, t->id);
    rings_state_changed(t->rings);
    target_ready_changed(t);
    member_state_taken(t->member);
}

/* --- starting: a row of steps ----------------------------------------------------------------- */

int target_new(struct target_params *params, struct target **out, struct error *err)
{
    struct target lists = {.allow = NULL};
    int code = target_params_read(params, &lists, err);
    int ready_fd = code == 0 ? eventfd(0, EFD_CLOEXEC) : -1;
    if (code == 0 && ready_fd < 0)
        code = error_errno(err, errno, "eventfd");
    if (code != 0) {
        target_lists_free(&lists);
        return code;
    }
    struct target *t = xcalloc(1, sizeof *t);
    t->allow = lists.allow;
    t->endpoints = lists.endpoints;
    t->visitors = lists.visitors;
    t->exposure = lists.exposure;
    target_params_take(params, &t->params);
    t->sources = daemon_sources_new(target_param_rows, &t->params, target_params_live);
    t->id = t->params.id;
    t->slices = &ec_hooks;
    t->space = target_space_limits(&t->params);
    t->ready_fd = ready_fd;
    t->lock_fd = -1;
    t->reads = metric_get(M_object_get_total, NULL);
    t->reads_beside = metric_get(M_reads_beside_total, NULL);
    t->read_bytes = metric_get(M_object_get_bytes_total, NULL);
    random_id("", t->boot);
    *out = t;
    return 0;
}

static int start_dir(struct target *t, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/lock", t->params.dir);
    int code = file_mkdirs(t->params.dir, 0755, err);
    return code != 0 ? code : lock_file_take(path, &t->lock_fd, err);
}

static int start_mountpaths(struct target *t, struct error *err)
{
    struct start_progress progress;
    start_progress_begin(&progress, t->notify);
    const struct mountpaths_config config = {
        .target_id = t->id,
        .list = t->params.mountpaths,
        .index_map_size = t->params.index_map_size,
        .disk_depth = (unsigned)t->params.disk_queue_depth,
        .plain_io = !t->params.io_uring,
        .readers = (unsigned)t->params.disk_readers,
        .readers_queue = LISTENERS * t->params.connections_max, /* one for each connection */
        .reindex = t->params.reindex,
        .moved_ok = t->params.mountpath_moved_ok,
        .lost_ok = t->params.mountpath_lost_ok,
        .missing_ok = t->params.mountpath_missing_ok,
        .close_wait_ms = t->params.mountpath_close_wait,
        .joined_only = *t->params.join == '\0',
        .on_progress = start_progress_add,
        .progress_ctx = &progress,
    };
    return mountpaths_open(&config, &t->mountpaths, err);
}

static int start_state(struct target *t, struct error *err)
{
    const struct state_sync_hooks hooks = {.ctx = t, .changed = state_changed};
    int code = state_sync_new(t->mountpaths, t->id, &hooks, &t->state_sync, &t->state, err);
    if (code == 0 && !state_sync_has_state(t->state_sync))
        boot_id_of(t->mountpaths, t->boot);
    if (code == 0)
        settings_take_last(t);
    return code;
}

static void stamp_of(void *ctx, struct auth_stamp *out)
{
    const struct target *t = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    snprintf(out->cluster, sizeof out->cluster, "%s", s->cluster_id);
    out->term = s->term;
    out->version = s->version;
}

static int start_auth(struct target *t, struct error *err)
{
    const struct auth_config config = {.key_file = t->params.cluster_key_file,
                                       .node = t->id,
                                       .boot = t->boot,
                                       .stamp = stamp_of,
                                       .ctx = t};
    return auth_new(&config, &t->auth, err);
}

/* Who is let in, and what becomes of calls. */
static int start_guard(struct target *t, struct error *err)
{
    const struct witness_config witness = {.node = t->id,
                                           .file = t->params.audit_log,
                                           .level = t->params.audit,
                                           .buffer_bytes = t->params.audit_buffer,
                                           .must = t->params.audit_must};
    int code = witness_new(&witness, &t->witness, err);
    return code != 0 ? code : public_guard_start(t, err);
}

static int start_store(struct target *t, struct error *err)
{
    (void)err;
    t->object_env = (struct object_env){.ctx = t,
                                        .map = env_map,
                                        .job_committed = env_job_committed,
                                        .owns = env_owns,
                                        .takes = env_takes,
                                        .pending = env_pending,
                                        .uploading = env_uploading};
    t->store = object_store_new(&(struct object_store_config){
        .mountpaths = t->mountpaths,
        .env = &t->object_env,
        .put_buffer_bytes = t->params.put_buffer,
        .put_memory_bytes = t->params.put_memory,
        .space = t->space,
        .grow = {.first = GROW_FIRST, .most = t->params.space_step},
        .allocate = {.first = t->params.allocate_first, .most = t->params.allocate_most},
    });
    t->quotas = quotas_new(t);
    return 0;
}

static int start_loop(struct target *t, const char *name, unsigned connections_per_host_max,
                      struct loop **loop, struct http_client **client, struct error *err)
{
    const struct http_client_config config = {
        .connect_timeout_ms = t->params.connect_timeout,
        .stall_timeout_ms = t->params.stall_timeout,
        .silence_ms = t->params.peer_silence,
        .connections_per_host_max = connections_per_host_max,
        .ca_file = *t->params.tls_ca != '\0' ? t->params.tls_ca : NULL,
        .auth = t->auth,
    };
    int code = loop_new(name, loop, err);
    return code != 0 ? code : http_client_new(*loop, &config, client, err);
}

static int start_threads(struct target *t, struct error *err)
{
    const struct target_params *p = &t->params;
    struct pool *hashers;
    int code = thread_class_new(THREADS_WORKER, p, &t->workers, err);
    if (code == 0)
        code = thread_class_new(THREADS_MOVER, p, &t->movers, err);
    if (code == 0)
        code = thread_class_new(THREADS_HASHER, p, &hashers, err);
    if (code == 0)
        t->hashers = hashers_new(hashers);
    if (code == 0)
        code = thread_class_new(THREADS_HANDER, p, &t->handers, err);
    if (code == 0)
        code = thread_class_new(THREADS_SORT_READER, p, &t->sort_readers, err);
    if (code == 0)
        t->renames = renames_new(t->movers);
    if (code == 0)
        code = start_loop(t, "control", CONTROL_CONNECTIONS_PER_HOST, &t->control,
                          &t->control_client, err);
    if (code == 0)
        code = start_loop(t, "data", 0, &t->data, &t->data_client, err);
    return code;
}

static int start_evictor(struct target *t, struct error *err)
{
    t->last_use = last_use_new(t->store);
    const struct evictor_config config = {.store = t->store,
                                          .state = t->state,
                                          .last_use = t->last_use,
                                          .limits = &t->space,
                                          .interval_ms = t->params.evict_interval};
    return evictor_new(&config, &t->evictor, err);
}

static int start_jobs(struct target *t, struct error *err)
{
    const struct sweeper_config config = {
        .store = t->store,
        .state = t->state,
        .interval_ms = t->params.sweep_interval,
        .tombstone_ttl_ms = t->params.tombstone_ttl,
        .flush_ms = t->params.flush_interval,
        .abandoned_ms = t->params.abandoned_after,
        .keeps = {.all = copies_keep_all, .name = copies_keep_name, .arg = t},
    };
    t->copier = object_copier_new(t);
    t->unrecoverable = unrecoverable_new(t, repair_wanted);
    int copies = copies_new(t, &t->copies, err);
    if (copies != 0)
        return copies;
    int slices = ec_new(t, &t->ec, err);
    if (slices != 0)
        return slices;
    const struct health_config health = {
        .mountpaths = t->mountpaths,
        .tests = t->params.health,
        .interval_ms = t->params.health_interval,
        .test_bytes = t->params.health_test_size,
        .test_timeout_ms = t->params.health_test_timeout,
        .errors_max = t->params.health_errors,
        .window_ms = t->params.health_window,
    };
    int code = health_new(&health, &t->health, err);
    if (code == 0)
        code = cold_new(t, &t->cold, err);
    if (code == 0)
        code = back_new(t, &t->back, err);
    if (code == 0)
        code = batches_new(t, &t->batches, err);
    if (code == 0)
        code = appends_new(t, &t->appends, err);
    if (code == 0)
        code = unpackers_new(t, &t->unpackers, err);
    t->fresh = cold_fresh_new(t);
    t->archives = archives_new(t);
    if (code == 0)
        code = start_evictor(t, err);
    if (code != 0)
        return code;
    code = uploads_new(t, &t->uploads, err);
    if (code != 0)
        return code;
    t->upload_sweep = upload_sweep_new(t);
    code = rings_new(t, &t->rings, err);
    if (code != 0)
        return code;
    t->xactions = xactions_new(kinds, t, job_notify);
    return sweeper_new(&config, &t->sweeper, err);
}

static int start_member(struct target *t, struct error *err)
{
    static const struct member_hooks hooks = {.lease = lease, .capacity = add_capacity};
    return member_new(t, &hooks, &t->member, err);
}

int target_start(struct target *t, struct error *err)
{
    static int (*const steps[])(struct target * t, struct error * err) = {
        start_dir,   start_auth,    start_mountpaths, start_state,  start_guard,
        start_store, start_threads, start_jobs,       start_member, target_listen,
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int code = steps[i](t, err);
        if (code != 0)
            return code;
    }
    member_begin(t->member);
    atomic_store(&t->serving, true);
    target_ready_changed(t);
    return 0;
}

/* --- stopping --------------------------------------------------------------------------------- */

static void stop_uploads(struct target *t)
{
    if (t->upload_sweep != NULL)
        upload_sweep_stop(t->upload_sweep);
    if (t->uploads != NULL)
        uploads_stop(t->uploads);
    rings_stop(t->rings);
}

static void free_uploads(struct target *t)
{
    uploads_free(t->uploads);
    appends_free(t->appends);
    upload_sweep_free(t->upload_sweep);
    rings_free(t->rings);
}

static void stop_archives(struct target *t)
{
    appends_stop(t->appends);
    archives_stop(t->archives);
    unpackers_stop(t->unpackers);
    batches_stop(t->batches);
}

static void stop_backends(struct target *t)
{
    if (t->cold != NULL)
        cold_stop(t->cold);
    if (t->back != NULL)
        back_stop(t->back);
}

static void free_jobs(struct target *t)
{
    pool_free(t->sort_readers); /* its last work releases the jobs that it holds */
    xactions_free(t->xactions);
}

/* Jobs and renames are told to stop before the servers wait for requests, for some wait for them;
 * jobs, which wait for their streams, go after the servers and before the clients; calls that are
 * under way end with their client, and who takes their ends goes after that. */
void target_free(struct target *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->serving, false);
    member_close(t->member);
    quotas_stop(t->quotas);
    if (t->xactions != NULL)
        xactions_close(t->xactions);
    stop_uploads(t);
    if (t->copier != NULL)
        object_copier_stop(t->copier);
    stop_backends(t);
    copies_stop(t->copies);
    ec_stop(t->ec);
    stop_archives(t);
    target_listeners_free(t);
    direct_reader_free(t->direct);
    if (t->state_sync != NULL) /* a worker may still take a state: who is told of it goes now */
        state_sync_quiet(t->state_sync);
    free_jobs(t);
    free_uploads(t);
    pool_free(t->movers);
    hashers_free(t->hashers);
    renames_free(t->renames);
    pool_free(t->handers);
    cold_free(t->cold);
    archives_free(t->archives);
    unpackers_free(t->unpackers);
    batches_free(t->batches);
    ec_free(t->ec);
    sweeper_free(t->sweeper); /* it asks for marks */
    copies_free(t->copies);
    cold_fresh_free(t->fresh);
    http_client_free(t->data_client);
    object_copier_free(t->copier);
    http_client_free(t->control_client);
    pool_free(t->workers);
    quotas_free(t->quotas);
    unrecoverable_free(t->unrecoverable);
    loop_free(t->data);
    loop_free(t->control);
    member_free(t->member);
    back_free(t->back);
    evictor_free(t->evictor);
    last_use_free(t->last_use);
    health_free(t->health);
    object_store_free(t->store);
    gateway_free(t->gateway);
    public_guard_free(t);
    witness_free(t->witness);
    auth_free(t->auth);
    state_sync_free(t->state_sync);
    mountpaths_close(t->mountpaths);
    if (t->lock_fd >= 0)
        close(t->lock_fd);
    close(t->ready_fd);
    target_lists_free(t);
    params_free(target_param_rows, &t->params);
    free(t);
}
