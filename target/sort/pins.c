#include "target/sort/pins.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/arena.h"
#include "common/internal_name.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/path.h"
#include "common/rng.h"
#include "io/pool.h"
#include "sort/base/codec.h"
#include "sort/shard/output_names.h"
#include "target/cold/here.h"
#include "target/cold/names.h"
#include "target/disk/job_files.h"
#include "target/disk/pin_set.h"
#include "target/sort/pin.h"
#include "target/sort/pinned.h"
#include "target/node/target.h"

enum {
    LIST_PAGE = 1000,
    ARENA_BYTES = 16 << 10,
    MS_PER_S = 1000,
};

static const char list_name[] = "pinned";
static const char pin_prefix[] = "in-";

/* --- pinning ---------------------------------------------------------------------------------- */

static void link_name_of(const struct sort_pins *p, uint64_t series, const char *shard,
                         char out[static PIN_LINK_NAME])
{
    struct object_path path;
    object_path_set(&path, p->part->plan->input_bucket_id, shard);
    pin_link_name(series, &path, out);
}

/* What an input is called. */
static const char *word_of(const struct sort_pins *p)
{
    return p->part->spec->plain_objects ? "object" : "shard";
}

static uint64_t stamp_of(const char *name, const struct version *v)
{
    const uint64_t numbers[] = {v->term, v->map, v->counter};
    return XXH3_64bits_withSeed(name, strlen(name), XXH3_64bits(numbers, sizeof numbers));
}

/* *found false: there is no such object. */
static int pin_shard(const struct sort_pins *p, struct pinned_shard *shard, bool *found,
                     struct error *err)
{
    struct sort_shard_info *info = &shard->info;
    char link_name[PIN_LINK_NAME];
    struct object o = {.fd = -1};
    link_name_of(p, atomic_load(&p->series), info->name, link_name);
    int code = sort_pin(p->part, p->set, info->name, link_name, &o, err);
    *found = code != E_OBJECT_NOT_FOUND;
    if (code == E_OBJECT_NOT_FOUND)
        return 0;
    if (code != 0)
        return error_wrap(err, "pin %s '%s'", word_of(p), info->name);
    cleanup_close_(&o.fd);
    info->size = o.attr.size;
    info->modified_s = o.attr.modified_ms / MS_PER_S;
    info->checksum = o.attr.checksum;
    shard->stamp = stamp_of(info->name, &o.attr.version);
    return 0;
}

static int owned_since(const struct sort_pins *p, const char *name)
{
    return sort_plan_owned_since(p->part->plan, p->part->plan->input_bucket_id, name,
                                 p->part->self);
}

/* --- the list that is being made -------------------------------------------------------------- */

struct listing {
    struct encoder encoder;
    sort_shard_fn *each;
    void *arg;
    uint64_t stamp; /* the sum of all */
};

static int list_shard(void *arg, const struct pinned_shard *shard, struct error *err)
{
    struct listing *l = arg;
    int code = pinned_put_shard(&l->encoder, shard, err);
    l->stamp += shard->stamp;
    return code != 0 ? code : l->each(l->arg, &shard->info, err);
}

/* --- which shards ---
 *
 * In batches: of a bucket with a backend several at once are brought here before they are pinned
 * (what was evicted again before that is brought once more), of one with slices as they are pinned.
 */

enum { PIN_TRIES = 5 };

struct batch {
    const struct sort_pins *pins;
    int since; /* what became this target's when so many had left, or more */
    struct listing *listing;
    bool listed; /* one that is not there any more is no part of the dataset */
    struct arena *arena;
    const char *names[COLD_NAMES_BATCH];
    struct pinned_shard shards[COLD_NAMES_BATCH];
    size_t count;
};

static int bring(const struct sort_pins *p, const char *name, enum cold_here *what,
                 struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->part->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->part->plan->input_bucket_id);
    uint64_t bytes;
    *what = COLD_NOWHERE;
    if (b == NULL || b->props.backend == NULL)
        return 0;
    return cold_make_here(p->part->target, b, name, NULL, what, &bytes, err);
}

