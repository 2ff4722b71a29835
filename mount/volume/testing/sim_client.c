/* A client: chooses calls, makes them, and compares what they return. */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/mem.h"
#include "mount/volume/testing/sim.h"

/* Is its commit all that the call changes? */
static bool is_call(enum op_kind kind)
{
    return kind == OP_CREATE || kind == OP_LINK || kind == OP_UNLINK || kind == OP_RMDIR ||
           kind == OP_RENAME || kind == OP_CHMOD || kind == OP_TRUNCATE || kind == OP_SETXATTR ||
           kind == OP_REMOVEXATTR;
}

/* ---- turns ---- */

static struct client *next_client(struct world *w)
{
    struct client *ready[SIM_CLIENTS], *soonest = NULL;
    size_t count = 0;
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct client *c = &w->clients[i];
        if (c->done)
            continue;
        if (c->silent_until_ms <= w->now_ms)
            ready[count++] = c;
        if (soonest == NULL || c->silent_until_ms < soonest->silent_until_ms)
            soonest = c;
    }
    if (count > 0)
        return ready[rng_below(&w->rng, count)];
    if (soonest != NULL)
        w->now_ms = soonest->silent_until_ms;
    return soonest;
}

/* What the thread does from now on, a process that was killed would not have done. */
void sim_crash(struct client *c)
{
    c->crashed = true;
    c->w->crashes++;
    memcpy(&c->at_crash, &c->memory, sizeof c->memory);
    if (c->now != NULL && is_call(c->now->op.kind)) {
        c->again = c->now;
        c->again_id = c->call_id;
    }
}

void sim_yield(struct client *c)
{
    struct world *w = c->w;
    w->now_ms += (int64_t)rng_below(&w->rng, 150);
    if (!w->calm && rng_below(&w->rng, 3000) == 0) /* perhaps longer than a session */
        c->silent_until_ms = w->now_ms + (int64_t)rng_below(&w->rng, 2 * SIM_SESSION_MS);
    if (!w->calm && !c->crashed && rng_below(&w->rng, 10000) < w->crash) {
        sim_crash(c);
    }
    struct client *next = next_client(w);
    if (next != NULL && next != c) {
        sem_post(&next->turn);
        while (sem_wait(&c->turn) != 0)
            continue;
    }
}

static void leave(struct client *c)
{
    c->done = true;
    struct client *next = next_client(c->w);
    sem_post(next != NULL ? &next->turn : &c->w->end);
}

int64_t sim_clock_ns(void *client)
{
    const struct client *c = client;
    return c->w->now_ms * 1000000;
}

void sim_pause_ms(void *client, uint64_t ms)
{
    struct client *c = client;
    c->w->now_ms += (int64_t)ms / SIM_CLIENTS;
    sim_yield(c);
}

/* ---- choice ---- */

enum { NEVER_MADE = 1 << 30 }; /* no run makes so many inodes */

/* No client names a clone that is being built: the model has it whole from its first commit.  So a
 * number that no inode has yet may not be guessed.  One whose inode is gone is not given again. */
static bool may_guess(const struct model *m, uint64_t ino)
{
    const struct model_inode *i = model_find(m, ino);
    return m->had[ino] && (i == NULL || !i->building);
}

/* Mostly those that are there. */
static uint64_t any_inode(struct world *w)
{
    const struct model_inode *i;
    if (rng_below(&w->rng, 50) == 0) {
        const uint64_t ino = 1 + rng_below(&w->rng, MODEL_GUESSED - 1);
        return may_guess(&w->model, ino) ? ino : NEVER_MADE;
    }
    do
        i = &w->model.inodes[rng_below(&w->rng, w->model.count)];
    while (i->building);
    return i->ino;
}

static uint64_t any_of(struct world *w, uint32_t type)
{
    for (unsigned i = 0; i < 4; i++) {
        uint64_t ino = any_inode(w);
        const struct model_inode *m = model_find(&w->model, ino);
        if (m != NULL && (m->mode & S_IFMT) == type)
            return ino;
    }
    return type == S_IFDIR ? VOLUME_ROOT : any_inode(w);
}

/* NULL: none was found. */
static const struct model_inode *any_trashed(struct world *w)
{
    const struct model_inode *found = NULL;
    const size_t first = rng_below(&w->rng, w->model.count);
    for (size_t i = 0; i < w->model.count && found == NULL; i++) {
        const struct model_inode *m = &w->model.inodes[(first + i) % w->model.count];
        found = m->trashed ? m : NULL;
    }
    return found;
}

