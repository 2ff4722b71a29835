#include "mount/volume/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "mount/volume/counters.h"
#include "mount/volume/walk.h"

enum { DUMP_FORMAT = 1, STEPS_AT_ONCE = 200 };

/* Sessions, and what belongs to them, are not.  A new kind must be decided here: the compiler says
 * so. */
static bool is_saved(enum meta_kind kind)
{
    switch (kind) {
    case META_FORMAT:
    case META_NEXT:
    case META_USE:
    case META_ATTR:
    case META_SYMLINK:
    case META_SHARED:
    case META_QUOTA:
    case META_ENTRY:
    case META_XATTR:
    case META_CHUNK:
    case META_UNLINKED:
    case META_GARBAGE:
    case META_COMPACT:
        return true;
    case META_SESSION:
    case META_LANE:
    case META_RANGE:
    case META_LEASE:
    case META_OPEN:
    case META_LOCK:
    case META_KINDS:
        return false;
    }
    return false;
}

/* ---- save ---- */

struct save {
    FILE *to;
    uint64_t keys;
};

static void put_hex(FILE *to, const char *field, const void *data, size_t size)
{
    _cleanup_free_ char *hex = xmalloc(2 * size + 1);
    format_hex(data != NULL ? data : "", size, hex);
    fprintf(to, ", \"%s\": \"%s\"", field, hex);
}

static int save_row(void *context, const struct meta_row *row, struct error *err)
{
    struct save *s = context;
    const enum meta_shape shape = meta_kind_shape(row->key.kind);
    if (!is_saved(row->key.kind))
        return 0;
    fprintf(s->to, "{\"kind\": \"%s\", \"id\": %llu", meta_kind_name(row->key.kind),
            (unsigned long long)row->key.id);
    if (shape == META_NUMBERS || shape == META_QUEUE)
        fprintf(s->to, ", \"sub\": %llu", (unsigned long long)row->key.sub);
    if (shape == META_NAMES)
        put_hex(s->to, "name", row->key.name, row->key.name_size);
    put_hex(s->to, "value", row->value.data, row->value.size);
    fputs("}\n", s->to);
    s->keys++;
    return ferror(s->to) ? error_errno(err, errno, "write the dump") : 0;
}

int dump_save(struct meta *m, FILE *to, struct dump_tally *tally, struct error *err)
{
    struct save s = {.to = to};
    fprintf(to, "{\"dump\": %d}\n", DUMP_FORMAT);
    int rc = m->ops->snapshot(m, save_row, &s, err);
    if (rc == 0)
        fprintf(to, "{\"end\": %llu}\n", (unsigned long long)s.keys);
    tally->keys = s.keys;
    return rc;
}

/* ---- load ---- */

struct load {
    struct meta *m;
    uint64_t next_slice, keys;
    bool ended;
    struct arena *arena; /* of the steps */
    struct meta_step steps[STEPS_AT_ONCE + 1];
    size_t count;
    struct arena *last_arena;
    struct meta_step format; /* the last one to be put */
};

static int commit(struct load *l, struct error *err)
{
    struct meta_commit c = {.steps = l->steps, .count = l->count};
    int rc = l->count > 1 ? l->m->ops->commit(l->m, &c, err) : 0;
    if (rc == E_PRECONDITION)
        rc = error_set(err, E_EXISTS, "another program has made a volume meanwhile");
    arena_reset(l->arena);
    l->steps[0] = (struct meta_step){.kind = META_EXPECT_ABSENT, .key.kind = META_FORMAT};
    l->count = 1;
    return rc;
}

static int get_hex(json_t *line, const char *field, struct arena *arena, const void **data,
                   size_t *size, struct error *err)
{
    const char *hex;
    int rc = json_need_str(line, "", field, &hex, err);
    if (rc != 0)
        return rc;
    *size = strlen(hex) / 2;
    void *bytes = arena_bytes(arena, *size + 1);
    *data = bytes;
    return parse_hex(hex, bytes, *size, err);
}

static int get_kind(json_t *line, enum meta_kind *kind, struct error *err)
{
    const char *name;
    int rc = json_need_str(line, "", "kind", &name, err);
    for (unsigned k = 0; k < META_KINDS && rc == 0; k++) {
        *kind = (enum meta_kind)k;
        if (strcmp(meta_kind_name(*kind), name) == 0 && is_saved(*kind))
            return 0;
    }
    return rc != 0 ? rc : error_set(err, E_CORRUPT, "'%s' is no kind of key of a dump", name);
}

static int get_key(json_t *line, struct arena *arena, struct meta_key *key, struct error *err)
{
    const void *name;
    int rc = get_kind(line, &key->kind, err);
    if (rc == 0)
        rc = json_need_u64(line, "", "id", &key->id, err);
    if (rc != 0)
        return rc;
    switch (meta_kind_shape(key->kind)) {
    case META_POINT:
        return 0;
    case META_NUMBERS:
    case META_QUEUE:
        return json_need_u64(line, "", "sub", &key->sub, err);
    case META_NAMES:
        rc = get_hex(line, "name", arena, &name, &key->name_size, err);
        key->name = name;
        break;
    }
    if (rc == 0 && (key->name_size == 0 || key->name_size > META_NAME_MAX))
        rc = error_set(err, E_CORRUPT, "a name of %zu bytes", key->name_size);
    return rc;
}