static int pin_or_bring(const struct sort_pins *p, struct pinned_shard *shard, bool *found,
                        struct error *err)
{
    const struct sort_shard_info *info = &shard->info;
    enum cold_here what = COLD_HERE;
    int code = pin_shard(p, shard, found, err);
    for (int i = 0; code == 0 && !*found && what != COLD_NOWHERE; i++) {
        if (i == PIN_TRIES)
            return error_set(err, E_NO_SPACE, "%s '%s' is evicted before it can be pinned",
                             word_of(p), info->name);
        code = bring(p, info->name, &what, err);
        if (code == 0 && what != COLD_NOWHERE)
            code = pin_shard(p, shard, found, err);
    }
    return code;
}

static int pin_nth(void *ctx, size_t i, struct error *err)
{
    const struct batch *b = ctx;
    struct pinned_shard *shard = (struct pinned_shard *)&b->shards[i];
    bool found = false;
    int code = pin_or_bring(b->pins, shard, &found, err);
    shard->info.missing = !found;
    return code;
}

/* Shards in slices are read as a copy of them would be. */
static unsigned at_once(const struct sort_pins *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->part->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->part->plan->input_bucket_id);
    bool sliced = b != NULL && b->props.ec_data > 0;
    return sliced ? (unsigned)param_live(p->part->target->params.copy_parallel) : 1;
}

static int batch_pin(struct batch *b, struct error *err)
{
    const struct sort_pins *p = b->pins;
    int code = cold_make_all_here(p->part->target, p->part->plan->input_bucket_id, b->names,
                                  b->count, &p->part->stopped, err);
    if (code == 0)
        code = parallel_for("sort-pin", at_once(p), b->count, pin_nth, b, err);
    for (size_t i = 0; code == 0 && i < b->count; i++) {
        if (!b->shards[i].info.missing || !b->listed)
            code = list_shard(b->listing, &b->shards[i], err);
    }
    b->count = 0;
    arena_reset(b->arena);
    return code;
}

static int batch_add(struct batch *b, const char *name, uint64_t place, struct error *err)
{
    const char *kept = arena_strdup(b->arena, name);
    b->names[b->count] = kept;
    b->shards[b->count++] = (struct pinned_shard){
        .info = {.name = kept, .place = place, .without = (unsigned)owned_since(b->pins, name)}};
    return b->count == COLD_NAMES_BATCH ? batch_pin(b, err) : 0;
}

/* An earlier version of an archive is no member of the next one. */
static bool is_own_output(const struct sort_part *p, const char *name)
{
    return p->spec->plain_objects && p->plan->input_bucket_id == p->plan->output_bucket_id &&
           output_is_named(p->spec, name);
}

static bool is_meant(void *ctx, const char *name)
{
    const struct batch *b = ctx;
    return owned_since(b->pins, name) >= b->since && !is_own_output(b->pins->part, name);
}

static bool has_extension(const struct sort_spec *spec, const char *name)
{
    return spec->plain_objects || path_ends_with(name, spec->input_extension);
}

static int add_template(struct batch *b, struct error *err)
{
    const struct name_template *t = b->pins->part->spec->input_template;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int code = 0;
    for (uint64_t i = 0; code == 0 && i < template_count(t); i++) {
        buf_clear(&name);
        template_name(t, i, &name);
        if (is_meant(b, buf_str(&name)))
            code = batch_add(b, buf_str(&name), i, err);
    }
    return code;
}

static int add_list(struct batch *b, struct error *err)
{
    const struct sort_spec *spec = b->pins->part->spec;
    int code = 0;
    for (size_t i = 0; code == 0 && i < spec->input_name_count; i++) {
        if (is_meant(b, spec->input_names[i]))
            code = batch_add(b, spec->input_names[i], i, err);
    }
    return code;
}

static int add_names(void *ctx, const char *const *names, size_t count, struct error *err)
{
    struct batch *b = ctx;
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++) {
        if (is_meant(b, names[i]) && has_extension(b->pins->part->spec, names[i]))
            code = batch_add(b, names[i], 0, err);
    }
    return code;
}

static int add_page(void *ctx, const struct list_page *page, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < page->entry_count; i++)
        code = add_names(ctx, &page->entries[i].name, 1, err);
    return code;
}

static bool leaves_internal(const struct sort_spec *s)
{
    return !s->input_internal && !name_is_internal(s->input_prefix);
}