static const unsigned char weights[OPS] = {
    [OP_LOOKUP] = 6,       [OP_GETATTR] = 6,  [OP_READDIR] = 6, [OP_READLINK] = 1,
    [OP_READ] = 8,         [OP_GETXATTR] = 2, [OP_CREATE] = 16, [OP_LINK] = 8,
    [OP_UNLINK] = 12,      [OP_RMDIR] = 8,    [OP_RENAME] = 20, [OP_CHMOD] = 3,
    [OP_TRUNCATE] = 6,     [OP_WRITE] = 12,   [OP_APPEND] = 8,  [OP_SETXATTR] = 4,
    [OP_REMOVEXATTR] = 2,  [OP_OPEN] = 3,     [OP_CLOSE] = 3,   [OP_BEAT] = 1,
    [OP_CLEAN] = 2,        [OP_COMPACT] = 8,  [OP_CLONE] = 8,   [OP_RESTORE] = 8,
    [OP_UNLINK_MANY] = 6,  [OP_CLEAR] = 6,    [OP_SEEK] = 6,    [OP_QUOTA_SET] = 8,
    [OP_QUOTA_REMOVE] = 1,
};

static enum op_kind choose_kind(struct world *w)
{
    unsigned sum = 0, kind = 0;
    for (unsigned i = 0; i < OPS; i++)
        sum += weights[i];
    uint64_t at = rng_below(&w->rng, sum);
    while (at >= weights[kind])
        at -= weights[kind++];
    return (enum op_kind)kind;
}

static bool is_about_names(enum op_kind kind)
{
    return kind == OP_LOOKUP || kind == OP_READDIR || kind == OP_CREATE || kind == OP_UNLINK ||
           kind == OP_RMDIR || kind == OP_RENAME || kind == OP_UNLINK_MANY ||
           kind == OP_QUOTA_SET || kind == OP_QUOTA_REMOVE;
}

static bool is_about_bytes(enum op_kind kind)
{
    return kind == OP_READ || kind == OP_SEEK || kind == OP_CLEAR || kind == OP_TRUNCATE ||
           kind == OP_WRITE || kind == OP_APPEND || kind == OP_COMPACT || kind == OP_CLONE ||
           kind == OP_LINK || kind == OP_OPEN;
}

