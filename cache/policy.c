#include "cache/policy.h"

#include <stdlib.h>
#include <xxhash.h>

#include "cache/ghosts.h"
#include "common/mem.h"

#define SETS_SLOTS 1024
#define SLOTS_FIRST 1024
#define USES_MOST 3

/* Windows in a row in which names returned, so many that it is no new set that is adopted: of one
 * that fits, each name returns once. */
#define ROUNDS_ROW 6
#define ROUNDS_BEGIN 4 /* a window in a row: 1/4 of the missed bytes had left before */
#define ROUNDS_END 10  /* less than 1/10: the rounds are over */
#define ROUNDS_SEEN 4  /* names that are looked for, of each piece that is there */
#define ADMITTED 32    /* one of so many, then */

enum queue_kind { SMALL, MAIN, QUEUES };

struct set {
    uint64_t id;
    uint64_t used_ms;
    uint64_t holds; /* of its entries */
    struct entry *first;
    struct set *chain;
    struct set *older, *newer; /* by use */
};

struct entry {
    struct piece_id id;
    struct set *set;
    struct entry *chain;
    struct entry *older, *newer;    /* of its queue */
    struct entry *before, *another; /* of its set */
    uint64_t bytes;
    uint64_t proved_ms; /* 0: never */
    uint32_t holds;
    uint8_t queue;
    uint8_t uses;
};

struct queue {
    struct entry *oldest, *newest;
    uint64_t bytes, count;
};

/* What was missed since the window began.  A window ends when a quarter of the cache was missed. */
struct window {
    uint64_t number;
    uint64_t missed, returned; /* bytes; of names that had left before */
};

/* Holds of a name that is not there. */
struct held {
    struct held *next;
    struct piece_id id;
    uint32_t holds;
};

struct policy {
    struct policy_options options;
    struct queue queues[QUEUES];
    struct entry **slots;
    size_t slot_count, used;
    struct set *sets[SETS_SLOTS];
    struct set *idlest, *latest;
    struct ghosts ghosts;
    struct held *held;
    struct window window;
    unsigned row; /* windows with many returns, one after another */
    bool refuses;
};

/* ---- the table ---- */

static struct entry **slot_of(const struct policy *p, const struct piece_id *id)
{
    return &p->slots[piece_id_hash(id) & (p->slot_count - 1)];
}

static struct entry *find(const struct policy *p, const struct piece_id *id)
{
    struct entry *e = *slot_of(p, id);
    while (e != NULL && !piece_id_equal(&e->id, id))
        e = e->chain;
    return e;
}

static void table_add(struct policy *p, struct entry *e)
{
    struct entry **slot = slot_of(p, &e->id);
    e->chain = *slot;
    *slot = e;
}

static void table_grow(struct policy *p)
{
    struct entry **old = p->slots;
    size_t count = p->slot_count;
    p->slot_count = count == 0 ? SLOTS_FIRST : 2 * count;
    p->slots = xcalloc(p->slot_count, sizeof *p->slots);
    for (size_t i = 0; i < count; i++) {
        for (struct entry *e = old[i], *next; e != NULL; e = next) {
            next = e->chain;
            table_add(p, e);
        }
    }
    free(old);
}

static void table_remove(struct policy *p, struct entry *e)
{
    struct entry **at = slot_of(p, &e->id);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
}

/* ---- queues ---- */

static void queue_add(struct policy *p, enum queue_kind kind, struct entry *e)
{
    struct queue *q = &p->queues[kind];
    e->queue = (uint8_t)kind;
    e->newer = NULL;
    e->older = q->newest;
    *(q->newest != NULL ? &q->newest->newer : &q->oldest) = e;
    q->newest = e;
    q->bytes += e->bytes;
    q->count++;
}

static void queue_remove(struct policy *p, struct entry *e)
{
    struct queue *q = &p->queues[e->queue];
    *(e->newer != NULL ? &e->newer->older : &q->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &q->oldest) = e->newer;
    q->bytes -= e->bytes;
    q->count--;
}

/* ---- data sets ---- */

static void set_list(struct policy *p, struct set *s, uint64_t now_ms)
{
    s->used_ms = now_ms;
    s->newer = NULL;
    s->older = p->latest;
    *(p->latest != NULL ? &p->latest->newer : &p->idlest) = s;
    p->latest = s;
}

static void set_unlist(struct policy *p, struct set *s)
{
    *(s->newer != NULL ? &s->newer->older : &p->latest) = s->older;
    *(s->older != NULL ? &s->older->newer : &p->idlest) = s->newer;
}

static void set_use(struct policy *p, struct set *s, uint64_t now_ms)
{
    set_unlist(p, s);
    set_list(p, s, now_ms);
}

static struct set *set_take(struct policy *p, uint64_t id, uint64_t now_ms)
{
    struct set **slot = &p->sets[id % SETS_SLOTS];
    for (struct set *s = *slot; s != NULL; s = s->chain) {
        if (s->id == id) {
            set_use(p, s, now_ms);
            return s;
        }
    }
    struct set *s = xcalloc(1, sizeof *s);
    s->id = id;
    s->chain = *slot;
    *slot = s;
    set_list(p, s, now_ms);
    return s;
}