/* Of a bucket with a backend: what that lists, too. */
static int add_prefix(struct batch *b, struct error *err)
{
    const struct sort_pins *p = b->pins;
    const struct cold_names names = {.target = p->part->target,
                                     .bucket_id = p->part->plan->input_bucket_id,
                                     .prefix = p->part->spec->input_prefix,
                                     .skips_internal = leaves_internal(p->part->spec),
                                     .job = p->part->job,
                                     .is_ours = is_meant,
                                     .ctx = b,
                                     .stop = &p->part->stopped};
    b->listed = true;
    if (cold_names_can(p->part->target, p->part->plan->input_bucket_id))
        return cold_names_each(&names, add_names, b, err);
    return sort_pins_each_page(p, p->part->plan->input_bucket_id, p->part->spec->input_prefix,
                               leaves_internal(p->part->spec), add_page, b, err);
}

int sort_pins_each_page(const struct sort_pins *p, uint64_t bucket_id, const char *prefix,
                        bool skips_internal,
                        int (*fn)(void *ctx, const struct list_page *page, struct error *err),
                        void *ctx, struct error *err)
{
    _cleanup_free_ char *after = xstrdup("");
    bool more = true;
    int code = 0;
    while (code == 0 && more) {
        if (atomic_load(&p->part->stopped))
            return error_set(err, E_ABORTED, "job '%s' was stopped", p->part->job->id);
        struct list_page page = {0};
        const struct list_request request = {.bucket_id = bucket_id,
                                             .prefix = prefix,
                                             .delimiter = "",
                                             .start_after = after,
                                             .skips_internal = skips_internal,
                                             .limit = LIST_PAGE};
        code = list_page(p->part->target->store, &request, &page, err);
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

static int add_all(struct batch *b, struct error *err)
{
    switch (b->pins->part->spec->input_kind) {
    case SORT_INPUT_TEMPLATE:
        return add_template(b, err);
    case SORT_INPUT_LIST:
        return add_list(b, err);
    case SORT_INPUT_PREFIX:
        return add_prefix(b, err);
    }
    return error_set(err, E_INTERNAL, "unknown kind of input %d",
                     (int)b->pins->part->spec->input_kind);
}

/* Those that have become this target's since so many have left. */
static int pin_since(const struct sort_pins *p, unsigned since, struct listing *listing,
                     struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    *b = (struct batch){
        .pins = p, .since = (int)since, .listing = listing, .arena = arena_new(ARENA_BYTES)};
    int code = add_all(b, err);
    if (code == 0)
        code = batch_pin(b, err);
    arena_free(b->arena);
    free(b);
    return code;
}

static int open_link(const struct sort_pins *p, uint64_t series, const char *shard, int *fd,
                     struct error *err)
{
    char link_name[PIN_LINK_NAME];
    link_name_of(p, series, shard, link_name);
    int code = job_files_open(p->part->target->mountpaths, p->part->job->id, link_name, fd, err);
    return code != 0 ? error_wrap(err, "open pinned %s '%s'", word_of(p), shard) : 0;
}

/* The object itself, as long as it is what was pinned; else its link. */
static int open_object(const struct sort_pins *p, const char *name, int *fd, struct error *err)
{
    const struct sort_part *part = p->part;
    int code =
        object_open_pinned(part->target->store, p->set, part->plan->input_bucket_id, name, fd, err);
    if (code == E_CORRUPT) /* the same as bytes that have not their checksum */
        return error_recode(err, E_SHARD_CORRUPT, "open pinned object '%s'", name);
    if (code != E_OBJECT_NOT_FOUND)
        return code != 0 ? error_wrap(err, "open pinned object '%s'", name) : 0;
    struct error why = ERROR_INIT;
    code = open_link(p, atomic_load(&p->series), name, fd, &why);
    if (code == E_NOT_FOUND)
        return error_set(err, E_CANCELLED,
                         "object '%s' has changed, and its pinned version is gone", name);
    return code != 0 ? error_set(err, code, "%s", why.message) : 0;
}

int sort_pins_open(const struct sort_pins *p, const char *shard, int *fd, struct error *err)
{
    return p->set != NULL ? open_object(p, shard, fd, err)
                          : open_link(p, atomic_load(&p->series), shard, fd, err);
}

/* --- its life --------------------------------------------------------------------------------- */

void sort_pins_init(struct sort_pins *p)
{
    const struct sort_part *part = p->part;
    if (part->spec->plain_objects)
        p->set = pin_set_new(object_store_pins(part->target->store), part->plan->input_bucket_id,
                             part->job->id);
}

void sort_pins_end(struct sort_pins *p)
{
    if (p->set != NULL)
        pin_set_end(p->set);
}

void sort_pins_done(struct sort_pins *p)
{
    pin_set_free(steal(p->set));
}

/* --- pinning, and the list of it -------------------------------------------------------------- */

/* One that is read. */
struct known_list {
    const struct buf *text; /* NULL: there is none */
    struct pinned_head head;
};

static void series_set(struct sort_pins *p, uint64_t series)
{
    if (atomic_exchange(&p->series, series) != series && p->set != NULL)
        pin_set_begin(p->set, series);
}

/* From now on nothing of an earlier series is looked at; its room is given back where it can be. */
static int series_begin(const struct sort_pins *p, uint64_t *series, struct error *err)
{
    random_bytes(series, sizeof *series);
    return job_files_clear(p->part->target->mountpaths, p->part->job->id, pin_prefix, err);
}

/* What is known, and then what has become this target's since. */
static int list_all(const struct sort_pins *p, const struct known_list *known, struct listing *l,
                    struct error *err)
{
    struct pinned_head head;
    bool all = known->text != NULL && known->head.left == p->part->plan->left_count;
    const struct pinned_head now = {.series = atomic_load(&p->series),
                                    .left = (unsigned)p->part->plan->left_count};
    int code = pinned_put_head(&l->encoder, &now, err);
    if (code == 0 && known->text != NULL)
        code = pinned_each(known->text, &head, list_shard, l, err);
    if (code == 0 && !all)
        code = sort_pin_wait_for_repair(p->part, err);
    if (code == 0 && !all)
        code = pin_since(p, known->text != NULL ? known->head.left + 1 : 0, l, err);
    return code != 0 ? code : pinned_put_end(&l->encoder, err);
}

struct checking {
    struct sort_pins *pins;
    const struct pinned_head *head;
};

/* Without a link it must still be the object, which is pinned once more. */
static int check_object(const struct checking *c, const struct pinned_shard *shard,
                        struct error *err)
{
    struct pinned_shard now = {.info = {.name = shard->info.name}};
    bool found = false;
    int code = pin_shard(c->pins, &now, &found, err);
    if (code == 0 && (!found || now.stamp != shard->stamp))
        return error_set(err, E_CANCELLED, "object '%s' has changed", shard->info.name);
    return code;
}

static int check_pin(void *arg, const struct pinned_shard *shard, struct error *err)
{
    const struct checking *c = arg;
    int fd = -1;
    struct error why = ERROR_INIT;
    series_set(c->pins, c->head->series);
    if (shard->info.missing)
        return 0;
    int code = open_link(c->pins, c->head->series, shard->info.name, &fd, &why);
    cleanup_close_(&fd);
    if (code == E_NOT_FOUND && c->pins->set != NULL)
        return check_object(c, shard, err);
    return code != 0 ? error_set(err, code, "%s", why.message) : 0;
}

/* False: there is no list, or not all of what it names is there. */
static bool read_list(struct sort_pins *p, struct buf *text, struct pinned_head *head)
{
    struct error err = ERROR_INIT;
    struct checking checking = {.pins = p, .head = head};
    int code = job_files_read(p->part->target->mountpaths, p->part->job->id, list_name, text, &err);
    if (code == E_NOT_FOUND)
        return false;
    if (code == 0)
        code = pinned_each(text, head, check_pin, &checking, &err);
    if (code != 0)
        log_warn("shards are pinned anew", lstr("job", p->part->job->id), lerr(&err));
    return code == 0;
}

int sort_pins_make(struct sort_pins *p, sort_shard_fn *each, void *arg, struct sort_pinned *pinned,
                   struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT, next = BUF_INIT;
    struct known_list known = {0};
    struct listing l = {.each = each, .arg = arg};
    pinned->again = read_list(p, &text, &known.head);
    known.text = pinned->again ? &text : NULL;
    encoder_init(&l.encoder, sink_buf(&next));
    int code = pinned->again ? 0 : series_begin(p, &known.head.series, err);
    series_set(p, known.head.series);
    if (code == 0)
        code = list_all(p, &known, &l, err);
    encoder_done(&l.encoder);
    pinned->stamp = l.stamp;
    bool same = pinned->again && known.head.left == p->part->plan->left_count;
    return code != 0 || same ? code
                             : job_files_write(p->part->target->mountpaths, p->part->job->id,
                                               list_name, next.data, next.len, err);
}
