#include "sort/task/task.h"

#include <assert.h>
#include <pthread.h>
#include <xxhash.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/descriptors.h"
#include "io/thread.h"
#include "sort/shard/catalog.h"
#include "sort/task/context.h"
#include "sort/task/create.h"
#include "sort/task/exchange.h"
#include "sort/task/extract.h"
#include "sort/shard/format.h"
#include "sort/rows/orders.h"
#include "sort/task/records.h"
#include "sort/task/resume.h"
#include "sort/rows/rowset.h"

/* A shard that is opened anew for a small record of it costs several times what reading it does. */
#define OPEN_SHARDS_MAX 4096
#define OPEN_SHARDS_MIN 64
#define OPEN_SHARDS_SHARE 8 /* of all descriptors: sorts run beside each other, and connections */

struct sort_task {
    struct sort_context c;
    struct resume *resume;
    uint64_t notes_extracted; /* how many notes there were when all was extracted */
    atomic_bool gives_way;
    struct catalog *catalog;
    struct contents *contents; /* NULL where the shards are tars */
    atomic_bool catalog_ready;
    bool extracted;   /* catalog and rows are whole, … */
    unsigned without; /* … with what became ours when the job went on without so many targets */
    struct rowset *rows;
    struct book *book;
    pthread_t orders_thread;
    bool orders_expected; /* from the last target, by the thread above */
    struct sort_figures figures;
    atomic_bool planned; /* figures are final */
    atomic_bool ran;
};

/* --- making ----------------------------------------------------------------------------------- */

static uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

/* The request may ask for less than the target allows, never for more. */
static uint64_t choose_memory(const struct sort_task_config *config)
{
    uint64_t memory = config->memory_bytes;
    const struct sort_spec *s = config->spec;
    uint64_t asked = s->max_mem_bytes;
    if (s->max_mem_percent > 0)
        asked = machine_memory() / 100 * s->max_mem_percent;
    if (asked > 0 && asked < memory)
        memory = asked;
    return memory < SORT_MEMORY_MIN ? SORT_MEMORY_MIN : memory;
}

/* While shards are read nothing is cut or built, so that scanning may have those three parts. */
static struct sort_memory share_memory(uint64_t memory, unsigned extract_threads, bool decodes)
{
    return (struct sort_memory){
        .rows = decodes ? memory / 4 : memory / 2,
        .contents = decodes ? memory / 4 : 0,
        .index = memory / 8,
        .book = memory / 8,
        .cutting = memory / 8,
        .repeats = memory / 8,
        .scanning = memory / 8 * 3 / extract_threads,
        .one_record = memory / 4, /* they are copied on their way */
    };
}

static unsigned choose_threads(unsigned asked, unsigned allowed)
{
    unsigned n = asked > 0 && asked < allowed ? asked : allowed;
    n = n < SORT_THREADS_MAX ? n : SORT_THREADS_MAX;
    return n > 0 ? n : 1;
}

static unsigned choose_open_shards(const struct sort_task_config *config)
{
    uint64_t n = descriptors_limit() / OPEN_SHARDS_SHARE;
    if (config->open_shards > 0)
        return config->open_shards;
    if (n < OPEN_SHARDS_MIN)
        return OPEN_SHARDS_MIN;
    return n < OPEN_SHARDS_MAX ? (unsigned)n : OPEN_SHARDS_MAX;
}

/* A slot for the table of each round, and one for the orders. */
static struct links *task_links(const struct arrangement *a)
{
    return links_new(a->rounds + 1);
}

