#include "target/ring/ring.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/disk/space.h"
#include "target/node/target.h"

enum { SEGMENTS_OF_SHARE = 16, SEGMENT_LEAST = 4096 };

struct ring *ring_new(struct target *t, uint64_t bucket_id)
{
    struct ring *r = xcalloc(1, sizeof *r);
    r->target = t;
    r->bucket_id = bucket_id;
    r->producers = producers_new();
    r->keeper = ring_keeper_new();
    pthread_mutex_init(&r->step, NULL);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->keep, NULL);
    return r;
}

void ring_free(struct ring *r)
{
    for (size_t i = 0; i < r->lanes_count; i++)
        lane_unref(r->lanes[i]);
    free(r->lanes);
    mountpath_set_unref(r->set);
    producers_free(r->producers);
    ring_keeper_free(r->keeper);
    pthread_mutex_destroy(&r->keep);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->step);
    free(r);
}

/* --- lanes; with the lock --------------------------------------------------------------------- */

static struct lane *find_lane(const struct ring *r, const char *name)
{
    for (size_t i = 0; i < r->lanes_count; i++) {
        if (strcmp(lane_name(r->lanes[i]), name) == 0)
            return r->lanes[i];
    }
    return NULL;
}

static void add_lane(struct ring *r, struct lane *l)
{
    r->lanes = xrealloc(r->lanes, (r->lanes_count + 1) * sizeof(struct lane *));
    r->lanes[r->lanes_count++] = l;
}

static bool is_among(const struct mountpath_set *set, size_t count, const struct mountpath *mp)
{
    for (size_t i = 0; i < count; i++) {
        if (set->all[i] == mp)
            return true;
    }
    return false;
}

static bool has_open(const struct mountpath_set *set, const struct mountpath *mp)
{
    return set != NULL && is_among(set, set->count, mp);
}

struct opening {
    struct ring *ring;
    struct lane_place place;
};

static void see(void *ctx, const char *lane, const struct frame *f)
{
    producers_see(ctx, f->producer, f->sequence, lane, f->ordinal);
}

static int open_lane(void *ctx, const char *dir, struct error *err)
{
    struct opening *o = ctx;
    struct lane *l;
    char name[RING_LANE_MAX];
    snprintf(name, sizeof name, "%s.%s", o->place.target_id, dir);
    if (find_lane(o->ring, name) != NULL)
        return 0;
    int code = lane_open(&o->place, dir, see, o->ring->producers, &l, err);
    if (code == 0)
        add_lane(o->ring, l);
    return code;
}

/* Nothing is appended to those of a mountpath that is leaving: it waits until they are empty. */
static void drop_lanes(struct ring *r, const struct mountpath_set *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->lanes_count; i++) {
        struct lane *l = r->lanes[i];
        if (has_open(set, lane_mountpath(l))) {
            if (!is_among(set, set->placed, lane_mountpath(l)))
                lane_close(l); /* before a push may hold the new set */
            lane_keep_set(l, set);
            r->lanes[kept++] = l;
        } else {
            lane_close(l);
            lane_unref(l);
        }
    }
    r->lanes_count = kept;
}

/* Lanes of the mountpaths that are open by now, and of no others. */
static int load(struct ring *r, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(r->target->mountpaths);
    int code = 0;
    if (r->removed)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed");
    if (set == r->set)
        return 0;
    drop_lanes(r, set);
    for (size_t i = 0; i < set->count && code == 0; i++) {
        struct opening o = {.ring = r,
                            .place = {.target_id = r->target->id,
                                      .set = set,
                                      .mp = set->all[i],
                                      .bucket_id = r->bucket_id}};
        if (!has_open(r->set, set->all[i]))
            code = lanes_each(set->all[i], r->bucket_id, open_lane, &o, err);
    }
    if (code != 0)
        return code; /* those that are open stay; the next caller goes on */
    mountpath_set_unref(r->set);
    r->set = mountpath_set_ref(set);
    return 0;
}

/* With those of pushes under way. */
static uint64_t held_bytes(const struct ring *r)
{
    uint64_t bytes = r->reserved;
    for (size_t i = 0; i < r->lanes_count; i++)
        bytes += lane_bytes(r->lanes[i]);
    return bytes;
}

