#include "sort/local/local.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "io/descriptors.h"
#include "io/thread.h"
#include "sort/local/dirs.h"
#include "sort/shard/format.h"
#include "sort/shard/output_names.h"
#include "sort/task/task.h"

struct sort_local {
    struct dirs *dirs;
    struct sort_env env;
    struct sort_task *task;
    const struct sort_spec *spec;
    bool dry_run;
    pthread_t thread;
    struct error err;     /* the thread's, until it has ended */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool ended;
};

static bool owns_all(void *owner, const char *name)
{
    (void)owner;
    (void)name;
    return true;
}

static int local_pin(void *ctx, const struct sort_spec *spec,
                     int (*each)(void *arg, const struct sort_shard_info *info, struct error *err),
                     void *arg, struct sort_pinned *pinned, struct error *err)
{
    pinned->stamp = 1;
    return dirs_list(ctx, spec, owns_all, NULL, each, arg, err);
}

static const char *local_name(void *ctx, unsigned number)
{
    (void)ctx;
    (void)number;
    return "local";
}

static unsigned local_owner(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return 0;
}

/* Nobody is sent to or asked: there is no peer. */
static const struct sort_env local_env = {
    .pin_shards = local_pin,
    .open_shard = dirs_open_shard,
    .read_key_map = dirs_read_key_map,
    .open_work_file = dirs_open_work_file,
    .target_name = local_name,
    .owner = local_owner,
    .output_check = dirs_output_check,
    .output_begin = dirs_output_begin,
    .output_write = dirs_output_write,
    .output_finish = dirs_output_finish,
    .output_discard = dirs_output_discard,
    .outputs_prune = dirs_outputs_prune,
};

/* Who creates waits for the disk, which is written past the page cache; others go on meanwhile. */
enum { EXTRACT_OF_CPU = 1, CREATE_OF_CPU = 2 };

static unsigned threads_of(const struct sort_local_config *config, unsigned asked, unsigned of_cpu)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (asked > 0)
        return asked;
    return config->threads > 0 ? config->threads : (unsigned)(cpus > 0 ? cpus : 1) * of_cpu;
}

/* The task takes no more than it is allowed: here the request is the only one that says so. */
static int make_task(struct sort_local *s, const struct sort_local_config *config,
                     struct error *err)
{
    const struct sort_spec *spec = config->spec;
    bool asked = spec->max_mem_bytes > 0 || spec->max_mem_percent > 0;
    const struct sort_task_config task = {
        .job_id = "local",
        .spec = spec,
        .env = &s->env,
        .participants = 1,
        .memory_bytes = asked ? UINT64_MAX : config->memory_bytes,
        .key_map_bytes = config->key_map_bytes,
        .window_max = FORMAT_WINDOW_ALONE,
        .formats = FORMAT_FORMATS_ALONE,
        .extract_threads = threads_of(config, spec->extract_concurrency, EXTRACT_OF_CPU),
        .create_threads = threads_of(config, spec->create_concurrency, CREATE_OF_CPU),
    };
    return sort_task_new(&task, &s->task, err);
}

static int refuse_existing(void *arg, const char *name, struct error *err)
{
    const struct sort_local_config *config = arg;
    const struct name_template *t = config->spec->output_template;
    if (!output_is_named(config->spec, name))
        return 0;
    return error_set(err, E_OBJECT_EXISTS,
                     "'%s/%s' exists already and matches the output template '%s'; choose another "
                     "template or directory, or remove it first",
                     config->out, name, template_text(t));
}

int sort_local_new(const struct sort_local_config *config, struct sort_local **out,
                   struct error *err)
{
    _cleanup_(sort_local_freep)
    struct sort_local *s = xcalloc(1, sizeof *s);
    descriptors_raise(); /* how many shards stay open goes by it */
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    int rc = dirs_open(config->in, config->out, config->key_map, &s->dirs, err);
    if (rc == 0 && config->spec->output_template != NULL)
        rc = dirs_walk(config->out, refuse_existing, (void *)config, err);
    if (rc != 0)
        return rc;
    s->env = local_env;
    s->env.ctx = s->dirs;
    s->spec = config->spec;
    s->dry_run = config->spec->dry_run;
    rc = make_task(s, config, err);
    if (rc == 0)
        *out = steal(s);
    return rc;
}

static int check_found(struct sort_local *s)
{
    _cleanup_json_ json_t *status = sort_task_status(s->task);
    json_t *extract = json_object_get(status, "extract");
    json_t *shards = json_object_get(json_object_get(extract, "shards"), "total");
    json_t *records = json_object_get(json_object_get(status, "plan"), "records");
    return sort_spec_check_found(s->spec, (uint64_t)json_integer_value(shards),
                                 (uint64_t)json_integer_value(records), &s->err);
}

static void *local_main(void *arg)
{
    struct sort_local *s = arg;
    int rc = sort_task_run(s->task, &s->err);
    if (rc == 0)
        rc = check_found(s);
    if (rc == 0 && !s->dry_run)
        dirs_show(s->dirs, &s->err);
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int sort_local_start(struct sort_local *s, struct error *err)
{
    return thread_start("sort-local", local_main, s, &s->thread, err);
}

bool sort_local_wait(struct sort_local *s, unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->lock);
    for (int rc = 0; !s->ended && rc == 0;)
        rc = pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until);
    bool ended = s->ended;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

int sort_local_end(struct sort_local *s, struct error *err)
{
    pthread_join(s->thread, NULL);
    return s->err.code != 0 ? error_set(err, s->err.code, "%s", s->err.message) : 0;
}

void sort_local_stop(struct sort_local *s)
{
    sort_task_stop(s->task);
}

json_t *sort_local_status(const struct sort_local *s)
{
    return sort_task_status(s->task);
}

void sort_local_free(struct sort_local *s)
{
    if (s == NULL)
        return;
    sort_task_free(s->task);
    dirs_close(s->dirs);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