static void context_init(struct sort_context *c, const struct sort_task_config *config)
{
    *c = (struct sort_context){
        .env = config->env,
        .spec = config->spec,
        .job_id = xstrdup(config->job_id),
        .job = XXH3_64bits(config->job_id, strlen(config->job_id)),
        .self = config->self,
        .participants = config->participants,
        .attempt = config->attempt,
        .salt = config->salt,
        .arrangement = arrangement_new(config->participants, config->absent, config->salt),
        .order = {.algorithm = config->spec->algorithm,
                  .decreasing = config->spec->decreasing,
                  .text_keys = config->spec->algorithm == SORT_CONTENT &&
                               config->spec->content_type == SORT_CONTENT_STRING,
                  .grouped = config->spec->ekm_file != NULL},
        .window_max = config->window_max,
        .formats = config->formats,
        .watch = config->watch,
        .open_shards = choose_open_shards(config),
        .extract_threads =
            choose_threads(config->spec->extract_concurrency, config->extract_threads),
        .create_threads = choose_threads(config->spec->create_concurrency, config->create_threads),
    };
    bool decodes = config->spec->input_shards->decode != NULL;
    c->memory = share_memory(choose_memory(config), c->extract_threads, decodes);
    c->memory.key_map = config->key_map_bytes;
    c->damage = xcalloc(1, sizeof *c->damage);
    pthread_mutex_init(&c->damage->lock, NULL);
    notes_init(&c->notes);
    c->links = task_links(c->arrangement);
}

static void context_done(struct sort_context *c)
{
    keymap_free(c->map);
    links_free(c->links);
    notes_done(&c->notes);
    pthread_mutex_destroy(&c->damage->lock);
    free(c->damage);
    arrangement_free(c->arrangement);
    free(c->job_id);
}

/* What phase 1 fills. */
static int extracted_new(struct sort_task *t, struct error *err)
{
    const struct sort_context *c = &t->c;
    t->catalog = catalog_new(c->env, c->memory.index, c->open_shards);
    catalog_set_spec(t->catalog, c->spec);
    if (c->spec->input_shards->decode != NULL)
        t->contents = contents_new(c->env, c->extract_threads, c->memory.contents);
    return rowset_new(c->env, &c->order, c->memory.rows, c->extract_threads, &t->rows, err);
}

static void extracted_free(struct sort_task *t)
{
    rowset_free(steal(t->rows));
    catalog_free(steal(t->catalog));
    contents_free(steal(t->contents));
}

int sort_task_new(const struct sort_task_config *config, struct sort_task **out, struct error *err)
{
    if (config->participants == 0 || config->participants > ARRANGEMENT_MAX ||
        config->self >= config->participants ||
        (config->absent != NULL && config->absent[config->self]))
        return error_set(err, E_INVALID, "target %u of %u cannot take part in a sort", config->self,
                         config->participants);
    _cleanup_(sort_task_freep)
    struct sort_task *t = xcalloc(1, sizeof *t);
    context_init(&t->c, config);
    t->resume = resume_new();
    t->book = book_new(config->env, t->c.memory.book);
    int rc = extracted_new(t, err);
    if (rc == 0)
        *out = steal(t);
    return rc;
}

void sort_task_free(struct sort_task *t)
{
    if (t == NULL)
        return;
    book_free(t->book);
    extracted_free(t);
    resume_free(t->resume);
    context_done(&t->c);
    free(t);
}

/* --- further attempts ------------------------------------------------------------------------- */

static void counters_reset(atomic_ullong *const *counters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        atomic_store(counters[i], 0);
}

static void progress_again(struct sort_progress *p)
{
    atomic_ullong *const counters[] = {&p->rows_in,     &p->rows_out,      &p->built,
                                       &p->to_build,    &p->records_built, &p->bytes_done,
                                       &p->bytes_total, &p->bytes_local,   &p->bytes_remote,
                                       &p->merge_ms,    &p->create_ms};
    counters_reset(counters, sizeof counters / sizeof *counters);
    atomic_store(&p->phase, SORT_QUEUED);
}

/* Half a table is none: what was stopped in the middle of extracting begins anew. */
static int extract_anew(struct sort_task *t, struct error *err)
{
    struct sort_progress *p = &t->c.progress;
    atomic_ullong *const counters[] = {&p->shards_done, &p->shards_total, &p->shards_missing,
                                       &p->records,     &p->record_bytes, &p->spilled_bytes,
                                       &p->extract_ms};
    counters_reset(counters, sizeof counters / sizeof *counters);
    keymap_free(steal(t->c.map));
    extracted_free(t);
    return extracted_new(t, err);
}