static void set_free(struct policy *p, struct set *s)
{
    struct set **at = &p->sets[s->id % SETS_SLOTS];
    while (*at != s)
        at = &(*at)->chain;
    *at = s->chain;
    set_unlist(p, s);
    free(s);
}

static void set_add(struct set *s, struct entry *e)
{
    e->set = s;
    s->holds += e->holds;
    e->before = NULL;
    e->another = s->first;
    if (s->first != NULL)
        s->first->before = e;
    s->first = e;
}

static void set_remove(struct policy *p, struct entry *e)
{
    struct set *s = e->set;
    *(e->before != NULL ? &e->before->another : &s->first) = e->another;
    if (e->another != NULL)
        e->another->before = e->before;
    e->set = NULL;
    s->holds -= e->holds;
    if (s->first == NULL)
        set_free(p, s);
}

/* ---- holds of what is not there ---- */

static struct held **held_find(struct policy *p, const struct piece_id *id)
{
    struct held **at = &p->held;
    while (*at != NULL && !piece_id_equal(&(*at)->id, id))
        at = &(*at)->next;
    return at;
}

static void held_change(struct policy *p, const struct piece_id *id, int64_t by)
{
    struct held **at = held_find(p, id);
    if (*at == NULL && by > 0) {
        *at = xcalloc(1, sizeof **at);
        (*at)->id = *id;
    }
    struct held *h = *at;
    if (h == NULL || h->holds + by < 0)
        return;
    h->holds = (uint32_t)(h->holds + by);
    if (h->holds == 0) {
        *at = h->next;
        free(h);
    }
}

/* They become the entry's. */
static uint32_t held_take(struct policy *p, const struct piece_id *id)
{
    const struct held *h = *held_find(p, id);
    const uint32_t holds = h != NULL ? h->holds : 0;
    held_change(p, id, -(int64_t)holds);
    return holds;
}

/* ---- entries ---- */

static struct entry *entry_new(struct policy *p, const struct piece_id *id, size_t bytes)
{
    if (p->used == p->slot_count)
        table_grow(p);
    struct entry *e = xcalloc(1, sizeof *e);
    e->id = *id;
    e->bytes = bytes;
    e->holds = held_take(p, id);
    table_add(p, e);
    p->used++;
    return e;
}

static void entry_free(struct policy *p, struct entry *e)
{
    if (e->holds > 0)
        held_change(p, &e->id, e->holds);
    queue_remove(p, e);
    set_remove(p, e);
    table_remove(p, e);
    p->used--;
    free(e);
}

/* In the place of one of this name, of which nothing is remembered. */
static struct entry *entry_anew(struct policy *p, const struct piece_id *id, size_t bytes)
{
    struct entry *e = find(p, id);
    if (e != NULL)
        entry_free(p, e);
    ghosts_remove(&p->ghosts, piece_id_hash(id));
    return entry_new(p, id, bytes);
}

static uint64_t ghosts_most(const struct policy *p)
{
    return ROUNDS_SEEN * policy_count(p);
}

static void evict_entry(struct policy *p, struct entry *e, struct policy_piece *out)
{
    ghosts_add(&p->ghosts, piece_id_hash(&e->id), ghosts_most(p));
    *out = (struct policy_piece){.id = e->id, .set = e->set->id, .bytes = e->bytes};
    entry_free(p, e);
}

/* ---- rounds larger than the cache ---- */

static void window_end(struct policy *p)
{
    const struct window w = p->window;
    p->window = (struct window){.number = w.number + 1};
    p->row = w.returned >= w.missed / ROUNDS_BEGIN ? p->row + 1 : 0;
    if (p->row >= ROUNDS_ROW)
        p->refuses = true;
    else if (w.returned < w.missed / ROUNDS_END)
        p->refuses = false;
}

static void window_note(struct policy *p, const struct piece_id *id, size_t bytes)
{
    p->window.missed += bytes;
    if (ghosts_age(&p->ghosts, piece_id_hash(id), ghosts_most(p)) != GHOSTS_UNKNOWN)
        p->window.returned += bytes;
    if (p->window.missed >= p->options.limit_bytes / 4)
        window_end(p);
}

/* One of ADMITTED, by chance; of a piece that comes in parts, all of them or none. */
static bool is_chosen(const struct policy *p, const struct piece_id *id)
{
    uint64_t seed = p->options.seed + p->window.number;
    return XXH3_64bits_withSeed(id, sizeof *id, seed) % ADMITTED == 0;
}

/* ---- what is asked ---- */

bool policy_has(const struct policy *p, const struct piece_id *id)
{
    return find(p, id) != NULL;
}

bool policy_hit(struct policy *p, const struct piece_id *id, uint64_t now_ms)
{
    struct entry *e = find(p, id);
    if (e == NULL)
        return false;
    if (e->uses < USES_MOST)
        e->uses++;
    set_use(p, e->set, now_ms);
    return true;
}