/* Ids that the bucket has never mean other bytes. */
static void raise_next(const struct load *l, const struct meta_step *s)
{
    const struct meta_key key = counters_next_key(IDS_SLICES);
    const struct meta_value value = {.found = true, .data = s->data, .size = s->size};
    if (!meta_key_is(&s->key, &key) || s->size < 8 ||
        meta_field(&value, 0) >= (int64_t)l->next_slice)
        return;
    meta_field_put((uint8_t *)(uintptr_t)s->data, 0, (int64_t)l->next_slice);
}

static int load_key(struct load *l, json_t *line, struct error *err)
{
    struct meta_step s = {.kind = META_PUT};
    int rc = get_key(line, l->arena, &s.key, err);
    const bool is_format = rc == 0 && s.key.kind == META_FORMAT;
    if (rc == 0)
        rc = get_hex(line, "value", is_format ? l->last_arena : l->arena, &s.data, &s.size, err);
    if (rc != 0)
        return rc;
    l->keys++;
    if (is_format) {
        l->format = s;
        return 0;
    }
    raise_next(l, &s);
    l->steps[l->count++] = s;
    return l->count > STEPS_AT_ONCE ? commit(l, err) : 0;
}

static int load_line(struct load *l, const char *text, size_t size, bool first, struct error *err)
{
    _cleanup_json_ json_t *line = NULL;
    uint64_t number;
    int rc = json_parse(text, size, &line, err);
    if (rc != 0)
        return rc;
    if (first) {
        rc = json_need_u64(line, "", "dump", &number, err);
        return rc != 0 || number == DUMP_FORMAT
                   ? rc
                   : error_set(err, E_UNSUPPORTED, "dump %llu: this release reads dump 1",
                               (unsigned long long)number);
    }
    if (l->ended)
        return error_set(err, E_CORRUPT, "there are lines behind the end");
    if (json_object_get(line, "end") == NULL)
        return load_key(l, line, err);
    rc = json_need_u64(line, "", "end", &number, err);
    l->ended = true;
    return rc != 0 || number == l->keys
               ? rc
               : error_set(err, E_CORRUPT, "%llu keys, and the end says %llu",
                           (unsigned long long)l->keys, (unsigned long long)number);
}

static int load_lines(struct load *l, FILE *from, struct error *err)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t size;
    int rc = 0;
    for (unsigned long number = 1; rc == 0 && (size = getline(&text, &room, from)) > 0; number++) {
        rc = load_line(l, text, (size_t)size, number == 1, err);
        if (rc != 0)
            rc = error_wrap(err, "line %lu of the dump", number);
    }
    free(text);
    if (rc == 0 && ferror(from))
        rc = error_errno(err, errno, "read the dump");
    if (rc == 0 && (!l->ended || l->format.data == NULL))
        rc = error_set(err, E_CORRUPT, "the dump is not whole: its last line is missing");
    return rc;
}

static int line_format(struct load *l, const char *text, size_t size, bool first,
                       struct volume_format *out, bool *found, struct error *err)
{
    int rc = load_line(l, text, size, first, err);
    *found = rc == 0 && l->format.data != NULL;
    const struct meta_value value = {.found = true, .data = l->format.data, .size = l->format.size};
    l->count = 1; /* nothing is put */
    arena_reset(l->arena);
    return *found ? format_parse(&value, out, err) : rc;
}

int dump_format(FILE *from, struct volume_format *out, struct error *err)
{
    struct load *l = xcalloc(1, sizeof *l);
    char *text = NULL;
    size_t room = 0;
    ssize_t size;
    bool found = false;
    int rc = 0;
    l->arena = arena_new(4096);
    l->last_arena = arena_new(1024);
    for (bool first = true; rc == 0 && !found && (size = getline(&text, &room, from)) > 0;
         first = false)
        rc = line_format(l, text, (size_t)size, first, out, &found, err);
    free(text);
    arena_free(l->arena);
    arena_free(l->last_arena);
    free(l);
    return rc != 0 || found ? rc : error_set(err, E_CORRUPT, "the dump has no format of a volume");
}

static int see_any(void *context, const struct meta_row *row, struct error *err)
{
    (void)context;
    (void)row;
    return error_set(err, E_EXISTS,
                     "a volume, or a part of one, is here already: take another place");
}

int dump_load(struct meta *m, FILE *from, uint64_t next_slice, struct dump_tally *tally,
              struct error *err)
{
    const struct walk any = {.m = m, .visit = see_any};
    struct load *l = xcalloc(1, sizeof *l);
    l->m = m;
    l->next_slice = next_slice;
    l->arena = arena_new(65536);
    l->last_arena = arena_new(1024);
    l->count = 0;
    int rc = commit(l, err); /* nothing yet: the expectation of the next one */
    if (rc == 0)
        rc = walk_points(&any, META_FORMAT, err);
    if (rc == 0)
        rc = walk_points(&any, META_ATTR, err);
    if (rc == 0)
        rc = load_lines(l, from, err);
    if (rc == 0)
        rc = commit(l, err);
    if (rc == 0) {
        l->steps[l->count++] = l->format;
        rc = commit(l, err);
    }
    tally->keys = l->keys;
    arena_free(l->arena);
    arena_free(l->last_arena);
    free(l);
    return rc;
}