struct op sim_choose(struct client *c)
{
    struct world *w = c->w;
    static const unsigned renames[] = {0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
    static const unsigned xattrs[] = {0, XATTR_CREATE, XATTR_REPLACE};
    static const uint32_t types[] = {S_IFREG, S_IFREG, S_IFDIR, S_IFDIR, S_IFLNK};
    struct op op = {.kind = choose_kind(w)};
    if (w->now_ms - c->beat_ms > SIM_SESSION_MS / 5)
        op.kind = OP_BEAT;
    op.ino = is_about_names(op.kind)   ? any_of(w, S_IFDIR)
             : is_about_bytes(op.kind) ? any_of(w, S_IFREG)
                                       : any_inode(w);
    op.to = any_of(w, S_IFDIR);
    bool of_xattr = op.kind == OP_SETXATTR || op.kind == OP_REMOVEXATTR || op.kind == OP_GETXATTR;
    op.name = (unsigned)rng_below(&w->rng, of_xattr ? MODEL_XATTRS : MODEL_NAMES);
    op.to_name = (unsigned)rng_below(&w->rng, MODEL_NAMES);
    if (op.kind == OP_RENAME)
        op.flags = renames[rng_below(&w->rng, 4)];
    if (op.kind == OP_SEEK)
        op.flags = (unsigned)rng_below(&w->rng, 2);
    if (op.kind == OP_SETXATTR)
        op.flags = xattrs[rng_below(&w->rng, 3)];
    const struct model_inode *from = model_find(&w->model, op.ino);
    if (op.kind == OP_RESTORE && (from = any_trashed(w)) != NULL) {
        op.ino = from->ino;
        op.to = from->was_directory;
        op.name = from->was_name;
    }
    if (op.kind == OP_CLONE && from != NULL && S_ISDIR(from->mode))
        op.kind = OP_GETATTR;
    if (op.kind == OP_UNLINK_MANY)
        op.flags = (unsigned)rng_below(&w->rng, 1u << MODEL_NAMES);
    op.mode = (uint32_t)rng_below(&w->rng, 0777);
    if (op.kind == OP_CREATE)
        op.mode |= types[rng_below(&w->rng, 5)];
    op.at = (int64_t)rng_below(&w->rng, 4 * SIM_CHUNK);
    op.length = 1 + (uint32_t)rng_below(&w->rng, SIM_CHUNK * 3 / 2);
    op.value = 1 + rng_below(&w->rng, UINT32_MAX);
    if (op.kind == OP_QUOTA_SET) {
        op.at = (int64_t)rng_below(&w->rng, 6);
        op.value = rng_below(&w->rng, 6 * SIM_CHUNK);
    }
    return op;
}

/* ---- judgement ---- */

static bool is_same(const struct op_result *a, const struct op_result *b)
{
    return a->rc == b->rc && memcmp(a->v, b->v, sizeof a->v) == 0;
}

void sim_note(struct attempt *a, const struct op_result *r)
{
    if (a->may_count > 0 && is_same(&a->may[a->may_count - 1], r))
        return;
    if (a->may_count == a->may_room) {
        a->may_room = 2 * a->may_room + 4;
        a->may = xrealloc(a->may, a->may_room * sizeof *a->may);
    }
    a->may[a->may_count++] = *r;
}

static bool may_be(const struct attempt *a, const struct op_result *r)
{
    for (size_t i = 0; i < a->may_count; i++) {
        if (is_same(&a->may[i], r))
            return true;
    }
    return false;
}

/* Other clients gave it up: it starts anew, as after a crash. */
static bool is_given_up(struct client *c)
{
    struct arena *arena = arena_new(256);
    struct meta_item item = {.ask = META_GET};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    item.key = meta_key_point(META_SESSION, volume_session(c->v));
    bool over = c->w->real->ops->read(c->w->real, &r, NULL) == 0 && !item.value.found;
    arena_free(arena);
    if (over) {
        c->w->over++;
        sim_crash(c);
    }
    return over;
}

/* These look at their place, at what they move or copy, and at long files part by part. */
static bool is_of_several_moments(const struct attempt *a, const struct op_result *r)
{
    const bool is_one = a->op.kind == OP_CLONE || a->op.kind == OP_RESTORE;
    return is_one && (r->rc == -ENOENT || r->rc == -EEXIST || r->rc == -EBUSY || r->rc == -EDQUOT ||
                      r->rc == -EXDEV);
}

static void judge(struct client *c, struct attempt *a, const struct op_result *r)
{
    struct world *w = c->w;
    const char *name = op_name(a->op.kind);
    if (w->options.verbose)
        printf("%8lld client %u: %s ino %llu '%s' to %llu '%s' at %lld+%u: %d, %u commits\n",
               (long long)w->now_ms, c->number, name, (unsigned long long)a->op.ino,
               op_file_name(a->op.name), (unsigned long long)a->op.to, op_file_name(a->op.to_name),
               (long long)a->op.at, a->op.length, r->rc, a->commits);
    if (sim_failed(w))
        return;
    if (r->rc == -EIO) { /* may be made or not: but only after trouble */
        a->in_doubt = true;
        if (!c->troubled && !c->crashed && !is_given_up(c))
            sim_fail(w, "%s: EIO without trouble", name);
    } else if (a->commits > 0) {
        if (!is_same(r, &a->committed))
            sim_fail(w, "%s: returned %d (%llu), the model %d (%llu)", name, r->rc,
                     (unsigned long long)r->v[0], a->committed.rc,
                     (unsigned long long)a->committed.v[0]);
    } else if (is_of_several_moments(a, r)) {
        return;
    } else if (!may_be(a, r)) {
        sim_fail(w, "%s: returned %d (%llu), which it was at no moment: %d (%llu)", name, r->rc,
                 (unsigned long long)r->v[0], a->may[0].rc, (unsigned long long)a->may[0].v[0]);
    }
}

/* ---- calls ---- */

/* The kernel sends the call again: the process that has taken over must know what became of it. */
static void answer_again(struct client *c)
{
    struct attempt *a = c->again;
    c->again = NULL;
    if (a == NULL || volume_is_fenced(c->v))
        return;
    c->w->takeovers++;
    const bool made = volume_call_begin(c->v, c->again_id);
    volume_call_end();
    a->settled = true;
    if (made != (a->commits > 0) && !sim_failed(c->w))
        sim_fail(c->w, "%s: after a takeover it is %s, and has %u commits", op_name(a->op.kind),
                 made ? "made" : "not made", a->commits);
}

/* A kill of the process, or the end of the machine. */
static void start_anew(struct client *c)
{
    memcpy(&c->memory, &c->at_crash, sizeof c->memory);
    if (rng_below(&c->w->rng, 3) > 0)
        return;
    memset(&c->memory, 0, sizeof c->memory);
    c->again = NULL;
}

static int open_volume(struct client *c)
{
    struct error err = ERROR_INIT;
    const struct volume_env env = {
        .context = c,
        .clock_ns = sim_clock_ns,
        .pause_ms = sim_pause_ms,
        .seed = rng_next(&c->w->rng),
        .lanes = 1,
        .tries = 50,
        .memory = &c->memory,
    };
    int64_t before = c->w->now_ms;
    int rc = volume_open(&c->meta, &env, &c->v, &err);
    if (rc == 0) {
        c->beat_ms = before;
        answer_again(c);
    } else {
        c->v = NULL;
    }
    return rc;
}

/* As after a crash: nothing is left of it here. */
static void lose_volume(struct client *c)
{
    c->open_count = 0;
    struct volume *v = c->v;
    c->v = NULL;
    volume_close(v);
}

static void run_open(struct client *c, const struct op *op)
{
    struct attr a;
    if (c->open_count == SIM_OPEN || volume_openfile(c->v, op->ino, &a) != 0)
        return;
    c->open[c->open_count++] = op->ino;
}

static void run_close(struct client *c)
{
    if (c->open_count > 0)
        volume_closefile(c->v, c->open[--c->open_count]);
}

static void run_beat(struct client *c)
{
    int64_t before = c->w->now_ms;
    if (volume_beat(c->v) == 0)
        c->beat_ms = before;
    else if (!c->crashed && !is_given_up(c) && !c->troubled)
        sim_fail(c->w, "the heartbeat failed without trouble");
}

static struct attempt *begin(struct client *c, const struct op *op)
{
    struct attempt *a = xcalloc(1, sizeof *a);
    a->op = *op;
    a->running = true;
    a->next = c->w->attempts;
    c->w->attempts = a;
    c->now = a;
    c->troubled = false;
    if (op->kind < OP_CHANGES_END) {
        struct op_result r = model_do(&c->w->model, op, false, 0);
        sim_note(a, &r);
    }
    return a;
}

static void end(struct client *c, struct attempt *a)
{
    a->running = false;
    c->now = NULL;
    free(a->may);
    a->may = NULL;
}

static void run_clean(struct client *c)
{
    bool held, more;
    if (volume_lease(c->v, SIM_SESSION_MS / 4, &held) == 0 && held)
        volume_clean(c->v, &more);
}

static void run_other(struct client *c, const struct op *op)
{
    if (op->kind == OP_OPEN)
        run_open(c, op);
    else if (op->kind == OP_CLOSE)
        run_close(c);
    else if (op->kind == OP_BEAT)
        run_beat(c);
    else
        run_clean(c);
}

/* What a client reads that copies the range. */
static int read_digest(struct client *c, struct op *op, struct arena *arena)
{
    struct volume_extent *x;
    size_t count;
    int rc = volume_extents(c->v, op->ino, op->at, op->length, arena, &x, &count);
    op->value = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        for (uint64_t b = 0; b < x[i].length; b++)
            op->value = op_mix(
                op->value, x[i].entry != NULL ? x[i].entry->slice + 1000 * (x[i].offset + b) : 0);
    }
    return rc;
}

