#include "target/sort_pins.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/arena.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "sort/codec.h"
#include "target/cold_here.h"
#include "target/cold_names.h"
#include "target/job_files.h"
#include "target/sort_pin.h"
#include "target/target.h"

enum {
    LIST_PAGE = 1000,
    ARENA_BYTES = 16 << 10,
    LINK_NAME = 36, /* "in-" and 32 hex digits */
    NAME_LEN_MAX = 1024,
    LEFT_MAX = 4096, /* of sort/plan.c */
};

static const char list_name[] = "pinned";
static const char magic[8] = "DFCPINS2";

/* --- pinning
 * ---------------------------------------------------------------------------------------
 */

/* The hash that the store names the object's file by (target/object_path.h): of two names that have
 * the same one it refuses the second, so that no pin can take another's place. */
static void link_name_of(const struct sort_pins *p, const char *shard, char out[static LINK_NAME])
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(shard, strlen(shard), p->plan->input_bucket_id);
    snprintf(out, LINK_NAME, "in-%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

struct pinned_shard {
    struct sort_shard_info info;
    uint64_t stamp; /* 0: it is missing */
};

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
    char link_name[LINK_NAME];
    struct object o;
    link_name_of(p, info->name, link_name);
    int code = sort_pin(p, info->name, link_name, &o, err);
    *found = code != E_OBJECT_NOT_FOUND;
    if (code == E_OBJECT_NOT_FOUND)
        return 0;
    if (code != 0)
        return error_wrap(err, "pin shard '%s'", info->name);
    close(o.fd);
    info->size = o.attr.size;
    shard->stamp = stamp_of(info->name, &o.attr.version);
    return 0;
}

static int owned_since(const struct sort_pins *p, const char *name)
{
    return sort_plan_owned_since(p->plan, p->plan->input_bucket_id, name, p->self);
}

/* --- the list that is being made ----------------------------------------------------------------
 */

struct listing {
    struct encoder encoder;
    sort_shard_fn *each;
    void *arg;
    uint64_t stamp; /* the sum of all */
};

static int listing_put(struct encoder *e, const struct pinned_shard *shard, struct error *err)
{
    const struct sort_shard_info *info = &shard->info;
    size_t len = strlen(info->name);
    int code = encoder_put_varint(e, 1, err);
    if (code == 0)
        code = encoder_put_varint(e, info->place, err);
    if (code == 0)
        code = encoder_put_varint(e, info->size, err);
    if (code == 0)
        code = encoder_put_varint(e, info->missing, err);
    if (code == 0)
        code = encoder_put_varint(e, info->without, err);
    if (code == 0)
        code = encoder_put_u64(e, shard->stamp, err);
    if (code == 0)
        code = encoder_put_varint(e, len, err);
    return code != 0 ? code : encoder_put(e, info->name, len, err);
}

static int list_shard(void *arg, const struct pinned_shard *shard, struct error *err)
{
    struct listing *l = arg;
    int code = listing_put(&l->encoder, shard, err);
    l->stamp += shard->stamp;
    return code != 0 ? code : l->each(l->arg, &shard->info, err);
}

/* --- which shards ---
 *
 * In batches: of a bucket with a backend several at once are brought here before they are pinned.
 * What was evicted again before that is brought once more. */

enum { PIN_TRIES = 5 };

struct batch {
    const struct sort_pins *pins;
    int since; /* what became this target's when so many had left, or more */
    struct listing *listing;
    bool listed; /* one that is not there any more is no part of the dataset */
    struct arena *arena;
    const char *names[COLD_NAMES_BATCH];
    uint64_t places[COLD_NAMES_BATCH];
    size_t count;
};

static int bring(const struct sort_pins *p, const char *name, enum cold_here *what,
                 struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->plan->input_bucket_id);
    uint64_t bytes;
    *what = COLD_NOWHERE;
    if (b == NULL || b->props.backend == NULL)
        return 0;
    return cold_make_here(p->target, b, name, NULL, what, &bytes, err);
}

static int pin_or_bring(const struct sort_pins *p, struct pinned_shard *shard, bool *found,
                        struct error *err)
{
    const struct sort_shard_info *info = &shard->info;
    enum cold_here what = COLD_HERE;
    int code = pin_shard(p, shard, found, err);
    for (int i = 0; code == 0 && !*found && what != COLD_NOWHERE; i++) {
        if (i == PIN_TRIES)
            return error_set(err, E_NO_SPACE, "shard '%s' is evicted before it can be pinned",
                             info->name);
        code = bring(p, info->name, &what, err);
        if (code == 0 && what != COLD_NOWHERE)
            code = pin_shard(p, shard, found, err);
    }
    return code;
}

