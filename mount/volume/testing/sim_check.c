/* At the end: all calls of the model give the same on the volume, and every key of the engine is
 * accounted for. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "mount/meta/memory.h"
#include "mount/volume/check/check.h"
#include "mount/volume/counters.h"
#include "mount/volume/testing/sim.h"
#include "mount/volume/trash.h"

struct named {
    uint64_t slice;
    uint32_t size;
    int64_t entries, shared; /* shared: of its SHARED key; 0: none */
};

struct ledger {
    struct world *w;
    uint64_t session; /* of who looks */
    struct arena *arena;
    struct named *named;
    size_t named_count, named_room;
    int64_t attrs, entries, xattrs;
    int64_t use[2];
};

static struct named *named_of(struct ledger *l, uint64_t slice)
{
    for (size_t i = 0; i < l->named_count; i++) {
        if (l->named[i].slice == slice)
            return &l->named[i];
    }
    if (l->named_count == l->named_room) {
        l->named_room = 2 * l->named_room + 64;
        l->named = xrealloc(l->named, l->named_room * sizeof *l->named);
    }
    l->named[l->named_count] = (struct named){.slice = slice};
    return &l->named[l->named_count++];
}

static void count_chunk(struct ledger *l, const struct meta_value *value)
{
    struct slice_list list;
    struct error err = ERROR_INIT;
    if (slices_decode(value->data, value->size, SIM_CHUNK, l->arena, &list, &err) != 0)
        sim_fail(l->w, "%s", err.message);
    for (size_t i = 0; i < list.count && !sim_failed(l->w); i++) {
        if (list.entries[i].slice == 0)
            continue;
        struct named *n = named_of(l, list.entries[i].slice);
        n->entries++;
        n->size = list.entries[i].size;
    }
}

/* Keys that only a living session, or work that is left, may have. */
static void count_other(struct ledger *l, const struct meta_key *key,
                        const struct meta_value *value)
{
    switch (key->kind) {
    case META_USE:
        l->use[0] = meta_field(value, USE_INODES);
        l->use[1] = meta_field(value, USE_BYTES);
        return;
    case META_SHARED:
        named_of(l, key->id)->shared = meta_field(value, 0);
        return;
    case META_FORMAT:
    case META_NEXT:
    case META_LEASE:
    case META_QUOTA: /* its counters are compared as tools do */
        return;
    case META_SESSION:
    case META_LANE:
    case META_RANGE:
        if (key->id == l->session)
            return;
        break;
    default:
        break;
    }
    sim_fail(l->w, "the key %s %llu %llu is left over", meta_kind_name(key->kind),
             (unsigned long long)key->id, (unsigned long long)key->sub);
}

static void count_key(void *context, const struct meta_key *key, const struct meta_value *value)
{
    struct ledger *l = context;
    switch (key->kind) {
    case META_ATTR:
        l->attrs++;
        if (key->id == TRASH_INO)
            return;
        break;
    case META_ENTRY:
        l->entries++;
        break;
    case META_XATTR:
        l->xattrs++;
        break;
    case META_CHUNK:
        count_chunk(l, value);
        break;
    case META_SYMLINK:
        break;
    default:
        count_other(l, key, value);
        return;
    }
    if (model_find(&l->w->model, key->id) == NULL)
        sim_fail(l->w, "the key %s of inode %llu is left over", meta_kind_name(key->kind),
                 (unsigned long long)key->id);
}

/* ---- slices ---- */

static bool is_garbage(const struct world *w, uint64_t slice)
{
    for (size_t i = 0; i < w->garbage_count; i++) {
        if (w->garbage[i] == slice)
            return true;
    }
    return false;
}

static bool is_named(const struct ledger *l, uint64_t slice)
{
    for (size_t i = 0; i < l->named_count; i++) {
        if (l->named[i].slice == slice)
            return true;
    }
    return false;
}

static void check_slices(struct ledger *l)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < l->named_count; i++) {
        const struct named *n = &l->named[i];
        bytes += n->size;
        if (n->entries != (n->shared != 0 ? n->shared : 1))
            sim_fail(l->w, "slice %llu has %lld entries, and counts %lld",
                     (unsigned long long)n->slice, (long long)n->entries, (long long)n->shared);
        if (is_garbage(l->w, n->slice))
            sim_fail(l->w, "slice %llu was deleted, and is named", (unsigned long long)n->slice);
    }
    if (bytes != l->use[1])
        sim_fail(l->w, "slices have %lld bytes, %lld are counted", (long long)bytes,
                 (long long)l->use[1]);
    for (const struct attempt *a = l->w->attempts; a != NULL; a = a->next) {
        bool wrote = a->commits > 0 && (a->op.kind == OP_WRITE || a->op.kind == OP_APPEND ||
                                        a->op.kind == OP_COMPACT);
        if (wrote && !is_named(l, a->op.slice) && !is_garbage(l->w, a->op.slice))
            sim_fail(l->w, "slice %llu is kept for ever", (unsigned long long)a->op.slice);
    }
}

