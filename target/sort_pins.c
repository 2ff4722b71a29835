#include "target/sort_pins.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "sort/codec.h"
#include "target/job_files.h"
#include "target/sort_pin.h"
#include "target/target.h"

enum {
    LIST_PAGE = 1000,
    LINK_NAME = 36, /* "in-" and 32 hex digits */
    NAME_LEN_MAX = 1024,
};

static const char list_name[] = "pinned";
static const char magic[8] = "DFCPINS1";

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

/* *found false: there is no such object. */
static int pin_shard(const struct sort_pins *p, struct sort_shard_info *info, bool *found,
                     struct error *err)
{
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
    return 0;
}

static int pin_named(const struct sort_pins *p, const char *name, uint64_t place,
                     sort_shard_fn *each, void *arg, struct error *err)
{
    if (sort_plan_owner(p->plan, p->plan->input_bucket_id, name) != p->self)
        return 0;
    struct sort_shard_info info = {.name = name, .place = place};
    bool found;
    int code = pin_shard(p, &info, &found, err);
    if (code != 0)
        return code;
    info.missing = !found;
    return each(arg, &info, err);
}

static int pin_template(const struct sort_pins *p, sort_shard_fn *each, void *arg,
                        struct error *err)
{
    const struct name_template *t = p->spec->input_template;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int code = 0;
    for (uint64_t i = 0; code == 0 && i < template_count(t); i++) {
        buf_clear(&name);
        template_name(t, i, &name);
        code = pin_named(p, buf_str(&name), i, each, arg, err);
    }
    return code;
}

static int pin_list(const struct sort_pins *p, sort_shard_fn *each, void *arg, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < p->spec->input_name_count; i++)
        code = pin_named(p, p->spec->input_names[i], i, each, arg, err);
    return code;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static int pin_page(const struct sort_pins *p, const struct list_page *page, sort_shard_fn *each,
                    void *arg, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < page->entry_count; i++) {
        struct sort_shard_info info = {.name = page->entries[i].name};
        bool found;
        if (!ends_with(info.name, p->spec->input_extension) ||
            sort_plan_owner(p->plan, p->plan->input_bucket_id, info.name) != p->self)
            continue;
        code = pin_shard(p, &info, &found, err);
        /* One that was deleted since the page was made is no part of the dataset. */
        if (code == 0 && found)
            code = each(arg, &info, err);
    }
    return code;
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
            return error_set(err, E_ABORTED, "job '%s' was stopped", p->job_id);
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

struct pin_prefix {
    const struct sort_pins *pins;
    sort_shard_fn *each;
    void *arg;
};

static int pin_prefix_page(void *ctx, const struct list_page *page, struct error *err)
{
    const struct pin_prefix *p = ctx;
    return pin_page(p->pins, page, p->each, p->arg, err);
}

static int pin_all(const struct sort_pins *p, sort_shard_fn *each, void *arg, struct error *err)
{
    struct pin_prefix prefix = {.pins = p, .each = each, .arg = arg};
    switch (p->spec->input_kind) {
    case SORT_INPUT_TEMPLATE:
        return pin_template(p, each, arg, err);
    case SORT_INPUT_LIST:
        return pin_list(p, each, arg, err);
    case SORT_INPUT_PREFIX:
        return sort_pins_each_page(p, p->plan->input_bucket_id, p->spec->input_prefix,
                                   pin_prefix_page, &prefix, err);
    }
    return error_set(err, E_INTERNAL, "unknown kind of input %d", (int)p->spec->input_kind);
}

int sort_pins_open(const struct sort_pins *p, const char *shard, int *fd, struct error *err)
{
    char link_name[LINK_NAME];
    link_name_of(p, shard, link_name);
    int code = job_files_open(p->target->mountpaths, p->job_id, link_name, fd, err);
    return code != 0 ? error_wrap(err, "open pinned shard '%s'", shard) : 0;
}

/* --- the list of what is pinned -----------------------------------------------------------------
 *
 *     magic      "DFCPINS1"
 *     stamp      8 bytes
 *     shards     each: 1, place, size, missing, length of the name, name
 *     end        0
 *     checksum   8 bytes
 */

struct listing {
    struct encoder encoder;
    sort_shard_fn *each;
    void *arg;
};

static int listing_put(struct encoder *e, const struct sort_shard_info *info, struct error *err)
{
    size_t len = strlen(info->name);
    int code = encoder_put_varint(e, 1, err);
    if (code == 0)
        code = encoder_put_varint(e, info->place, err);
    if (code == 0)
        code = encoder_put_varint(e, info->size, err);
    if (code == 0)
        code = encoder_put_varint(e, info->missing, err);
    if (code == 0)
        code = encoder_put_varint(e, len, err);
    return code != 0 ? code : encoder_put(e, info->name, len, err);
}

