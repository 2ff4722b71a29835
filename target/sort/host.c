#include "target/sort/host.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/shard/format.h"
#include "sort/shard/output_names.h"
#include "sort/task/plan.h"
#include "target/disk/job_files.h"
#include "target/jobs/kinds.h"
#include "target/store/list.h"
#include "target/copies/object_copy.h"
#include "target/cold/cold.h"
#include "target/sort/archive_put.h"
#include "target/sort/archive_spec.h"
#include "target/sort/archive_view.h"
#include "target/sort/built.h"
#include "target/sort/outputs.h"
#include "target/sort/peers.h"
#include "target/sort/pins.h"
#include "target/sort/threads.h"
#include "target/node/target.h"
#include "xaction/objects_spec.h"

enum {
    PEER_PIPE_BYTES = 1 << 20, /* of one stream, … */
    PEER_PIPE_MIN = 64 << 10,
    PEER_MEMORY = 64 << 20, /* … or less, so that all at once stay within this */
    MS_PER_S = 1000,
    WORK_FIRST = 1 << 20, /* room that a work file asks for at first */
};

struct sort_host {
    struct sort_part part;
    bool *absent; /* by number: the job goes on without them */
    struct sort_peers *peers;
    struct sort_env env;
    struct sort_pins pins;
    struct sort_outputs outputs;
    struct archive_puts *puts;        /* of an archive that is one object; else NULL */
    bool archives, makes_one;         /* a job `archive`; … */
    atomic_ullong begun_ms, ended_ms; /* of run(); 0: not yet */
    struct sort_task *task;           /* NULL before prepare */
    atomic_uint next_work_file;       /* goes round the mountpaths */
};

struct sort_task *sort_host_task(struct sort_host *h)
{
    return h->task;
}

uint64_t sort_host_attempt(const struct sort_host *h)
{
    return h->part.job->attempt;
}

/* --- input ------------------------------------------------------------------------------------ */

static int env_pin_shards(void *ctx, const struct sort_spec *spec, sort_shard_fn *each, void *arg,
                          struct sort_pinned *pinned, struct error *err)
{
    struct sort_host *h = ctx;
    (void)spec;
    return sort_pins_make(&h->pins, each, arg, pinned, err);
}

static int env_open_shard(void *ctx, const char *name, int *fd, struct error *err)
{
    struct sort_host *h = ctx;
    return sort_pins_open(&h->pins, name, fd, err);
}

/* An object of the cluster is read from the owner that acts for it, be that this target. */
static int key_map_url(const struct sort_host *h, const struct sort_spec *spec, char **node,
                       struct buf *url, struct error *err)
{
    if (spec->ekm_bucket == NULL) {
        buf_puts(url, spec->ekm_file);
        return 0;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(h->part.target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, h->part.plan->ekm_bucket_id);
    struct owners owners;
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' was destroyed meanwhile",
                         spec->ekm_bucket);
    owners_of(s, b, spec->ekm_object, &owners);
    if (owners.acting == NULL)
        return error_set(err, E_NET, "no owner of '%s' answers", spec->ekm_object);
    *node = xstrdup(owners.acting->id);
    buf_puts(url, owners.acting->data_url);
    location_put_object(url, spec->ekm_bucket, spec->ekm_object);
    return 0;
}

/* A server that does not give the map is no target that was lost, and no reason to begin again; an
 * owner that another one acts for by now, or that waits for a third, is. */
static int key_map_failure(struct sort_host *h, const struct sort_spec *spec, int code,
                           struct error *err)
{
    const char *map = spec->ekm_file;
    if (spec->ekm_bucket != NULL)
        return object_copy_may_pass(code) ? error_recode(err, E_NET, "external key map '%s'", map)
                                          : error_wrap(err, "external key map '%s'", map);
    bool theirs = code == E_NET || code == E_TIMEOUT || code == E_LENGTH || code == E_NOT_READY;
    return theirs && !atomic_load(&h->part.stopped)
               ? error_recode(err, E_BACKEND, "external key map '%s'", map)
               : error_wrap(err, "external key map '%s'", map);
}