static int batch_pin(struct batch *b, struct error *err)
{
    const struct sort_pins *p = b->pins;
    int code = cold_make_all_here(p->target, p->plan->input_bucket_id, b->names, b->count,
                                  p->stopped, err);
    for (size_t i = 0; code == 0 && i < b->count; i++) {
        struct pinned_shard shard = {.info = {.name = b->names[i], .place = b->places[i]}};
        bool found;
        shard.info.without = (unsigned)owned_since(p, b->names[i]);
        code = pin_or_bring(p, &shard, &found, err);
        shard.info.missing = !found;
        if (code == 0 && (found || !b->listed))
            code = list_shard(b->listing, &shard, err);
    }
    b->count = 0;
    arena_reset(b->arena);
    return code;
}

static int batch_add(struct batch *b, const char *name, uint64_t place, struct error *err)
{
    b->names[b->count] = arena_strdup(b->arena, name);
    b->places[b->count++] = place;
    return b->count == COLD_NAMES_BATCH ? batch_pin(b, err) : 0;
}

static bool is_meant(void *ctx, const char *name)
{
    const struct batch *b = ctx;
    return owned_since(b->pins, name) >= b->since;
}

static int add_template(struct batch *b, struct error *err)
{
    const struct name_template *t = b->pins->spec->input_template;
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
    const struct sort_spec *spec = b->pins->spec;
    int code = 0;
    for (size_t i = 0; code == 0 && i < spec->input_name_count; i++) {
        if (is_meant(b, spec->input_names[i]))
            code = batch_add(b, spec->input_names[i], i, err);
    }
    return code;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static int add_names(void *ctx, const char *const *names, size_t count, struct error *err)
{
    struct batch *b = ctx;
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++) {
        if (is_meant(b, names[i]) && ends_with(names[i], b->pins->spec->input_extension))
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

/* Of a bucket with a backend: what that lists, too. */
static int add_prefix(struct batch *b, struct error *err)
{
    const struct sort_pins *p = b->pins;
    const struct cold_names names = {.target = p->target,
                                     .bucket_id = p->plan->input_bucket_id,
                                     .prefix = p->spec->input_prefix,
                                     .is_ours = is_meant,
                                     .ctx = b,
                                     .stop = p->stopped};
    b->listed = true;
    if (cold_names_can(p->target, p->plan->input_bucket_id))
        return cold_names_each(&names, add_names, b, err);
    return sort_pins_each_page(p, p->plan->input_bucket_id, p->spec->input_prefix, add_page, b,
                               err);
}

int sort_pins_each_page(const struct sort_pins *p, uint64_t bucket_id, const char *prefix,
                        int (*fn)(void *ctx, const struct list_page *page, struct error *err),
                        void *ctx, struct error *err)
{
    _cleanup_free_ char *after = xstrdup("");
    bool more = true;
    int code = 0;
    while (code == 0 && more) {
        if (atomic_load(p->stopped))
            return error_set(err, E_ABORTED, "job '%s' was stopped", p->job->id);
        struct list_page page = {0};
        const struct list_request request = {.bucket_id = bucket_id,
                                             .prefix = prefix,
                                             .delimiter = "",
                                             .start_after = after,
                                             .limit = LIST_PAGE};
        code = list_page(p->target->store, &request, &page, err);
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
    switch (b->pins->spec->input_kind) {
    case SORT_INPUT_TEMPLATE:
        return add_template(b, err);
    case SORT_INPUT_LIST:
        return add_list(b, err);
    case SORT_INPUT_PREFIX:
        return add_prefix(b, err);
    }
    return error_set(err, E_INTERNAL, "unknown kind of input %d", (int)b->pins->spec->input_kind);
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

int sort_pins_open(const struct sort_pins *p, const char *shard, int *fd, struct error *err)
{
    char link_name[LINK_NAME];
    link_name_of(p, shard, link_name);
    int code = job_files_open(p->target->mountpaths, p->job->id, link_name, fd, err);
    return code != 0 ? error_wrap(err, "open pinned shard '%s'", shard) : 0;
}

/* --- the list of what is pinned -----------------------------------------------------------------
 *
 *     magic      "DFCPINS2"
 *     left       how many targets the job went on without when it was written
 *     shards     each: 1, place, size, missing, left when it became this target's, stamp (8 bytes),
 *                length of the name, name
 *     end        0
 *     checksum   8 bytes
 */

/* One that is read, and what has become of it. */
struct known_list {
    const struct buf *text; /* NULL: there is none */
    unsigned left;
};

typedef int pinned_fn(void *arg, const struct pinned_shard *shard, struct error *err);

static int listing_get(struct decoder *d, struct pinned_shard *shard,
                       char name[static NAME_LEN_MAX + 1], struct error *err)
{
    struct sort_shard_info *info = &shard->info;
    uint64_t missing = 0, left = 0, len = 0;
    int code = decoder_get_varint(d, &info->place, err);
    if (code == 0)
        code = decoder_get_varint(d, &info->size, err);
    if (code == 0)
        code = decoder_get_bounded(d, 1, "a mark", &missing, err);
    if (code == 0)
        code = decoder_get_bounded(d, LEFT_MAX, "a number of targets", &left, err);
    if (code == 0)
        code = decoder_get_u64(d, &shard->stamp, err);
    if (code == 0)
        code = decoder_get_bounded(d, NAME_LEN_MAX, "the length of a name", &len, err);
    if (code == 0)
        code = decoder_get(d, name, (size_t)len, err);
    name[len] = '\0';
    info->name = name;
    info->missing = missing != 0;
    info->without = (unsigned)left;
    return code;
}

static int listing_head(struct decoder *d, unsigned *left, struct error *err)
{
    char found[sizeof magic] = {0};
    uint64_t number = 0;
    int code = decoder_get(d, found, sizeof found, err);
    if (code == 0 && memcmp(found, magic, sizeof magic) != 0)
        return error_set(err, E_CORRUPT, "it is no list of shards");
    if (code == 0)
        code = decoder_get_bounded(d, LEFT_MAX, "a number of targets", &number, err);
    *left = (unsigned)number;
    return code;
}

/* All of it, to the checksum. */
static int listing_each(const struct buf *text, unsigned *left, pinned_fn *each, void *arg,
                        struct error *err)
{
    char name[NAME_LEN_MAX + 1];
    struct span span = {.data = (const unsigned char *)text->data, .len = text->len};
    struct decoder d;
    uint64_t more = 1;
    decoder_init(&d, source_span(&span));
    int code = listing_head(&d, left, err);
    while (code == 0 && more != 0) {
        struct pinned_shard shard = {0};
        code = decoder_get_bounded(&d, 1, "a mark", &more, err);
        if (code == 0 && more != 0)
            code = listing_get(&d, &shard, name, err);
        if (code == 0 && more != 0)
            code = each(arg, &shard, err);
    }
    if (code == 0)
        code = decoder_get_checksum(&d, err);
    decoder_done(&d);
    return code;
}

/* --- pinning, and the list of it ----------------------------------------------------------------
 */

/* What is known, and then what has become this target's since. */
static int list_all(const struct sort_pins *p, const struct known_list *known, struct listing *l,
                    struct error *err)
{
    unsigned left = 0;
    bool all = known->text != NULL && known->left == p->plan->left_count;
    int code = encoder_put(&l->encoder, magic, sizeof magic, err);
    if (code == 0)
        code = encoder_put_varint(&l->encoder, p->plan->left_count, err);
    if (code == 0 && known->text != NULL)
        code = listing_each(known->text, &left, list_shard, l, err);
    if (code == 0 && !all)
        code = sort_pin_wait_for_repair(p, err);
    if (code == 0 && !all)
        code = pin_since(p, known->text != NULL ? known->left + 1 : 0, l, err);
    if (code == 0)
        code = encoder_put_varint(&l->encoder, 0, err);
    return code != 0 ? code : encoder_put_checksum(&l->encoder, err);
}

static int check_pin(void *arg, const struct pinned_shard *shard, struct error *err)
{
    const struct sort_pins *p = arg;
    int fd = -1;
    int code = shard->info.missing ? 0 : sort_pins_open(p, shard->info.name, &fd, err);
    if (fd >= 0)
        close(fd);
    return code;
}

/* False: there is no list, or not all of what it names is there. */
static bool read_list(const struct sort_pins *p, struct buf *text, unsigned *left)
{
    struct error err = ERROR_INIT;
    int code = job_files_read(p->target->mountpaths, p->job->id, list_name, text, &err);
    if (code == E_NOT_FOUND)
        return false;
    if (code == 0)
        code = listing_each(text, left, check_pin, (void *)p, &err);
    if (code != 0)
        log_warn("shards are pinned anew", lstr("job", p->job->id), lerr(&err));
    return code == 0;
}

int sort_pins_make(const struct sort_pins *p, sort_shard_fn *each, void *arg,
                   struct sort_pinned *pinned, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT, next = BUF_INIT;
    struct known_list known = {0};
    struct listing l = {.each = each, .arg = arg};
    pinned->again = read_list(p, &text, &known.left);
    known.text = pinned->again ? &text : NULL;
    encoder_init(&l.encoder, sink_buf(&next));
    int code = list_all(p, &known, &l, err);
    encoder_done(&l.encoder);
    pinned->stamp = l.stamp;
    bool same = pinned->again && known.left == p->plan->left_count;
    return code != 0 || same ? code
                             : job_files_write(p->target->mountpaths, p->job->id, list_name,
                                               next.data, next.len, err);
}
