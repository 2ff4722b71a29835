#include "target/cold/backlog.h"

#include <string.h>

#include "common/backoff.h"
#include "common/mem.h"
#include "target/store/name_table.h"

enum { SLOTS = 4096 };

struct lane;

struct backlog_name {
    struct name_entry entry;
    struct backlog_name *next_in_queue;
    struct lane *lane;
    bool runs, again;        /* again: noted while it ran */
    int64_t written_ms;      /* the first write that the backend does not have … */
    int64_t again_ms;        /* … and the first that came while it ran */
    uint64_t failed_ms;      /* first; 0: never */
    uint64_t rests_until_ms; /* put off */
    uint64_t memo;
    char text[];
};

struct queue {
    struct backlog_name *first, **last;
};

/* A bucket's.  There are as many as buckets have had names: they stay. */
struct lane {
    struct lane *next;
    uint64_t bucket_id;
    struct queue waiting, resting; /* resting: in the order in which they were put off */
    size_t running, count;
    bool overflows;
    unsigned failures; /* in a row */
    uint64_t rests_until_ms;
};

struct backlog {
    struct backlog_rules rules;
    size_t count;
    struct lane *lanes, *turn; /* whose turn it is; NULL: the first's */
    struct name_table names;
};

struct backlog *backlog_new(const struct backlog_rules *rules)
{
    struct backlog *b = xcalloc(1, sizeof *b);
    b->rules = *rules;
    name_table_init(&b->names, SLOTS);
    return b;
}

/* All names, in no order: the one behind n; NULL: the first. */
static struct backlog_name *next_name(const struct backlog *b, const struct backlog_name *n)
{
    return (struct backlog_name *)name_table_next(&b->names, n != NULL ? &n->entry : NULL);
}

void backlog_free(struct backlog *b)
{
    if (b == NULL)
        return;
    for (struct backlog_name *n = next_name(b, NULL), *next; n != NULL; n = next) {
        next = next_name(b, n);
        free(n);
    }
    name_table_done(&b->names);
    for (struct lane *l = b->lanes, *next; l != NULL; l = next) {
        next = l->next;
        free(l);
    }
    free(b);
}

/* --- finding ---------------------------------------------------------------------------------- */

static struct backlog_name *find(const struct backlog *b, uint64_t bucket_id, const char *name)
{
    return (struct backlog_name *)name_table_find(&b->names, bucket_id, name);
}

static struct lane *lane_of(struct backlog *b, uint64_t bucket_id)
{
    struct lane *l = b->lanes;
    while (l != NULL && l->bucket_id != bucket_id)
        l = l->next;
    if (l != NULL)
        return l;
    l = xcalloc(1, sizeof *l);
    *l = (struct lane){.next = b->lanes, .bucket_id = bucket_id};
    l->waiting.last = &l->waiting.first;
    l->resting.last = &l->resting.first;
    b->lanes = l;
    return l;
}

uint64_t backlog_bucket_id(const struct backlog_name *n)
{
    return n->lane->bucket_id;
}

const char *backlog_text(const struct backlog_name *n)
{
    return n->text;
}

uint64_t *backlog_memo(struct backlog_name *n)
{
    return &n->memo;
}

bool backlog_has_failed(const struct backlog_name *n)
{
    return n->failed_ms != 0;
}

/* --- a name's life ---------------------------------------------------------------------------- */

static void append(struct queue *q, struct backlog_name *n)
{
    n->next_in_queue = NULL;
    *q->last = n;
    q->last = &n->next_in_queue;
}

static struct backlog_name *take_first(struct queue *q)
{
    struct backlog_name *n = q->first;
    q->first = n->next_in_queue;
    if (q->first == NULL)
        q->last = &q->first;
    return n;
}

static struct backlog_name *run_first(struct lane *l)
{
    struct backlog_name *n = take_first(&l->waiting);
    l->running++;
    n->runs = true;
    return n;
}

static void note_again(struct backlog_name *n, int64_t written_ms)
{
    if (n->runs && !n->again)
        n->again_ms = written_ms;
    n->again = n->runs;
}

bool backlog_note(struct backlog *b, uint64_t bucket_id, const char *name, int64_t written_ms)
{
    struct backlog_name *n = find(b, bucket_id, name);
    if (n != NULL) {
        note_again(n, written_ms);
        return true;
    }
    struct lane *l = lane_of(b, bucket_id);
    if (l->count >= b->rules.most - b->count) {
        l->overflows = true;
        return false;
    }
    size_t len = strlen(name) + 1;
    n = xcalloc(1, sizeof *n + len);
    n->lane = l;
    n->written_ms = written_ms;
    memcpy(n->text, name, len);
    name_table_add(&b->names, &n->entry, bucket_id, n->text);
    b->count++;
    l->count++;
    append(&l->waiting, n);
    return true;
}

bool backlog_overflows(const struct backlog *b)
{
    const struct lane *l = b->lanes;
    while (l != NULL && !l->overflows)
        l = l->next;
    return l != NULL;
}