static int env_read_key_map(void *ctx, const struct sort_spec *spec,
                            int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                            void *arg, struct error *err)
{
    struct sort_host *h = ctx;
    _cleanup_free_ char *piece = xmalloc(PEER_PIPE_MIN);
    _cleanup_(bpipe_unrefp)
    struct bpipe *pipe = NULL;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_free_ char *node = NULL; /* that has it */
    int code = key_map_url(h, spec, &node, &url, err);
    if (code == 0)
        code = spec->ekm_bucket != NULL
                   ? sort_peers_get(h->peers, node, buf_str(&url), &pipe, err)
                   : sort_peers_get_outside(h->peers, buf_str(&url), &pipe, err);
    for (ssize_t n = 1; code == 0 && n > 0;) {
        n = bpipe_read(pipe, piece, PEER_PIPE_MIN, err);
        code = n < 0 ? (int)n : feed(arg, piece, (size_t)n, err);
    }
    if (code != 0 && pipe != NULL)
        bpipe_cancel(pipe, err);
    return code != 0 ? key_map_failure(h, spec, code, err) : 0;
}

static int env_open_work_file(void *ctx, int *fd, struct error *err)
{
    struct sort_host *h = ctx;
    unsigned n = atomic_fetch_add(&h->next_work_file, 1);
    return job_files_open_work(h->part.target->mountpaths, &h->part.target->space, h->part.job->id,
                               n, fd, err);
}

static int env_claim_work(void *ctx, int fd, uint64_t from, uint64_t to, struct error *err)
{
    const struct sort_host *h = ctx;
    const struct space_steps steps = {.first = WORK_FIRST,
                                      .most = h->part.target->params.space_step};
    return job_files_claim_work(h->part.target->mountpaths, &h->part.target->space, &steps, fd,
                                from, to, err);
}

/* --- peers ------------------------------------------------------------------------------------ */

static const char *env_target_name(void *ctx, unsigned number)
{
    const struct sort_host *h = ctx;
    return number < h->part.plan->count ? h->part.plan->ids[number] : "?";
}

static int env_send_begin(void *ctx, unsigned to, enum sort_channel channel, struct bpipe **pipe,
                          void **handle, struct error *err)
{
    struct sort_host *h = ctx;
    return sort_peers_send_begin(h->peers, to, channel, pipe, handle, err);
}

static int env_send_end(void *ctx, void *handle, struct error *err)
{
    struct sort_host *h = ctx;
    return sort_peers_send_end(h->peers, handle, err);
}

static int env_fetch_records(void *ctx, unsigned from, const void *request, size_t len,
                             struct bpipe **pipe, struct error *err)
{
    struct sort_host *h = ctx;
    return sort_peers_fetch_records(h->peers, from, request, len, pipe, err);
}

/* --- output ----------------------------------------------------------------------------------- */

static unsigned env_owner(void *ctx, const char *name)
{
    const struct sort_host *h = ctx;
    return sort_outputs_owner(&h->outputs, name);
}

static int env_output_check(void *ctx, const char *name, struct error *err)
{
    const struct sort_host *h = ctx;
    return h->makes_one ? 0 : sort_outputs_check(&h->outputs, name, err);
}

static int env_output_begin(void *ctx, const char *name, uint64_t size, struct sort_output **out,
                            struct error *err)
{
    const struct sort_host *h = ctx;
    return h->makes_one ? archive_put_begin(h->puts, name, out, err)
                        : sort_outputs_begin(&h->outputs, name, size, out, err);
}

static int env_output_write(void *ctx, struct sort_output *out, const void *data, size_t len,
                            struct error *err)
{
    const struct sort_host *h = ctx;
    return h->makes_one ? archive_put_write(out, data, len, err)
                        : object_put_write((struct object_put *)out, data, len, err);
}

static int env_output_finish(void *ctx, struct sort_output *out, struct error *err)
{
    const struct sort_host *h = ctx;
    return h->makes_one ? archive_put_finish(out, err) : sort_outputs_finish(&h->outputs, out, err);
}