static int count_bytes(struct ring *r, uint64_t *bytes, struct error *err)
{
    int code = load(r, err);
    *bytes = held_bytes(r);
    return code;
}

/* --- a push ----------------------------------------------------------------------------------- */

static uint64_t share_of(const struct cluster_state *s, const struct bucket *b)
{
    const size_t targets = smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE);
    return b->props.ring_bytes_max / (targets > 0 ? targets : 1);
}

static int check_room(struct ring *r, uint64_t share, const struct bucket *b, uint64_t len,
                      bool drops, struct error *err)
{
    uint64_t bytes;
    int code = count_bytes(r, &bytes, err);
    if (code != 0)
        return code;
    if (len > share)
        return error_set(err, E_TOO_LARGE,
                         "a push of %llu bytes is more than the %llu that this target may hold of "
                         "ring '%s': raise bytes_max",
                         (unsigned long long)len, (unsigned long long)share, b->name);
    r->share = share;
    if (bytes + len > share && drops && len > r->pressed)
        r->pressed = len;
    if (bytes + len > share)
        return error_set(
            err, E_RING_FULL,
            "target '%s' holds %llu bytes of ring '%s', of %llu (bytes_max / targets): "
            "try again when a generation was dropped, or raise bytes_max",
            r->target->id, (unsigned long long)bytes, b->name, (unsigned long long)share);
    return 0;
}

/* True: the answer is there.  An error: the same push is being written. */
static bool is_repeated(const struct ring *r, const struct lane_push *push, struct push_done *done,
                        int *code, struct error *err)
{
    *code = 0;
    if (producers_find(r->producers, push->producer, push->sequence, done))
        return true;
    for (const struct pushing *p = r->pushing; p != NULL && push->producer != 0; p = p->next) {
        if (p->producer == push->producer && p->sequence == push->sequence)
            *code = error_set(err, E_NOT_READY, "this push is being written; ask again");
    }
    return *code != 0;
}

static struct lane *open_lane_on(const struct ring *r, const struct mountpath *mp)
{
    for (size_t i = 0; i < r->lanes_count; i++) {
        if (lane_mountpath(r->lanes[i]) == mp && !lane_is_closed(r->lanes[i]))
            return r->lanes[i];
    }
    return NULL;
}

/* The mountpath whose turn it is, or the next one that has room. */
static int take_turn(struct ring *r, uint64_t len, struct mountpath **out, struct error *err)
{
    int code =
        error_set(err, E_NO_TARGETS, "target '%s' has no mountpath for samples", r->target->id);
    for (size_t i = 0; i < r->set->placed && code != 0; i++) {
        struct space space;
        *out = r->set->all[r->turn++ % r->set->placed];
        code = mountpath_capacity(*out, &space.total, &space.available, err);
        if (code == 0)
            code = space_admit(&r->target->space, (*out)->path, &space, len, err);
    }
    return code;
}

/* A reference to its open lane. */
static int take_lane(struct ring *r, uint64_t len, struct lane **out, struct error *err)
{
    struct mountpath *mp = NULL;
    struct lane *l;
    int code = take_turn(r, len, &mp, err);
    if (code != 0)
        return code;
    l = open_lane_on(r, mp);
    if (l == NULL) {
        const struct lane_place place = {
            .target_id = r->target->id, .set = r->set, .mp = mp, .bucket_id = r->bucket_id};
        code = lane_make(&place, &l, err);
        if (code != 0)
            return code;
        add_lane(r, l);
    }
    *out = lane_ref(l);
    return 0;
}

static void begin_push(struct ring *r, struct pushing *p, uint64_t len)
{
    p->next = r->pushing;
    r->pushing = p;
    r->reserved += len;
}

static void end_push(struct ring *r, struct pushing *p, uint64_t len)
{
    struct pushing **at = &r->pushing;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    r->reserved -= len;
}

