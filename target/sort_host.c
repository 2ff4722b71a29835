#include "target/sort_host.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "cluster/location.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/format.h"
#include "sort/plan.h"
#include "target/job_files.h"
#include "target/list.h"
#include "target/sort_peers.h"
#include "target/target.h"

enum {
    PEER_PIPE_BYTES = 1 << 20, /* of one stream, … */
    PEER_PIPE_MIN = 64 << 10,
    PEER_MEMORY = 64 << 20, /* … or less, so that all at once stay within this */
    LIST_PAGE = 1000,
    LINK_NAME = 36, /* "in-" and 32 hex digits */
};

struct sort_host {
    struct target *target;
    struct job *job;
    struct sort_spec *spec;
    struct sort_plan *plan;
    struct bucket_props output_props;
    unsigned self;
    struct sort_peers *peers;
    struct sort_env env;
    struct sort_task *task; /* NULL before prepare */
    atomic_bool stopped;
    atomic_uint next_work_file; /* goes round the mountpaths */
};

struct sort_task *sort_host_task(struct sort_host *h)
{
    return h->task;
}

/* --- input: pinned objects ----------------------------------------------------------------------
 */

/* The hash that the store names the object's file by (target/object_path.h): of two names that have
 * the same one it refuses the second, so that no pin can take another's place. */
static void link_name_of(const struct sort_host *h, const char *shard, char out[static LINK_NAME])
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(shard, strlen(shard), h->plan->input_bucket_id);
    snprintf(out, LINK_NAME, "in-%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

typedef int each_shard_fn(void *arg, const struct sort_shard_info *info, struct error *err);

/* *found false: there is no such object. */
static int pin_shard(struct sort_host *h, struct sort_shard_info *info, bool *found,
                     struct error *err)
{
    char link_name[LINK_NAME];
    _cleanup_free_ char *path = NULL;
    struct object o;
    link_name_of(h, info->name, link_name);
    int code = object_pin(h->target->store, h->plan->input_bucket_id, info->name, h->job->id,
                          link_name, &path, &o, err);
    if (code == E_OBJECT_NOT_FOUND)
        code = object_explain_miss(h->target->store, h->plan->input_bucket_id, info->name, err);
    *found = code != E_OBJECT_NOT_FOUND;
    if (code == E_OBJECT_NOT_FOUND)
        return 0;
    if (code != 0)
        return error_wrap(err, "pin shard '%s'", info->name);
    close(o.fd);
    info->size = o.attr.size;
    return 0;
}

static int pin_named(struct sort_host *h, const char *name, uint64_t place, each_shard_fn *each,
                     void *arg, struct error *err)
{
    if (sort_plan_owner(h->plan, h->plan->input_bucket_id, name) != h->self)
        return 0;
    struct sort_shard_info info = {.name = name, .place = place};
    bool found;
    int code = pin_shard(h, &info, &found, err);
    if (code != 0)
        return code;
    info.missing = !found;
    return each(arg, &info, err);
}

static int pin_template(struct sort_host *h, each_shard_fn *each, void *arg, struct error *err)
{
    const struct name_template *t = h->spec->input_template;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int code = 0;
    for (uint64_t i = 0; code == 0 && i < template_count(t); i++) {
        buf_clear(&name);
        template_name(t, i, &name);
        code = pin_named(h, buf_str(&name), i, each, arg, err);
    }
    return code;
}

static int pin_list(struct sort_host *h, each_shard_fn *each, void *arg, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < h->spec->input_name_count; i++)
        code = pin_named(h, h->spec->input_names[i], i, each, arg, err);
    return code;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static int pin_page(struct sort_host *h, const struct list_page *page, each_shard_fn *each,
                    void *arg, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < page->entry_count; i++) {
        struct sort_shard_info info = {.name = page->entries[i].name};
        bool found;
        if (!ends_with(info.name, h->spec->input_extension))
            continue;
        code = pin_shard(h, &info, &found, err);
        /* One that was deleted since the page was made is no part of the dataset. */
        if (code == 0 && found)
            code = each(arg, &info, err);
    }
    return code;
}

/* Calls fn for page after page of this target's names in a bucket. */
static int each_page(struct sort_host *h, uint64_t bucket_id, const char *prefix,
                     int (*fn)(void *ctx, const struct list_page *page, struct error *err),
                     void *ctx, struct error *err)
{
    _cleanup_free_ char *after = xstrdup("");
    bool more = true;
    int code = 0;
    while (code == 0 && more) {
        if (atomic_load(&h->stopped))
            return error_set(err, E_ABORTED, "job '%s' was stopped", h->job->id);
        struct list_page page = {0};
        const struct list_request request = {.bucket_id = bucket_id,
                                             .prefix = prefix,
                                             .delimiter = "",
                                             .start_after = after,
                                             .limit = LIST_PAGE};
        code = list_page(h->target->store, &request, &page, err);
        if (code != 0)
            break;
        code = fn(ctx, &page, err);
        more = page.next[0] != '\0';
        free(after);
        after = xstrdup(page.next);
        list_page_done(&page);
    }
    return code;
}