static void env_output_discard(void *ctx, struct sort_output *out)
{
    const struct sort_host *h = ctx;
    if (h->makes_one)
        archive_put_discard(out);
    else
        object_put_abort((struct object_put *)out);
}

static int env_output_remember(void *ctx, const char *name, const struct sort_digest *order,
                               struct error *err)
{
    const struct sort_host *h = ctx;
    return h->makes_one ? 0 : sort_built_add(&h->part, name, order, err);
}

static int env_outputs_remembered(void *ctx,
                                  void (*each)(void *arg, const struct sort_digest *order),
                                  void *arg, struct error *err)
{
    const struct sort_host *h = ctx;
    return h->makes_one ? 0 : sort_built_each(&h->part, each, arg, err);
}

static bool env_output_stands(void *ctx, const char *name)
{
    const struct sort_host *h = ctx;
    return h->makes_one || sort_outputs_stand(&h->outputs, name);
}

static int env_outputs_prune(void *ctx, bool (*wanted)(void *arg, const char *name), void *arg,
                             struct error *err)
{
    struct sort_host *h = ctx;
    return h->makes_one ? 0 : sort_outputs_prune(&h->outputs, wanted, arg, err);
}

/* --- the kind --------------------------------------------------------------------------------- */

static void host_free(void *self)
{
    struct sort_host *h = self;
    sort_task_free(h->task);
    sort_peers_free(h->peers);
    archive_puts_free(h->puts);
    sort_outputs_done(&h->outputs);
    sort_pins_done(&h->pins);
    free(h->absent);
    sort_plan_free(h->part.plan);
    sort_spec_free(h->part.spec);
    job_unref(h->part.job);
    free(h);
}
DEFINE_CLEANUP(struct sort_host, host_free);

/* As the job's document has it now. */
static void host_leave_out(struct sort_host *h)
{
    for (size_t i = 0; i < h->part.job->without_count; i++) {
        int number = sort_plan_number(h->part.plan, h->part.job->without[i]);
        if (number < 0)
            continue;
        h->absent[number] = true;
        sort_plan_leave_out(h->part.plan, (unsigned)number);
    }
}

/* Its buckets are named by what they are called now; the plan has their ids. */
static int parse_archive(struct sort_host *h, struct error *err)
{
    _cleanup_(objects_spec_freep)
    struct objects_spec *o = NULL;
    _cleanup_state_ const struct cluster_state *s = state_current(h->part.target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, h->part.plan->input_bucket_id);
    int code = objects_spec_parse(h->part.job->kind, h->part.job->spec, &o, err);
    if (code != 0)
        return code;
    h->archives = true;
    h->makes_one = o->shards == NULL;
    return archive_sort_spec(o, b != NULL ? b->name : "?", &h->part.spec, err);
}

static int host_parse(struct sort_host *h, struct error *err)
{
    bool archives = strcmp(h->part.job->kind, "archive") == 0;
    int code = sort_plan_parse(h->part.job->plan, &h->part.plan, err);
    if (code == 0)
        code = archives ? parse_archive(h, err)
                        : sort_spec_parse(h->part.job->spec, &h->part.spec, err);
    if (code == 0)
        code = bucket_props_from_json(h->part.plan->output_props, &h->part.output_props, err);
    if (code != 0)
        return code;
    int number = sort_plan_number(h->part.plan, h->part.target->id);
    if (number < 0)
        return error_set(err, E_INVALID, "target '%s' does not take part in the job",
                         h->part.target->id);
    h->part.self = (unsigned)number;
    h->absent = xcalloc(h->part.plan->count, sizeof *h->absent);
    host_leave_out(h);
    return 0;
}

static unsigned disks(const struct sort_host *h)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(h->part.target->mountpaths);
    return set->placed > 0 ? (unsigned)set->placed : 1;
}

static unsigned threads_of(const struct sort_host *h, const struct sort_threads_phase *phase,
                           unsigned asked)
{
    return sort_threads_of(phase, asked, disks(h), sysconf(_SC_NPROCESSORS_ONLN));
}