int sort_task_again(struct sort_task *t, uint64_t attempt, const bool *absent, struct error *err)
{
    progress_again(&t->c.progress);
    notes_cut(&t->c.notes, t->extracted ? t->notes_extracted : 0);
    links_free(t->c.links);
    arrangement_free(t->c.arrangement);
    t->c.arrangement = arrangement_new(t->c.participants, absent, t->c.salt);
    t->c.links = task_links(t->c.arrangement);
    book_free(t->book);
    t->book = book_new(t->c.env, t->c.memory.book);
    t->figures = (struct sort_figures){0};
    t->c.attempt = attempt;
    atomic_store(&t->planned, false);
    atomic_store(&t->gives_way, false);
    atomic_store(&t->ran, false);
    atomic_store(&t->catalog_ready, t->extracted && t->without == sort_without(&t->c));
    return t->extracted ? 0 : extract_anew(t, err);
}

/* --- streams of peers ------------------------------------------------------------------------- */

static int task_slot(const struct sort_task *t, unsigned from, enum sort_channel channel)
{
    const struct arrangement *a = t->c.arrangement;
    if (channel == SORT_CHANNEL_ORDERS)
        return from == arrangement_last(a) && from != t->c.self ? (int)a->rounds : -1;
    for (unsigned round = 0; round < a->rounds; round++) {
        struct arrangement_step step = arrangement_step(a, t->c.self, round);
        if (step.move == ARRANGEMENT_RECEIVE && step.peer == from)
            return (int)round;
    }
    return -1;
}

int sort_task_receive(struct sort_task *t, unsigned from, enum sort_channel channel,
                      struct bpipe *pipe, struct error *err)
{
    int slot = task_slot(t, from, channel);
    if (slot < 0)
        return error_set(err, E_JOB_STATE, "job '%s': sender %u has nothing to send here",
                         t->c.job_id, from);
    int rc = links_offer(t->c.links, (unsigned)slot, pipe, err);
    return rc != 0 ? error_wrap(err, "job '%s': stream from target '%s'", t->c.job_id,
                                sort_target_name(&t->c, from))
                   : 0;
}

int sort_task_records(struct sort_task *t, const void *request, size_t len,
                      struct sort_records **out, struct error *err)
{
    if (!atomic_load(&t->catalog_ready))
        return error_set(err, E_JOB_STATE, "job '%s': this target has not read its shards yet",
                         t->c.job_id);
    return records_open(&t->c, t->catalog, request, len, out, err);
}

/* --- running ---------------------------------------------------------------------------------- */

static void enter(struct sort_task *t, enum sort_phase phase)
{
    atomic_store(&t->c.progress.phase, (int)phase);
}

static void note_malformed(void *ctx, const char *text)
{
    struct sort_context *c = ctx;
    notes_add(&c->notes, "%s", text);
}

static int feed_map(void *arg, const void *data, size_t len, struct error *err)
{
    struct sort_context *c = arg;
    int rc = links_check(c->links, err);
    return rc != 0 ? rc : keymap_feed(c->map, data, len, err);
}

static int read_map(struct sort_context *c, struct error *err)
{
    if (c->spec->ekm_file == NULL)
        return 0;
    const struct keymap_config config = {
        .spec = c->spec, .memory_bytes = c->memory.key_map, .warn = note_malformed, .ctx = c};
    c->map = keymap_new(&config);
    int rc = c->env->read_key_map(c->env->ctx, c->spec, feed_map, c, err);
    return rc != 0 ? rc : keymap_finish(c->map, err);
}

static int check_name(struct sort_task *t, const char *name, struct error *err)
{
    const struct sort_env *env = t->c.env;
    return env->owner(env->ctx, name) == t->c.self ? env->output_check(env->ctx, name, err) : 0;
}

/* The first names are used if any are: where they are taken, that can be said before any work. */
static int check_first_names(struct sort_task *t, struct error *err)
{
    const struct sort_spec *spec = t->c.spec;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int rc = spec->wids_index != NULL ? check_name(t, spec->wids_index, err) : 0;
    if (rc != 0 || t->c.map != NULL)
        return rc; /* which of its formats are used is not known yet */
    template_name(spec->output_template, 0, &name);
    return check_name(t, buf_str(&name), err);
}