struct pin_prefix {
    struct sort_host *host;
    each_shard_fn *each;
    void *arg;
};

static int pin_prefix_page(void *ctx, const struct list_page *page, struct error *err)
{
    const struct pin_prefix *p = ctx;
    return pin_page(p->host, page, p->each, p->arg, err);
}

static int env_pin_shards(void *ctx, const struct sort_spec *spec, each_shard_fn *each, void *arg,
                          struct error *err)
{
    struct sort_host *h = ctx;
    struct pin_prefix p = {.host = h, .each = each, .arg = arg};
    switch (spec->input_kind) {
    case SORT_INPUT_TEMPLATE:
        return pin_template(h, each, arg, err);
    case SORT_INPUT_LIST:
        return pin_list(h, each, arg, err);
    case SORT_INPUT_PREFIX:
        return each_page(h, h->plan->input_bucket_id, spec->input_prefix, pin_prefix_page, &p, err);
    }
    return error_set(err, E_INTERNAL, "unknown kind of input %d", (int)spec->input_kind);
}

static int env_open_shard(void *ctx, const char *name, int *fd, struct error *err)
{
    struct sort_host *h = ctx;
    char link_name[LINK_NAME];
    link_name_of(h, name, link_name);
    int code = job_files_open(h->target->mountpaths, h->job->id, link_name, fd, err);
    return code != 0 ? error_wrap(err, "open pinned shard '%s'", name) : 0;
}

/* An object of the cluster is read from its owner as it is, be that this target. */
static char *key_map_url(const struct sort_host *h, const struct sort_spec *spec)
{
    if (spec->ekm_bucket == NULL)
        return xstrdup(spec->ekm_file);
    struct buf url = BUF_INIT;
    unsigned owner = sort_plan_owner(h->plan, h->plan->ekm_bucket_id, spec->ekm_object);
    buf_puts(&url, h->plan->data_urls[owner]);
    location_put_object(&url, spec->ekm_bucket, spec->ekm_object);
    return buf_steal(&url);
}

static int env_read_key_map(void *ctx, const struct sort_spec *spec,
                            int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                            void *arg, struct error *err)
{
    struct sort_host *h = ctx;
    _cleanup_free_ char *url = key_map_url(h, spec);
    _cleanup_free_ char *piece = xmalloc(PEER_PIPE_MIN);
    _cleanup_(bpipe_unrefp)
    struct bpipe *pipe = NULL;
    int code = sort_peers_get(h->peers, url, spec->ekm_bucket == NULL, &pipe, err);
    for (ssize_t n = 1; code == 0 && n > 0;) {
        n = bpipe_read(pipe, piece, PEER_PIPE_MIN, err);
        code = n < 0 ? (int)n : feed(arg, piece, (size_t)n, err);
    }
    if (code != 0 && pipe != NULL)
        bpipe_cancel(pipe, err);
    return code != 0 ? error_wrap(err, "external key map '%s'", spec->ekm_file) : 0;
}

static int env_open_work_file(void *ctx, int *fd, struct error *err)
{
    struct sort_host *h = ctx;
    unsigned n = atomic_fetch_add(&h->next_work_file, 1);
    return job_files_open_work(h->target->mountpaths, h->job->id, n, fd, err);
}

/* --- peers --------------------------------------------------------------------------------------
 */