static int append(struct ring *r, struct lane_push *push, struct push_done *done, struct error *err)
{
    int code;
    do {
        _cleanup_(lane_unrefp)
        struct lane *l = NULL;
        pthread_mutex_lock(&r->lock);
        code = load(r, err);
        if (code == 0)
            code = take_lane(r, push->len, &l, err);
        pthread_mutex_unlock(&r->lock);
        if (code != 0)
            return code;
        snprintf(done->lane, sizeof done->lane, "%s", lane_name(l));
        code = lane_append(l, push, &done->first, err);
    } while (code == E_CANCELLED); /* it was closed meanwhile: another one is made */
    done->count = push->count;
    return code;
}

/* All lanes' last segments hold a part of the share: what they have of older generations must not
 * fill it.  With the lock. */
static uint64_t segment_of(const struct ring *r, uint64_t share)
{
    const uint64_t lanes = r->set != NULL && r->set->placed > 0 ? r->set->placed : 1;
    uint64_t segment = share / SEGMENTS_OF_SHARE / lanes;
    if (segment > r->target->params.ring_segment)
        segment = r->target->params.ring_segment;
    return segment > SEGMENT_LEAST ? segment : SEGMENT_LEAST;
}

int ring_push(struct ring *r, const struct cluster_state *s, const struct bucket *b,
              struct lane_push *push, struct push_done *done, struct error *err)
{
    struct pushing p = {.producer = push->producer, .sequence = push->sequence};
    const uint64_t share = share_of(s, b);
    pthread_mutex_lock(&r->lock);
    int code = load(r, err); /* what a log says of producers, too */
    push->segment_bytes = segment_of(r, share);
    bool is_over = code != 0 || is_repeated(r, push, done, &code, err);
    if (!is_over)
        is_over = (code = check_room(r, share, b, push->len, push->drops, err)) != 0;
    if (!is_over)
        begin_push(r, &p, push->len);
    pthread_mutex_unlock(&r->lock);
    if (is_over)
        return code;
    code = append(r, push, done, err);
    pthread_mutex_lock(&r->lock);
    end_push(r, &p, push->len);
    if (code == 0)
        producers_note(r->producers, push->producer, push->sequence, done);
    pthread_mutex_unlock(&r->lock);
    return code;
}

/* --- reading ---------------------------------------------------------------------------------- */

int ring_find(struct ring *r, const char *name, uint64_t ordinal, uint64_t count,
              struct lane_range *out, struct lane **lane, struct error *err)
{
    pthread_mutex_lock(&r->lock);
    int code = load(r, err);
    struct lane *l = code == 0 ? find_lane(r, name) : NULL;
    if (l != NULL)
        lane_ref(l);
    char node[RING_LANE_MAX];
    const bool is_own = ring_lane_node(name, node) && strcmp(node, r->target->id) == 0;
    const bool is_whole = code == 0 && mountpath_set_missing(r->set) == 0;
    pthread_mutex_unlock(&r->lock);
    if (code != 0)
        return code;
    if (l == NULL && is_own && !is_whole)
        return error_set(err, E_MOUNTPATH_DISABLED,
                         "lane '%s' may be on a mountpath of target '%s' that is disabled", name,
                         r->target->id);
    if (l == NULL)
        return error_set(err, E_GENERATION_GONE,
                         "target '%s' has no lane '%s': read the head again", r->target->id, name);
    code = lane_find(l, ordinal, count, out, err);
    if (code == 0)
        *lane = l;
    else
        lane_unref(l);
    return code;
}

/* --- for the keeper --------------------------------------------------------------------------- */

/* Bytes for which samples are to be dropped, by lanes' files that stay.  With the lock. */
static uint64_t lacking(const struct ring *r)
{
    uint64_t bytes = r->reserved + r->pressed;
    for (size_t i = 0; i < r->lanes_count; i++)
        bytes += lane_bytes_staying(r->lanes[i]);
    return r->pressed > 0 && bytes > r->share ? bytes - r->share : 0;
}

/* Asks for the oldest file of one more lane: one of an earlier run, else the largest.  The bytes of
 * the file; 0: no lane has such a file. */
static uint64_t ask_for_file(const struct ring *r, struct ring_report *reports)
{
    uint64_t most = 0, best_to = 0, best_bytes = 0;
    size_t best = 0;
    for (size_t i = 0; i < r->lanes_count; i++) {
        uint64_t bytes, to;
        const uint64_t weight = reports[i].closed ? UINT64_MAX : lane_bytes_staying(r->lanes[i]);
        if (reports[i].drop_to > 0 || weight <= most ||
            (to = lane_drop_to(r->lanes[i], &bytes)) == 0)
            continue;
        most = weight;
        best = i;
        best_to = to;
        best_bytes = bytes;
    }
    if (best_to > 0)
        reports[best].drop_to = best_to;
    return best_bytes;
}