static unsigned create_threads_of(const struct sort_host *h)
{
    unsigned wanted = threads_of(h, &sort_threads_creating, h->part.spec->create_concurrency);
    return sort_threads_create(wanted, h->part.plan->count, h->part.target->params.connections_max);
}

/* Every thread that creates shards may read from all the others at once. */
static size_t pipe_bytes_of(const struct sort_host *h, unsigned create_threads)
{
    size_t streams = (size_t)create_threads * h->part.plan->count;
    size_t share = PEER_MEMORY / (streams > 0 ? streams : 1);
    if (share > PEER_PIPE_BYTES)
        return PEER_PIPE_BYTES;
    return share > PEER_PIPE_MIN ? share : PEER_PIPE_MIN;
}

static void host_meet_peers(struct sort_host *h)
{
    h->peers =
        sort_peers_new(h->part.target->data_client, cold_client(h->part.target->cold), h->part.plan,
                       h->part.job, h->part.self, pipe_bytes_of(h, create_threads_of(h)));
    if (h->makes_one)
        h->puts = archive_puts_new(&h->part);
}

static int host_make_task(struct sort_host *h, struct error *err)
{
    unsigned formats;
    int code = unarchiver_formats_parse(h->part.target->params.archive_formats, &formats, err);
    if (code != 0)
        return code;
    const struct sort_task_config config = {
        .job_id = h->part.job->id,
        .spec = h->part.spec,
        .env = &h->env,
        .self = h->part.self,
        .participants = (unsigned)h->part.plan->count,
        .absent = h->absent,
        .attempt = h->part.job->attempt,
        .salt = h->part.plan->salt,
        /* The request may lower it. */
        .memory_bytes = param_live(h->part.target->params.sort_memory),
        .key_map_bytes = param_live(h->part.target->params.sort_key_map_memory),
        .window_max = param_live(h->part.target->params.sort_zstd_window),
        .formats = formats,
        .extract_threads =
            threads_of(h, &sort_threads_extracting, h->part.spec->extract_concurrency),
        .create_threads = create_threads_of(h),
    };
    host_meet_peers(h);
    return sort_task_new(&config, &h->task, err);
}

static int host_open(const struct xaction_ops *kind, void *host, const struct job *job, void **self,
                     struct error *err)
{
    (void)kind;
    _cleanup_(host_freep)
    struct sort_host *h = xcalloc(1, sizeof *h);
    h->part.target = host;
    h->part.job = job_ref(job);
    h->part.output_props = BUCKET_PROPS_DEFAULT;
    h->env = (struct sort_env){.ctx = h,
                               .pin_shards = env_pin_shards,
                               .open_shard = env_open_shard,
                               .read_key_map = env_read_key_map,
                               .open_work_file = env_open_work_file,
                               .claim_work = env_claim_work,
                               .target_name = env_target_name,
                               .send_begin = env_send_begin,
                               .send_end = env_send_end,
                               .fetch_records = env_fetch_records,
                               .owner = env_owner,
                               .output_check = env_output_check,
                               .output_begin = env_output_begin,
                               .output_write = env_output_write,
                               .output_finish = env_output_finish,
                               .output_discard = env_output_discard,
                               .output_remember = env_output_remember,
                               .outputs_remembered = env_outputs_remembered,
                               .output_stands = env_output_stands,
                               .outputs_prune = env_outputs_prune};
    int code = host_parse(h, err);
    h->pins.part = h->outputs.part = &h->part;
    if (code != 0)
        return error_wrap(err, "job '%s'", job->id);
    sort_pins_init(&h->pins);
    *self = steal(h);
    return 0;
}

static int host_prepare(void *self, struct error *err)
{
    struct sort_host *h = self;
    int code = job_files_begin(h->part.target->mountpaths, h->part.job, err);
    if (code != 0)
        return code;
    if (h->task == NULL)
        return host_make_task(h, err);
    host_meet_peers(h);
    return sort_task_again(h->task, h->part.job->attempt, h->absent, err);
}

static void host_again(void *self, const struct job *job)
{
    struct sort_host *h = self;
    sort_peers_free(steal(h->peers));
    archive_puts_free(steal(h->puts));
    job_unref(h->part.job);
    h->part.job = job_ref(job);
    host_leave_out(h);
    atomic_store(&h->part.stopped, false);
}