static const char *env_target_name(void *ctx, unsigned number)
{
    const struct sort_host *h = ctx;
    return number < h->plan->count ? h->plan->ids[number] : "?";
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

/* --- output: hidden objects ---------------------------------------------------------------------
 */

static unsigned env_owner(void *ctx, const char *name)
{
    struct sort_host *h = ctx;
    return sort_plan_owner(h->plan, h->plan->output_bucket_id, name);
}

static int env_output_check(void *ctx, const char *name, struct error *err)
{
    struct sort_host *h = ctx;
    struct object o;
    int code = object_head(h->target->store, h->plan->output_bucket_id, name, &o, err);
    if (code == E_OBJECT_NOT_FOUND)
        return 0;
    return code != 0 ? code
                     : error_set(err, E_OBJECT_EXISTS, "output '%s/%s' exists already",
                                 h->spec->output_bucket, name);
}

static int env_output_begin(void *ctx, const char *name, uint64_t size, struct sort_output **out,
                            struct error *err)
{
    struct sort_host *h = ctx;
    if (env_owner(h, name) != h->self)
        return error_set(err, E_WRONG_OWNER,
                         "output '%s' was ordered from target '%s', its owner "
                         "is '%s'",
                         name, h->target->id, h->plan->ids[env_owner(h, name)]);
    const struct object_put_spec spec = {.bucket_id = h->plan->output_bucket_id,
                                         .name = name,
                                         .size =
                                             size != SORT_SIZE_UNKNOWN ? size : OBJECT_SIZE_UNKNOWN,
                                         .durability = h->output_props.durability,
                                         .checksum = h->output_props.checksum,
                                         .content_type = h->spec->output_shards->content_type,
                                         .job_id = h->job->id};
    return object_put_begin(h->target->store, &spec, (struct object_put **)out, err);
}

static int env_output_write(void *ctx, struct sort_output *out, const void *data, size_t len,
                            struct error *err)
{
    (void)ctx;
    return object_put_write((struct object_put *)out, data, len, err);
}

static int env_output_finish(void *ctx, struct sort_output *out, struct error *err)
{
    (void)ctx;
    return object_put_commit_wait((struct object_put *)out, err);
}

static void env_output_discard(void *ctx, struct sort_output *out)
{
    (void)ctx;
    object_put_abort((struct object_put *)out);
}

/* --- the kind -----------------------------------------------------------------------------------
 */

static void host_free(void *self)
{
    struct sort_host *h = self;
    sort_task_free(h->task);
    sort_peers_free(h->peers);
    sort_plan_free(h->plan);
    sort_spec_free(h->spec);
    job_unref(h->job);
    free(h);
}
DEFINE_CLEANUP(struct sort_host, host_free);

static int host_parse(struct sort_host *h, struct error *err)
{
    int code = sort_spec_parse(h->job->spec, &h->spec, err);
    if (code == 0)
        code = sort_plan_parse(h->job->plan, &h->plan, err);
    if (code == 0)
        code = bucket_props_from_json(h->plan->output_props, &h->output_props, err);
    if (code != 0)
        return code;
    int number = sort_plan_number(h->plan, h->target->id);
    if (number < 0)
        return error_set(err, E_INVALID, "target '%s' is no participant", h->target->id);
    h->self = (unsigned)number;
    return 0;
}

static unsigned disks(const struct sort_host *h)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(h->target->mountpaths);
    return set->placed > 0 ? (unsigned)set->placed : 1;
}

static unsigned threads_of(const struct sort_host *h, unsigned per_disk_limit)
{
    if (per_disk_limit > 0)
        return per_disk_limit * disks(h);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return cpus > 2 ? (unsigned)cpus : 2;
}

/* Every thread that creates shards may read from all the others at once. */
static size_t pipe_bytes_of(const struct sort_host *h, unsigned create_threads)
{
    size_t streams = (size_t)create_threads * h->plan->count;
    size_t share = PEER_MEMORY / (streams > 0 ? streams : 1);
    if (share > PEER_PIPE_BYTES)
        return PEER_PIPE_BYTES;
    return share > PEER_PIPE_MIN ? share : PEER_PIPE_MIN;
}

static int host_make_task(struct sort_host *h, struct error *err)
{
    const struct sort_task_config config = {
        .job_id = h->job->id,
        .spec = h->spec,
        .env = &h->env,
        .self = h->self,
        .participants = (unsigned)h->plan->count,
        .salt = h->plan->salt,
        .memory_bytes = param_live(h->target->params.sort_memory), /* the request may lower it */
        .key_map_bytes = param_live(h->target->params.sort_key_map_memory),
        .extract_threads = threads_of(h, h->spec->extract_concurrency),
        .create_threads = threads_of(h, h->spec->create_concurrency),
    };
    h->peers = sort_peers_new(h->target->data_client, h->plan, h->job->id, h->self,
                              pipe_bytes_of(h, config.create_threads));
    return sort_task_new(&config, &h->task, err);
}