static int note_given_way(const struct sort_task *t, struct error *err)
{
    return error_set(err, E_ABORTED, "job '%s' begins again", t->c.job_id);
}

static int begin_extract(struct sort_task *t, struct error *err)
{
    int rc = read_map(&t->c, err);
    return rc != 0 ? rc : check_first_names(t, err);
}

static int run_extract(struct sort_task *t, struct error *err)
{
    if (atomic_load(&t->catalog_ready))
        return 0; /* an earlier attempt has done it */
    enter(t, SORT_EXTRACTING);
    uint64_t begun = clock_ms();
    bool besides = t->extracted;
    t->extracted = false;
    int rc = besides ? 0 : begin_extract(t, err);
    if (rc == 0)
        rc =
            extract_run(&t->c, besides ? t->without + 1 : 0, t->catalog, t->contents, t->rows, err);
    if (rc == 0) {
        t->extracted = true;
        t->without = sort_without(&t->c);
        t->notes_extracted = notes_count(&t->c.notes);
        atomic_store(&t->catalog_ready, true);
    }
    progress_add(&t->c.progress.extract_ms, clock_ms() - begun);
    return rc == 0 && atomic_load(&t->gives_way) ? note_given_way(t, err) : rc;
}

/* In a thread of its own, since the last target must never wait for one that still merges. */
static void *receive_orders(void *arg)
{
    struct sort_task *t = arg;
    struct error err = ERROR_INIT;
    struct link *link = NULL;
    int rc = links_take(t->c.links, t->c.arrangement->rounds, &link, &err);
    if (rc == 0)
        rc = orders_receive(source_link(link), t->c.job, t->c.participants, t->book, &err);
    if (rc != 0) {
        error_wrap(&err, "orders from target '%s'",
                   sort_target_name(&t->c, sort_last_target(&t->c)));
        links_stop(t->c.links, &err);
    }
    link_free(link);
    return NULL;
}

static int run_merge(struct sort_task *t, struct error *err)
{
    enter(t, SORT_MERGING);
    uint64_t begun = clock_ms();
    int rc = exchange_tables(&t->c, t->catalog, t->rows, t->book, &t->figures, err);
    if (rc == 0 && t->c.self == sort_last_target(&t->c))
        atomic_store(&t->planned, true);
    rowset_close(t->rows);
    atomic_store(&t->c.progress.merge_ms, clock_ms() - begun);
    return rc;
}

static int start_receiving(struct sort_task *t, struct error *err)
{
    if (t->c.self == sort_last_target(&t->c))
        return 0;
    int rc = thread_start("sort-orders", receive_orders, t, &t->orders_thread, err);
    t->orders_expected = rc == 0;
    return rc;
}

/* The orders are complete when the thread that takes them has ended without an error. */
static int finish_receiving(struct sort_task *t, struct error *err)
{
    if (t->orders_expected)
        pthread_join(t->orders_thread, NULL);
    t->orders_expected = false;
    return links_check(t->c.links, err);
}

static int run_create(struct sort_task *t, struct error *err)
{
    struct sort_progress *p = &t->c.progress;
    enter(t, SORT_CREATING);
    uint64_t begun = clock_ms();
    atomic_store(&p->to_build, book_count(t->book));
    atomic_store(&p->bytes_total,
                 book_bytes(t->book) +
                     book_shards(t->book) * format_tar_end(t->c.spec->output_shards));
    int rc = resume_begin(t->resume, &t->c, t->book, err);
    if (rc == 0)
        rc = create_check(&t->c, t->book, err);
    if (rc == 0 && !t->c.spec->dry_run)
        rc = create_run(&t->c, t->catalog, t->book, t->resume, err);
    atomic_store(&p->create_ms, clock_ms() - begun);
    return rc;
}

static int run_phases(struct sort_task *t, struct error *err)
{
    int rc = sort_damage_check(&t->c, err);
    if (rc == 0)
        rc = run_extract(t, err);
    if (rc == 0)
        rc = start_receiving(t, err);
    if (rc == 0)
        rc = run_merge(t, err);
    if (rc == 0)
        rc = finish_receiving(t, err);
    return rc != 0 ? rc : run_create(t, err);
}