/* Asks for as many files as are lacking, but for at most one of each lane: the next report goes
 * on.  With the lock. */
static void ask_for_room(struct ring *r, struct ring_report *reports)
{
    uint64_t lack = lacking(r), bytes;
    bool any = lack == 0; /* what is leaving is enough */
    while (lack > 0 && (bytes = ask_for_file(r, reports)) > 0) {
        lack -= bytes < lack ? bytes : lack;
        any = true;
    }
    r->pressed = any ? r->pressed : 0;
}

int ring_reports(struct ring *r, struct ring_report **out, size_t *count, struct error *err)
{
    pthread_mutex_lock(&r->lock);
    int code = load(r, err);
    if (code == 0) {
        *count = r->lanes_count;
        *out = xcalloc(r->lanes_count + 1, sizeof **out);
        for (size_t i = 0; i < r->lanes_count; i++)
            lane_report(r->lanes[i], &(*out)[i]);
        ask_for_room(r, *out);
    }
    pthread_mutex_unlock(&r->lock);
    return code;
}

static void forget(struct ring *r, const char *name)
{
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < r->lanes_count; i++) {
        if (strcmp(lane_name(r->lanes[i]), name) != 0)
            continue;
        if (lane_remove(r->lanes[i], &err) != 0) {
            log_warn("the directory of a lane cannot be removed", lstr("lane", name), lerr(&err));
            return;
        }
        lane_unref(r->lanes[i]);
        r->lanes[i] = r->lanes[--r->lanes_count];
        return;
    }
}

void ring_apply(struct ring *r, const struct ring_report *reports,
                const struct ring_answer *answers, size_t count)
{
    const uint64_t now_ms = clock_ms(), grace_ms = r->target->params.ring_grace;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < count; i++) {
        struct lane *l = find_lane(r, reports[i].lane);
        if (l != NULL && answers[i].forget) {
            forget(r, reports[i].lane);
        } else if (l != NULL) {
            lane_release(l, answers[i].release, now_ms, grace_ms);
            lane_drop(l, answers[i].sealed, answers[i].taken);
        }
    }
    if (held_bytes(r) + r->pressed <= r->share)
        r->pressed = 0;
    pthread_mutex_unlock(&r->lock);
}

bool ring_is_pressed(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    const bool is_pressed = r->pressed > 0;
    pthread_mutex_unlock(&r->lock);
    return is_pressed;
}

bool ring_has_room(struct ring *r, uint64_t bytes)
{
    if (pthread_mutex_trylock(&r->lock) != 0)
        return false;
    const bool has_room = r->removed || held_bytes(r) + bytes <= r->share;
    pthread_mutex_unlock(&r->lock);
    return has_room;
}

uint64_t ring_bytes(struct ring *r)
{
    uint64_t bytes;
    pthread_mutex_lock(&r->lock);
    (void)count_bytes(r, &bytes, NULL);
    pthread_mutex_unlock(&r->lock);
    return bytes;
}

uint64_t ring_bytes_seen(struct ring *r)
{
    if (pthread_mutex_trylock(&r->lock) == 0) {
        atomic_store(&r->seen_bytes, held_bytes(r));
        pthread_mutex_unlock(&r->lock);
    }
    return atomic_load(&r->seen_bytes);
}

int ring_remove(struct ring *r, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(r->target->mountpaths);
    int code = 0;
    pthread_mutex_lock(&r->lock);
    r->removed = true;
    drop_lanes(r, NULL);
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&r->keep);
    r->is_elsewhere = true;
    ring_keeper_unload(r->keeper);
    pthread_mutex_unlock(&r->keep);
    for (size_t i = 0; i < set->count && code == 0; i++) {
        _cleanup_free_ char *dir = lanes_dir(set->all[i], r->bucket_id);
        code = mountpath_failed(set->all[i], file_remove_tree(dir, err));
    }
    return code;
}