/* Who has restarted since the job was planned may have another address. */
static void host_find_peers(struct sort_host *h)
{
    _cleanup_state_ const struct cluster_state *s = state_current(h->part.target->state);
    for (unsigned i = 0; i < h->part.plan->count; i++) {
        const struct node *n = smap_node(&s->smap, h->part.plan->ids[i]);
        if (n != NULL)
            sort_peers_find(h->peers, i, n->data_url);
    }
}

/* A name of the output template that exists already ends the job before it has begun. */
static int refuse_existing_outputs(void *ctx, const struct list_page *page, struct error *err)
{
    const struct sort_host *h = ctx;
    for (size_t i = 0; i < page->entry_count; i++) {
        const char *name = page->entries[i].name;
        if (output_is_named(h->part.spec, name))
            return error_set(err, E_OBJECT_EXISTS,
                             "'%s/%s' exists already and matches the output template '%s'; choose "
                             "another template or bucket, or delete it first",
                             h->part.spec->output_bucket, name,
                             template_text(h->part.spec->output_template));
    }
    return 0;
}

static int host_run(void *self, struct error *err)
{
    struct sort_host *h = self;
    int code = 0;
    h->begun_ms = clock_ms();
    h->ended_ms = 0;
    host_find_peers(h);
    sort_outputs_again(&h->outputs);
    const struct name_template *names = h->part.spec->output_template;
    if (names != NULL && !h->makes_one) /* those of a key map are looked at when they are known */
        code = sort_pins_each_page(&h->pins, h->part.plan->output_bucket_id, template_prefix(names),
                                   false, refuse_existing_outputs, h, err);
    if (code == 0)
        code = sort_task_run(h->task, err);
    h->ended_ms = clock_ms();
    return code != 0 || h->makes_one ? code : sort_outputs_settle(&h->outputs, err);
}

static void host_stop_calls(struct sort_host *h)
{
    sort_peers_stop(h->peers);
    if (h->puts != NULL)
        archive_puts_stop(h->puts);
}

static void host_stop(void *self)
{
    struct sort_host *h = self;
    atomic_store(&h->part.stopped, true);
    sort_task_stop(h->task);
    host_stop_calls(h);
}

static void host_give_way(void *self)
{
    struct sort_host *h = self;
    if (!sort_task_give_way(h->task))
        return;
    atomic_store(&h->part.stopped, true);
    host_stop_calls(h);
}

/* --- the end ---------------------------------------------------------------------------------- */

static int host_commit(void *self, struct error *err)
{
    struct sort_host *h = self;
    sort_pins_end(&h->pins);
    return sort_outputs_commit(&h->outputs, err);
}

static int host_undo(void *self, struct error *err)
{
    struct sort_host *h = self;
    sort_pins_end(&h->pins);
    return sort_outputs_undo(&h->outputs, err);
}

static json_t *host_status(void *self)
{
    const struct sort_host *h = self;
    json_t *sort = h->task != NULL ? sort_task_status(h->task) : NULL;
    if (!h->archives)
        return sort;
    uint64_t until_ms = h->ended_ms != 0 ? h->ended_ms : clock_ms();
    uint64_t ms = h->begun_ms != 0 ? until_ms - h->begun_ms : 0;
    json_t *view = archive_view(sort, (double)ms / MS_PER_S);
    json_decref(sort);
    return view;
}

static uint64_t host_attempt(const void *self)
{
    return sort_host_attempt(self);
}

/* clang-format off */
#define SORT_STEPS                                                                             \
    .open = host_open, .again = host_again, .prepare = host_prepare, .run = host_run,          \
    .stop = host_stop, .give_way = host_give_way, .commit = host_commit, .undo = host_undo,    \
    .status = host_status, .attempt = host_attempt, .free = host_free
/* clang-format on */

const struct xaction_ops sort_xaction = {.kind = "sort", SORT_STEPS};
const struct xaction_ops archive_xaction = {.kind = "archive", .like = "sort", SORT_STEPS};
