#include "mount/volume/format.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/parse.h"
#include "common/rng.h"
#include "mount/volume/attr.h"
#include "mount/volume/counters.h"

#define MIB (1ull << 20)

static const struct meta_key format_key = {.kind = META_FORMAT};

static const struct {
    const char *field;
    size_t offset;
} numbers[] = {
    {"chunk_bytes", offsetof(struct volume_format, chunk_bytes)},
    {"block_bytes", offsetof(struct volume_format, block_bytes)},
    {"grace_ms", offsetof(struct volume_format, grace_ms)},
    {"session_ms", offsetof(struct volume_format, session_ms)},
    {"max_inodes", offsetof(struct volume_format, max_inodes)},
    {"max_bytes", offsetof(struct volume_format, max_bytes)},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static uint64_t *number_of(const struct volume_format *f, size_t i)
{
    return (uint64_t *)((char *)f + numbers[i].offset);
}

void format_init(struct volume_format *f, const char *name, const char *bucket)
{
    uint8_t id[8];
    *f = (struct volume_format){
        .chunk_bytes = 64 * MIB,
        .block_bytes = 4 * MIB,
        .grace_ms = 15 * 60 * 1000,
        .session_ms = 60 * 1000,
        .max_inodes = INT64_MAX,
        .max_bytes = INT64_MAX,
    };
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->bucket, sizeof f->bucket, "%s", bucket);
    random_bytes(id, sizeof id);
    format_hex(id, sizeof id, f->id);
}

int format_check(const struct volume_format *f, struct error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    if (f->name[0] == '\0' || f->name[strspn(f->name, allowed)] != '\0')
        return error_set(err, E_INVALID, "volume '%s': a name has letters, digits, '-' and '_'",
                         f->name);
    if (f->chunk_bytes == 0 || f->chunk_bytes > 1024 * MIB || f->block_bytes == 0 ||
        f->chunk_bytes % f->block_bytes != 0)
        return error_set(err, E_INVALID,
                         "chunks of %llu bytes in blocks of %llu: a chunk has at most 1 GiB, and a "
                         "whole number of blocks",
                         (unsigned long long)f->chunk_bytes, (unsigned long long)f->block_bytes);
    if (f->session_ms == 0 || f->grace_ms / 2 < f->session_ms || f->grace_ms > INT64_MAX / 4)
        return error_set(err, E_INVALID,
                         "grace of %llu ms: it must be at least twice the session's %llu ms",
                         (unsigned long long)f->grace_ms, (unsigned long long)f->session_ms);
    if (f->trash_days > VOLUME_TRASH_DAYS_MAX)
        return error_set(err, E_INVALID, "%llu days of trash: at most %d",
                         (unsigned long long)f->trash_days, VOLUME_TRASH_DAYS_MAX);
    if (f->max_inodes < 1 || f->max_bytes < 0)
        return error_set(err, E_INVALID, "the limits must not be negative, and allow one inode");
    return 0;
}

/* ---- JSON ---- */

char *format_text(const struct volume_format *f)
{
    _cleanup_json_ json_t *doc =
        json_pack("{si ss ss ss}", "format", 1, "name", f->name, "id", f->id, "bucket", f->bucket);
    for (size_t i = 0; i < NUMBERS; i++)
        json_object_set_new(doc, numbers[i].field, json_integer((json_int_t)*number_of(f, i)));
    json_object_set_new(doc, "trash_days", json_integer((json_int_t)f->trash_days));
    return json_dumps(doc, JSON_COMPACT);
}

static int text_field(json_t *doc, const char *field, char *out, size_t size, struct error *err)
{
    const char *text;
    int rc = json_need_str(doc, "", field, &text, err);
    if (rc == 0)
        snprintf(out, size, "%s", text);
    return rc;
}

int format_parse(const struct meta_value *value, struct volume_format *f, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    uint64_t format;
    int rc = json_parse((const char *)value->data, value->size, &doc, err);
    if (rc == 0)
        rc = json_need_u64(doc, "", "format", &format, err);
    if (rc == 0 && format != 1)
        rc = error_set(err, E_UNSUPPORTED, "format %llu: this release reads format 1",
                       (unsigned long long)format);
    if (rc == 0)
        rc = text_field(doc, "name", f->name, sizeof f->name, err);
    if (rc == 0)
        rc = text_field(doc, "id", f->id, sizeof f->id, err);
    if (rc == 0)
        rc = text_field(doc, "bucket", f->bucket, sizeof f->bucket, err);
    for (size_t i = 0; i < NUMBERS && rc == 0; i++)
        rc = json_need_u64(doc, "", numbers[i].field, number_of(f, i), err);
    f->trash_days = 0; /* of volumes that older releases made */
    if (rc == 0)
        rc = json_get_u64(doc, "", "trash_days", &f->trash_days, err);
    return rc != 0 ? rc : format_check(f, err);
}