static int host_open(void *host, const struct job *job, void **self, struct error *err)
{
    _cleanup_(host_freep)
    struct sort_host *h = xcalloc(1, sizeof *h);
    h->target = host;
    h->job = job_ref(job);
    h->output_props = BUCKET_PROPS_DEFAULT;
    h->env = (struct sort_env){.ctx = h,
                               .pin_shards = env_pin_shards,
                               .open_shard = env_open_shard,
                               .read_key_map = env_read_key_map,
                               .open_work_file = env_open_work_file,
                               .target_name = env_target_name,
                               .send_begin = env_send_begin,
                               .send_end = env_send_end,
                               .fetch_records = env_fetch_records,
                               .owner = env_owner,
                               .output_check = env_output_check,
                               .output_begin = env_output_begin,
                               .output_write = env_output_write,
                               .output_finish = env_output_finish,
                               .output_discard = env_output_discard};
    int code = host_parse(h, err);
    if (code != 0)
        return error_wrap(err, "job '%s'", job->id);
    *self = steal(h);
    return 0;
}

static int host_prepare(void *self, struct error *err)
{
    struct sort_host *h = self;
    int code = job_files_begin(h->target->mountpaths, h->job, err);
    return code != 0 ? code : host_make_task(h, err);
}

/* A name of the output template that exists already ends the job before it has begun. */
static int refuse_existing_outputs(void *ctx, const struct list_page *page, struct error *err)
{
    const struct sort_host *h = ctx;
    for (size_t i = 0; i < page->entry_count; i++) {
        const char *name = page->entries[i].name;
        if (template_index(h->spec->output_template, name) != UINT64_MAX)
            return error_set(err, E_OBJECT_EXISTS,
                             "'%s/%s' exists already and matches the output template '%s'; choose "
                             "another template or bucket, or delete it first",
                             h->spec->output_bucket, name, template_text(h->spec->output_template));
    }
    return 0;
}

/* After this the primary may decide to commit, which no error can turn back: what the bucket's rule
 * leaves to the system's leisure has to be on the disks before. */
static int settle_outputs(struct sort_host *h, struct error *err)
{
    if (h->spec->dry_run || h->output_props.durability == DURABILITY_SYNC)
        return 0;
    return object_store_sync(h->target->store, err);
}

static int host_run(void *self, struct error *err)
{
    struct sort_host *h = self;
    int code = 0;
    if (h->spec->output_template != NULL) /* those of a key map are looked at when they are known */
        code = each_page(h, h->plan->output_bucket_id, template_prefix(h->spec->output_template),
                         refuse_existing_outputs, h, err);
    if (code == 0)
        code = sort_task_run(h->task, err);
    return code != 0 ? code : settle_outputs(h, err);
}

static void host_stop(void *self)
{
    struct sort_host *h = self;
    atomic_store(&h->stopped, true);
    sort_task_stop(h->task);
    sort_peers_stop(h->peers);
}

/* --- the end ------------------------------------------------------------------------------------
 */

/* What is done with each output; one that resists does not keep the others. */
struct ending {
    struct sort_host *host;
    int (*fn)(struct object_store *s, uint64_t bucket_id, const char *name, const char *job_id,
              struct error *err);
    struct error first;
};

static int end_output(void *ctx, const char *name, struct error *err)
{
    struct ending *e = ctx;
    const struct sort_host *h = e->host;
    struct error why = ERROR_INIT;
    (void)err;
    int code = e->fn(h->target->store, h->plan->output_bucket_id, name, h->job->id, &why);
    if (code != 0 && e->first.code == 0)
        e->first = why;
    return 0;
}

static int end_outputs(struct ending *e, struct error *err)
{
    const struct sort_host *h = e->host;
    int code = object_each_marked(h->target->store, h->plan->output_bucket_id, h->job->id,
                                  end_output, e, err);
    if (code == 0 && e->first.code != 0)
        code = error_set(err, e->first.code, "%s", e->first.message);
    return code;
}

/* The job's directory goes last: while it stands, the work is not done. */
static int host_end(struct ending *e, struct error *err)
{
    const struct sort_host *h = e->host;
    int code = end_outputs(e, err);
    if (code == 0)
        code = object_store_sync(h->target->store, err);
    if (code == 0)
        code = object_remove_job_files(h->target->store, h->job->id, err);
    return code;
}

static int host_commit(void *self, struct error *err)
{
    struct ending e = {.host = self, .fn = object_unmark};
    return host_end(&e, err);
}

static int host_undo(void *self, struct error *err)
{
    struct ending e = {.host = self, .fn = object_discard};
    return host_end(&e, err);
}

static json_t *host_status(void *self)
{
    const struct sort_host *h = self;
    return h->task != NULL ? sort_task_status(h->task) : NULL;
}

const struct xaction_ops sort_xaction = {
    .kind = "sort",
    .open = host_open,
    .prepare = host_prepare,
    .run = host_run,
    .stop = host_stop,
    .commit = host_commit,
    .undo = host_undo,
    .status = host_status,
    .free = host_free,
};