/* The first range of a plan.  A client that reads bytes for long meets changes of others; here it
 * waits between plan and commit. */
static struct op_result run_compact(struct client *c, struct attempt *a)
{
    struct arena *arena = arena_new(1024);
    struct volume_rewrite plan;
    const uint64_t number = (uint64_t)a->op.at / SIM_CHUNK;
    int rc = volume_plan(c->v, a->op.ino, number, 1, arena, &plan);
    if (rc == 0 && plan.count > 0) {
        a->op.at = (int64_t)(number * SIM_CHUNK) + plan.ranges[0].at;
        a->op.length = plan.ranges[0].length;
        rc = read_digest(c, &a->op, arena);
    }
    if (rc == 0 && plan.count > 0) {
        const struct volume_piece p = {
            .at = a->op.at,
            .length = a->op.length,
            .slice = a->op.slice,
            .size = a->op.length,
        };
        rc = volume_rewrite(c->v, &plan, &p, 1);
    }
    arena_free(arena);
    return (struct op_result){.rc = rc == -EIO ? rc : 0};
}

static bool needs_slice(enum op_kind kind)
{
    return kind == OP_WRITE || kind == OP_APPEND || kind == OP_COMPACT;
}

static void call(struct client *c)
{
    struct op op = sim_choose(c);
    if (needs_slice(op.kind) && volume_new_slice(c->v, &op.slice) != 0)
        return;
    struct attempt *a = begin(c, &op);
    if (op.kind >= OP_CHANGES_END) {
        run_other(c, &op);
    } else {
        c->call_id += 2;
        if (volume_call_begin(c->v, c->call_id))
            sim_fail(c->w, "a new call was made before");
        struct op_result r = op.kind == OP_COMPACT ? run_compact(c, a) : op_run(c->v, &op);
        judge(c, a, &r);
        volume_call_end();
    }
    end(c, a);
}

void *sim_client(void *client)
{
    struct client *c = client;
    while (sem_wait(&c->turn) != 0)
        continue;
    while (c->calls_left > 0 && !sim_failed(c->w)) {
        c->calls_left--;
        if (c->v == NULL) {
            if (c->crashed)
                start_anew(c);
            c->crashed = false;
            open_volume(c);
        } else {
            call(c);
        }
        if (c->crashed && c->v != NULL)
            lose_volume(c);
        sim_yield(c);
    }
    if (c->v != NULL)
        lose_volume(c);
    leave(c);
    return NULL;
}