/* ---- the first commit ---- */

static struct meta_step put(struct meta_key key, const void *data, size_t size)
{
    return (struct meta_step){.kind = META_PUT, .key = key, .data = data, .size = size};
}

int format_write(struct meta *m, const struct volume_format *format, uint32_t uid, uint32_t gid,
                 struct error *err)
{
    struct volume_format f = *format;
    uint8_t root[ATTR_BYTES], use[USE_SIZE], inodes[8], first[8];
    int64_t now_ms;
    int rc = format_check(&f, err);
    if (rc == 0)
        rc = m->ops->now(m, &now_ms, err);
    if (rc != 0)
        return error_wrap(err, "format volume '%s'", f.name);
    const int64_t now_ns = now_ms * 1000000;
    const struct attr a = {
        .mode = S_IFDIR | 0755,
        .uid = uid,
        .gid = gid,
        .nlink = 2,
        .atime_ns = now_ns,
        .mtime_ns = now_ns,
        .ctime_ns = now_ns,
        .parent = VOLUME_ROOT,
    };
    _cleanup_free_ char *text = format_text(&f);
    attr_encode(&a, root);
    meta_field_put(use, USE_INODES, 1);
    meta_field_put(use, USE_BYTES, 0);
    meta_field_put(use, USE_INODES_LEFT, f.max_inodes - 1);
    meta_field_put(use, USE_BYTES_LEFT, f.max_bytes);
    meta_field_put(inodes, 0, VOLUME_ROOT + 1);
    meta_field_put(first, 0, 1);
    const struct meta_step steps[] = {
        {.kind = META_EXPECT_ABSENT, .key = format_key},
        put(format_key, text, strlen(text)),
        put(meta_key_point(META_ATTR, VOLUME_ROOT), root, sizeof root),
        put(counters_use_key(), use, sizeof use),
        put(counters_next_key(IDS_INODES), inodes, sizeof inodes),
        put(counters_next_key(IDS_SLICES), first, sizeof first),
        put(counters_next_key(IDS_SESSIONS), first, sizeof first),
    };
    struct meta_commit c = {.steps = steps, .count = sizeof steps / sizeof *steps};
    rc = m->ops->commit(m, &c, err);
    if (rc == E_PRECONDITION)
        return error_set(err, E_EXISTS,
                         "format volume '%s': these metadata have a volume already; take another "
                         "place",
                         f.name);
    return rc == 0 ? 0 : error_wrap(err, "format volume '%s'", f.name);
}

int format_read(struct meta *m, struct volume_format *f, struct error *err)
{
    struct arena *arena = arena_new(1024);
    struct meta_item item = {.ask = META_GET, .key = format_key};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    int rc = m->ops->read(m, &r, err);
    *f = (struct volume_format){0};
    if (rc == 0 && !item.value.found)
        rc = error_set(err, E_NOT_FOUND, "no volume is here; make one with 'dfcctl fs format'");
    else if (rc == 0 && format_parse(&item.value, f, err) != 0)
        rc = error_wrap(err, "format of the volume");
    arena_free(arena);
    return rc;
}

static struct meta_step add_left(size_t offset, int64_t number)
{
    return (struct meta_step){
        .kind = META_ADD, .key = counters_use_key(), .offset = offset, .number = number};
}

static int change(struct meta *m, const struct meta_item *item, const struct volume_format *was,
                  const struct volume_format *f, struct error *err)
{
    _cleanup_free_ char *text = format_text(f);
    _cleanup_free_ char *old = format_text(was);
    const struct meta_value *value = &item->value;
    const struct meta_step steps[] = {
        {.kind = META_EXPECT_STAMP, .key = format_key, .stamp = value->stamp},
        put(format_key, text, strlen(text)),
        add_left(USE_INODES_LEFT, f->max_inodes - was->max_inodes),
        add_left(USE_BYTES_LEFT, f->max_bytes - was->max_bytes),
    };
    struct meta_commit c = {.steps = steps, .count = sizeof steps / sizeof *steps};
    struct volume_format there;
    int rc = format_parse(value, &there, err);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *now = format_text(&there);
    rc = strcmp(old, now) == 0 ? m->ops->commit(m, &c, err) : E_PRECONDITION;
    return rc != E_PRECONDITION ? rc
                                : error_set(err, E_PRECONDITION,
                                            "another client has changed it: repeat the command");
}

int format_change(struct meta *m, const struct volume_format *was, const struct volume_format *f,
                  struct error *err)
{
    struct arena *arena = arena_new(1024);
    struct meta_item item = {.ask = META_GET, .key = format_key};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    int rc = format_check(f, err);
    if (rc == 0)
        rc = m->ops->read(m, &r, err);
    if (rc == 0)
        rc = change(m, &item, was, f, err);
    arena_free(arena);
    return rc == 0 ? 0 : error_wrap(err, "change volume '%s'", f->name);
}