/* It was refused at half of what the others leave. */
static bool has_room(const struct backlog *b, const struct lane *l)
{
    size_t others = b->count - l->count, full = (b->rules.most - others + 1) / 2;
    return l->count < (full + 1) / 2;
}

bool backlog_has_room(const struct backlog *b)
{
    const struct lane *l = b->lanes;
    while (l != NULL && !(l->overflows && has_room(b, l)))
        l = l->next;
    return l != NULL;
}

void backlog_looks(struct backlog *b)
{
    for (struct lane *l = b->lanes; l != NULL; l = l->next)
        l->overflows = false;
}

/* *wait_ms is no more than until then; true: that is now. */
static bool has_come(uint64_t until_ms, uint64_t now_ms, uint64_t *wait_ms)
{
    if (now_ms >= until_ms)
        return true;
    if (until_ms - now_ms < *wait_ms)
        *wait_ms = until_ms - now_ms;
    return false;
}

/* May the lane's first run now?  Else *wait_ms is no more than until it may. */
static bool may_run(struct lane *l, uint64_t now_ms, uint64_t *wait_ms)
{
    while (l->resting.first != NULL && has_come(l->resting.first->rests_until_ms, now_ms, wait_ms))
        append(&l->waiting, take_first(&l->resting));
    if (l->waiting.first == NULL || (l->failures > 0 && l->running > 0))
        return false;
    return has_come(l->rests_until_ms, now_ms, wait_ms);
}

struct backlog_name *backlog_take(struct backlog *b, uint64_t now_ms, uint64_t *wait_ms)
{
    struct lane *start = b->turn != NULL ? b->turn : b->lanes, *l = start;
    *wait_ms = UINT64_MAX;
    while (l != NULL) {
        struct lane *next = l->next != NULL ? l->next : b->lanes;
        if (may_run(l, now_ms, wait_ms)) {
            b->turn = next;
            return run_first(l);
        }
        l = next != start ? next : NULL;
    }
    return NULL;
}

static void forget(struct backlog *b, struct backlog_name *n)
{
    name_table_remove(&b->names, &n->entry);
    b->count--;
    n->lane->count--;
    free(n);
}

static void stop_running(struct backlog_name *n)
{
    n->lane->running--;
    n->runs = false;
}

void backlog_over(struct backlog *b, struct backlog_name *n)
{
    stop_running(n);
    n->lane->failures = 0;
    n->lane->rests_until_ms = 0;
    if (!n->again) {
        forget(b, n);
        return;
    }
    n->again = false;
    n->written_ms = n->again_ms;
    n->failed_ms = 0;
    append(&n->lane->waiting, n);
}

static void stop_failed(struct backlog_name *n, uint64_t now_ms)
{
    stop_running(n);
    n->again = false;
    if (n->failed_ms == 0)
        n->failed_ms = now_ms > 0 ? now_ms : 1;
}

/* Those that ran side by side fail together: that counts once. */
void backlog_failed(struct backlog *b, struct backlog_name *n, uint64_t now_ms)
{
    struct lane *l = n->lane;
    stop_failed(n, now_ms);
    append(&l->waiting, n);
    if (now_ms < l->rests_until_ms)
        return;
    const struct backoff rule = {.first_ms = b->rules.pause_ms, .max_ms = b->rules.pause_max_ms};
    l->rests_until_ms = now_ms + backoff_ms(&rule, ++l->failures);
}

void backlog_put_off(struct backlog *b, struct backlog_name *n, uint64_t now_ms)
{
    stop_failed(n, now_ms);
    n->rests_until_ms = now_ms + b->rules.put_off_ms;
    append(&n->lane->resting, n);
}

/* --- what others ask -------------------------------------------------------------------------- */

bool backlog_runs(const struct backlog *b, uint64_t bucket_id, const char *name)
{
    const struct backlog_name *n = find(b, bucket_id, name);
    return n != NULL && n->runs;
}

bool backlog_any_runs(const struct backlog *b,
                      bool (*fn)(void *ctx, uint64_t bucket_id, const char *name), void *ctx)
{
    for (const struct backlog_name *n = NULL; (n = next_name(b, n)) != NULL;) {
        if (n->runs && fn(ctx, n->lane->bucket_id, n->text))
            return true;
    }
    return false;
}

size_t backlog_count(const struct backlog *b, uint64_t now_ms, uint64_t stuck_ms, size_t *stuck)
{
    *stuck = 0;
    for (const struct backlog_name *n = NULL; (n = next_name(b, n)) != NULL;)
        *stuck += n->failed_ms != 0 && now_ms - n->failed_ms >= stuck_ms;
    return b->count;
}

size_t backlog_late(const struct backlog *b, int64_t before_ms, int64_t *oldest_ms)
{
    size_t late = 0;
    *oldest_ms = INT64_MAX;
    for (const struct backlog_name *n = NULL; (n = next_name(b, n)) != NULL;) {
        late += n->written_ms < before_ms;
        if (n->written_ms < *oldest_ms)
            *oldest_ms = n->written_ms;
    }
    return late;
}