static void check_keys(struct world *w, uint64_t session)
{
    struct ledger l = {.w = w, .session = session, .arena = arena_new(65536)};
    int64_t entries = 0, xattrs = 0;
    meta_memory_walk(w->real, count_key, &l);
    for (size_t i = 0; i < w->model.count; i++) {
        entries += model_entries(&w->model.inodes[i]);
        for (unsigned x = 0; x < MODEL_XATTRS; x++)
            xattrs += w->model.inodes[i].xattr[x] != 0;
    }
    struct meta_item trash = {.key = meta_key_point(META_ATTR, TRASH_INO)};
    struct meta_read r = {.arena = l.arena, .items = &trash, .count = 1};
    int64_t trashes = w->real->ops->read(w->real, &r, NULL) == 0 && trash.value.found;
    if (l.attrs != (int64_t)w->model.count + trashes || l.entries != entries || l.xattrs != xattrs)
        sim_fail(w, "%lld inodes, %lld entries, %lld xattrs; the model has %zu, %lld, %lld",
                 (long long)l.attrs, (long long)l.entries, (long long)l.xattrs, w->model.count,
                 (long long)entries, (long long)xattrs);
    if (l.use[0] != l.attrs)
        sim_fail(w, "%lld inodes, %lld are counted", (long long)l.attrs, (long long)l.use[0]);
    check_slices(&l);
    free(l.named);
    arena_free(l.arena);
}

/* ---- the same answers ---- */

static void compare(struct world *w, struct volume *v, const struct op *op)
{
    const struct op_result model = model_do(&w->model, op, false, 0);
    const struct op_result volume = op_run(v, op);
    if (model.rc != volume.rc || memcmp(model.v, volume.v, sizeof model.v) != 0)
        sim_fail(w, "at the end, %s of inode %llu '%s': %d (%llu), the model %d (%llu)",
                 op_name(op->kind), (unsigned long long)op->ino, op_file_name(op->name), volume.rc,
                 (unsigned long long)volume.v[0], model.rc, (unsigned long long)model.v[0]);
}

static void compare_all(struct world *w, struct volume *v)
{
    for (size_t i = 0; i < w->model.count; i++) {
        struct op op = {.ino = w->model.inodes[i].ino};
        for (op.kind = 0; op.kind < OP_READS_END; op.kind++) {
            unsigned names = op.kind == OP_GETXATTR ? MODEL_XATTRS : MODEL_NAMES;
            for (op.name = 0; op.name < names; op.name++)
                compare(w, v, &op);
        }
    }
}

/* ---- the end ---- */

/* What was removed, clones that clients have left, and the hours that had them. */
static void clean_trash(struct world *w, struct client *c)
{
    model_empty_trash(&w->model);
    w->now_ms += 3 * TRASH_DAY_MS;
    c->beat_ms = w->now_ms;
    if (volume_beat(c->v) != 0)
        sim_fail(w, "the heartbeat of the last client failed");
    else if (volume_trash_clean(c->v, NULL, 0) != 0)
        sim_fail(w, "the trash cannot be cleaned");
}

static void clean(struct world *w, struct client *c)
{
    struct arena *arena = arena_new(4096);
    for (unsigned i = 0; i < 8 && !sim_failed(w); i++) {
        struct volume_garbage *gone;
        size_t count;
        bool more = true;
        w->now_ms += SIM_GRACE_MS / 2;
        for (unsigned k = 0; k < 6; k++) { /* it was silent itself: it is patient with others */
            w->now_ms += SIM_SESSION_MS / 4;
            c->beat_ms = w->now_ms;
            if (volume_beat(c->v) != 0)
                sim_fail(w, "the heartbeat of the last client failed");
        }
        while (more && !sim_failed(w)) {
            if (volume_clean(c->v, &more) != 0)
                sim_fail(w, "cleaning failed");
        }
        struct volume_chunk *messy;
        if (volume_messy(c->v, arena, 1000, &messy, &count) != 0)
            sim_fail(w, "the queue of messy chunks cannot be read");
        for (size_t k = 0; k < count && !sim_failed(w); k++) {
            if (volume_messy_done(c->v, &messy[k], false) != 0)
                sim_fail(w, "a messy chunk cannot be taken out of its queue");
        }
        do {
            if (volume_garbage(c->v, arena, 10, &gone, &count) != 0 ||
                volume_forget(c->v, gone, count) != 0)
                sim_fail(w, "garbage cannot be collected");
        } while (count > 0 && !sim_failed(w));
    }
    arena_free(arena);
}

/* As `fs fsck` sees it. */
static void check_as_tools_do(struct world *w, const struct volume *v)
{
    struct check c;
    struct error err = ERROR_INIT;
    if (check_run(&c, w->real, volume_format(v), &err) != 0)
        sim_fail(w, "%s", err.message);
    for (size_t i = 0; i < c.count; i++) {
        _cleanup_free_ char *text = check_text(&c.findings[i]);
        sim_fail(w, "a check finds %s", text);
    }
    check_done(&c);
}

void sim_check(struct world *w)
{
    struct client last = {.meta.ops = &sim_engine_ops, .w = w, .number = SIM_CLIENTS};
    struct error err = ERROR_INIT;
    const struct volume_env env = {
        .context = &last,
        .clock_ns = sim_clock_ns,
        .pause_ms = sim_pause_ms,
        .lanes = 2,
        .tries = 50,
    };
    w->calm = true;
    sim_flush_delayed(w);
    if (volume_open(&last.meta, &env, &last.v, &err) != 0) {
        sim_fail(w, "%s", err.message);
        return;
    }
    clean_trash(w, &last);
    if (!sim_failed(w))
        clean(w, &last);
    if (!sim_failed(w))
        compare_all(w, last.v);
    if (!sim_failed(w))
        check_keys(w, volume_session(last.v));
    if (!sim_failed(w))
        check_as_tools_do(w, last.v);
    volume_close(last.v);
}