int sort_task_run(struct sort_task *t, struct error *err)
{
    bool again = atomic_exchange(&t->ran, true);
    assert(!again);
    struct error own = ERROR_INIT;
    int rc = run_phases(t, &own);
    if (rc == 0) {
        enter(t, SORT_DONE);
        return 0;
    }
    links_stop(t->c.links, &own);
    finish_receiving(t, NULL);
    /* What stopped everything first is the cause; what failed here may only be its echo. */
    struct error cause = ERROR_INIT;
    links_check(t->c.links, &cause);
    return error_set(err, cause.code, "%s", cause.message);
}

void sort_task_stop(struct sort_task *t)
{
    struct error why = ERROR_INIT;
    error_set(&why, E_ABORTED, "job '%s' was stopped", t->c.job_id);
    links_stop(t->c.links, &why);
}

/* Either this sees that all is extracted, or run_extract() sees this. */
bool sort_task_give_way(struct sort_task *t)
{
    atomic_store(&t->gives_way, true);
    bool stops = atomic_load(&t->catalog_ready);
    if (stops)
        sort_task_stop(t);
    return stops;
}

/* --- telling ---------------------------------------------------------------------------------- */

enum sort_phase sort_task_phase(const struct sort_task *t)
{
    return (enum sort_phase)atomic_load(&t->c.progress.phase);
}

const char *sort_phase_name(enum sort_phase p)
{
    static const char *const names[] = {
        [SORT_QUEUED] = "queued",   [SORT_EXTRACTING] = "extracting",
        [SORT_MERGING] = "merging", [SORT_CREATING] = "creating",
        [SORT_DONE] = "done",
    };
    return names[p];
}

static json_int_t figure(const atomic_ullong *counter)
{
    return (json_int_t)progress_get(counter);
}

static double seconds(const atomic_ullong *ms)
{
    return (double)progress_get(ms) / 1000;
}

static json_t *plan_json(const struct sort_figures *f)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "shards", (json_int_t)f->shards, "records",
                     (json_int_t)f->records, "bytes", (json_int_t)f->bytes, "moved_bytes",
                     (json_int_t)f->moved, "moved_bytes_hrw", (json_int_t)f->moved_hrw,
                     "moved_bytes_locality", (json_int_t)f->moved_locality);
}

json_t *sort_task_status(const struct sort_task *t)
{
    const struct sort_progress *p = &t->c.progress;
    json_t *status = json_pack(
        "{s:s, s:{s:{s:I, s:I, s:I}, s:I, s:I, s:I}, s:{s:I, s:I}, s:{s:{s:I, s:I}, s:I, s:{s:I, "
        "s:I, "
        "s:I, "
        "s:I}}, s:o, s:{s:f, s:f, s:f}}",
        "phase", sort_phase_name(sort_task_phase(t)), "extract", "shards", "done",
        figure(&p->shards_done), "total", figure(&p->shards_total), "missing",
        figure(&p->shards_missing), "records", figure(&p->records), "bytes",
        figure(&p->record_bytes), "spilled_bytes", figure(&p->spilled_bytes), "merge", "rows_in",
        figure(&p->rows_in), "rows_out", figure(&p->rows_out), "create", "shards", "done",
        figure(&p->built), "total", figure(&p->to_build), "records", figure(&p->records_built),
        "bytes", "done", figure(&p->bytes_done), "total", figure(&p->bytes_total), "local",
        figure(&p->bytes_local), "remote", figure(&p->bytes_remote), "warnings",
        notes_json((struct notes *)&t->c.notes), "seconds", "extract", seconds(&p->extract_ms),
        "merge", seconds(&p->merge_ms), "create", seconds(&p->create_ms));
    json_object_set_new(status, "redone",
                        json_pack("{s:I, s:I, s:I}", "inputs", figure(&p->redone_inputs), "shards",
                                  figure(&p->redone_shards), "bytes", figure(&p->redone_bytes)));
    if (atomic_load(&t->planned))
        json_object_set_new(status, "plan", plan_json(&t->figures));
    return status;
}