bool policy_admits(struct policy *p, const struct piece_id *id, size_t bytes)
{
    bool full = policy_bytes(p) + bytes > p->options.limit_bytes;
    window_note(p, id, bytes);
    return !p->refuses || !full || is_chosen(p, id);
}

void policy_add(struct policy *p, const struct piece_id *id, uint64_t set, size_t bytes,
                uint64_t now_ms)
{
    const uint64_t age = ghosts_age(&p->ghosts, piece_id_hash(id), policy_count(p));
    struct entry *e = entry_anew(p, id, bytes);
    set_add(set_take(p, set, now_ms), e);
    queue_add(p, age != GHOSTS_UNKNOWN ? MAIN : SMALL, e);
}

void policy_join(struct policy *p, const struct piece_id *id, uint64_t set, size_t bytes,
                 uint64_t now_ms)
{
    struct entry *e = entry_anew(p, id, bytes);
    set_add(set_take(p, set, now_ms), e);
    queue_add(p, MAIN, e);
}

void policy_hold(struct policy *p, const struct piece_id *id, int by)
{
    struct entry *e = find(p, id);
    if (e == NULL) {
        held_change(p, id, by);
        return;
    }
    if (by < 0 && e->holds < (uint32_t)-by)
        return; /* held while it was elsewhere */
    e->holds += (uint32_t)by;
    e->set->holds += (uint64_t)by;
}

void policy_prove(struct policy *p, const struct piece_id *id, uint64_t now_ms)
{
    struct entry *e = find(p, id);
    if (e != NULL)
        e->proved_ms = now_ms + 1;
}

void policy_doubt(struct policy *p, const struct piece_id *id)
{
    struct entry *e = find(p, id);
    if (e != NULL)
        e->proved_ms = 0;
}

bool policy_is_proved(const struct policy *p, const struct piece_id *id, uint64_t now_ms)
{
    const struct entry *e = find(p, id);
    return e != NULL && e->proved_ms != 0 && now_ms < e->proved_ms + p->options.proof_ms;
}

bool policy_remove(struct policy *p, const struct piece_id *id)
{
    struct entry *e = find(p, id);
    if (e == NULL)
        return false;
    entry_free(p, e);
    return true;
}

/* The oldest of the small queue leaves, unless it was read twice or is held.  False: it moved. */
static bool evict_small(struct policy *p, struct policy_piece *out)
{
    struct entry *e = p->queues[SMALL].oldest;
    if (e->uses <= 1 && e->holds == 0) {
        evict_entry(p, e, out);
        return true;
    }
    queue_remove(p, e);
    e->uses = 0;
    queue_add(p, MAIN, e);
    return false;
}

static bool evict_main(struct policy *p, struct policy_piece *out)
{
    struct entry *e = p->queues[MAIN].oldest;
    if (e->uses == 0 && e->holds == 0) {
        evict_entry(p, e, out);
        return true;
    }
    queue_remove(p, e);
    if (e->uses > 0)
        e->uses--;
    queue_add(p, MAIN, e);
    return false;
}

static bool evict_idle(struct policy *p, uint64_t now_ms, struct policy_piece *out)
{
    while (p->idlest != NULL && now_ms - p->idlest->used_ms >= p->options.idle_ms) {
        if (p->idlest->holds == 0) {
            evict_entry(p, p->idlest->first, out);
            return true;
        }
        set_use(p, p->idlest, now_ms); /* somebody has it open */
    }
    return false;
}

bool policy_evict(struct policy *p, uint64_t now_ms, struct policy_piece *out)
{
    if (evict_idle(p, now_ms, out))
        return true;
    /* Each piece that moves has one use less; what is held moves as often. */
    for (uint64_t left = policy_count(p) * (USES_MOST + 2); left > 0; left--) {
        bool small = p->queues[SMALL].bytes > p->options.limit_bytes / 10;
        if (small || p->queues[MAIN].count == 0 ? evict_small(p, out) : evict_main(p, out))
            return true;
    }
    return false;
}

uint64_t policy_limit(const struct policy *p)
{
    return p->options.limit_bytes;
}

uint64_t policy_bytes(const struct policy *p)
{
    return p->queues[SMALL].bytes + p->queues[MAIN].bytes;
}

uint64_t policy_count(const struct policy *p)
{
    return p->queues[SMALL].count + p->queues[MAIN].count;
}

bool policy_refuses(const struct policy *p)
{
    return p->refuses;
}

/* ---- its life ---- */

struct policy *policy_new(const struct policy_options *options)
{
    struct policy *p = xcalloc(1, sizeof *p);
    p->options = *options;
    table_grow(p);
    ghosts_init(&p->ghosts);
    return p;
}

void policy_free(struct policy *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < QUEUES; i++) {
        while (p->queues[i].oldest != NULL)
            entry_free(p, p->queues[i].oldest);
    }
    while (p->held != NULL)
        held_take(p, &p->held->id);
    ghosts_done(&p->ghosts);
    free(p->slots);
    free(p);
}