static int list_shard(void *arg, const struct sort_shard_info *info, struct error *err)
{
    struct listing *l = arg;
    int code = listing_put(&l->encoder, info, err);
    return code != 0 ? code : l->each(l->arg, info, err);
}

static int pin_and_list(const struct sort_pins *p, struct listing *l, uint64_t stamp,
                        struct error *err)
{
    int code = encoder_put(&l->encoder, magic, sizeof magic, err);
    if (code == 0)
        code = encoder_put_u64(&l->encoder, stamp, err);
    if (code == 0)
        code = pin_all(p, list_shard, l, err);
    if (code == 0)
        code = encoder_put_varint(&l->encoder, 0, err);
    return code != 0 ? code : encoder_put_checksum(&l->encoder, err);
}

static int pin_anew(const struct sort_pins *p, sort_shard_fn *each, void *arg,
                    struct sort_pinned *pinned, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct listing l = {.each = each, .arg = arg};
    random_bytes(&pinned->stamp, sizeof pinned->stamp);
    encoder_init(&l.encoder, sink_buf(&text));
    int code = sort_pin_wait_for_repair(p, err);
    if (code == 0)
        code = pin_and_list(p, &l, pinned->stamp, err);
    encoder_done(&l.encoder);
    if (code == 0)
        code =
            job_files_write(p->target->mountpaths, p->job_id, list_name, text.data, text.len, err);
    return code;
}

static int listing_get(struct decoder *d, struct sort_shard_info *info,
                       char name[static NAME_LEN_MAX + 1], struct error *err)
{
    uint64_t missing = 0, len = 0;
    int code = decoder_get_varint(d, &info->place, err);
    if (code == 0)
        code = decoder_get_varint(d, &info->size, err);
    if (code == 0)
        code = decoder_get_bounded(d, 1, "a mark", &missing, err);
    if (code == 0)
        code = decoder_get_bounded(d, NAME_LEN_MAX, "the length of a name", &len, err);
    if (code == 0)
        code = decoder_get(d, name, (size_t)len, err);
    name[len] = '\0';
    info->name = name;
    info->missing = missing != 0;
    return code;
}

static int listing_head(struct decoder *d, uint64_t *stamp, struct error *err)
{
    char found[sizeof magic] = {0};
    int code = decoder_get(d, found, sizeof found, err);
    if (code == 0 && memcmp(found, magic, sizeof magic) != 0)
        return error_set(err, E_CORRUPT, "it is no list of shards");
    return code != 0 ? code : decoder_get_u64(d, stamp, err);
}

/* All of it, to the checksum. */
static int listing_each(const struct buf *text, uint64_t *stamp, sort_shard_fn *each, void *arg,
                        struct error *err)
{
    char name[NAME_LEN_MAX + 1];
    struct span span = {.data = (const unsigned char *)text->data, .len = text->len};
    struct decoder d;
    uint64_t more = 1;
    decoder_init(&d, source_span(&span));
    int code = listing_head(&d, stamp, err);
    while (code == 0 && more != 0) {
        struct sort_shard_info info = {0};
        code = decoder_get_bounded(&d, 1, "a mark", &more, err);
        if (code == 0 && more != 0)
            code = listing_get(&d, &info, name, err);
        if (code == 0 && more != 0)
            code = each(arg, &info, err);
    }
    if (code == 0)
        code = decoder_get_checksum(&d, err);
    decoder_done(&d);
    return code;
}

static int check_pin(void *arg, const struct sort_shard_info *info, struct error *err)
{
    const struct sort_pins *p = arg;
    int fd = -1;
    int code = info->missing ? 0 : sort_pins_open(p, info->name, &fd, err);
    if (fd >= 0)
        close(fd);
    return code;
}

/* False: there is no list, or not all of what it names is there. */
static bool read_list(const struct sort_pins *p, struct buf *text)
{
    struct error err = ERROR_INIT;
    uint64_t stamp;
    int code = job_files_read(p->target->mountpaths, p->job_id, list_name, text, &err);
    if (code == E_NOT_FOUND)
        return false;
    if (code == 0)
        code = listing_each(text, &stamp, check_pin, (void *)p, &err);
    if (code != 0)
        log_warn("shards are pinned anew", lstr("job", p->job_id), lerr(&err));
    return code == 0;
}

int sort_pins_make(const struct sort_pins *p, sort_shard_fn *each, void *arg,
                   struct sort_pinned *pinned, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    pinned->again = read_list(p, &text);
    return pinned->again ? listing_each(&text, &pinned->stamp, each, arg, err)
                         : pin_anew(p, each, arg, pinned, err);
}
