#include "mount/meta/redis.h"

#include <assert.h>
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "mount/meta/redis_cut.h"
#include "mount/meta/redis_pool.h"
#include "mount/meta/redis_slot.h"

enum { STAMP = 8 };

struct redis {
    struct meta meta;
    struct redis_pool *pool;
    pthread_mutex_t lock; /* of rng */
    struct rng rng;       /* of stamps */
};

static struct redis *redis_of(struct meta *m)
{
    assert(m->ops == &meta_redis_ops);
    return (struct redis *)m;
}

/* ---- words of a command ---- */

struct words {
    const char **text;
    size_t *sizes;
    size_t count;
};

/* They and what words_copy() keeps live in the arena. */
static struct words words_for(struct arena *arena, size_t count)
{
    return (struct words){
        .text = arena_alloc(arena, count * sizeof(char *)),
        .sizes = arena_alloc(arena, count * sizeof(size_t)),
    };
}

static void put(struct words *w, const void *data, size_t size)
{
    w->text[w->count] = size > 0 ? data : "";
    w->sizes[w->count++] = size;
}

static void put_text(struct words *w, const char *text)
{
    put(w, text, strlen(text));
}

static void put_number(struct words *w, struct arena *arena, uint64_t number)
{
    put_text(w, arena_printf(arena, "%llu", (unsigned long long)number));
}

static struct redis_request request_of(const struct words *w, bool again, bool counts)
{
    return (struct redis_request){
        .words = {w->text, w->sizes, w->count}, .again = again, .counts = counts};
}

static int bad_reply(const char *what, struct error *err)
{
    return error_set(err, E_CORRUPT, "reply of the Redis server to %s", what);
}

/* ---- values ---- */

/* nil is an absent key. */
static int take_value(struct arena *arena, const redisReply *reply, struct meta_value *out,
                      struct error *err)
{
    uint64_t little;
    *out = (struct meta_value){0};
    if (reply->type == REDIS_REPLY_NIL)
        return 0;
    if (reply->type != REDIS_REPLY_STRING || reply->len < STAMP)
        return error_set(err, E_CORRUPT, "a stored value is no string of at least %d bytes", STAMP);
    memcpy(&little, reply->str, sizeof little);
    const size_t size = (size_t)reply->len - STAMP;
    uint8_t *copy = arena_bytes(arena, size + 1);
    memcpy(copy, reply->str + STAMP, size);
    *out = (struct meta_value){.found = true, .stamp = le64toh(little), .data = copy, .size = size};
    return 0;
}

/* A page: 1 or 0, then rows of two or three. */
static int take_page(struct arena *arena, const redisReply *reply, const struct redis_range *range,
                     bool attrs, struct meta_item *item, struct error *err)
{
    const size_t width = attrs ? 3 : 2;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements % width != 1)
        return bad_reply("a page", err);
    const size_t count = reply->elements / width;
    item->more = reply->element[0]->integer == 1;
    item->rows = arena_alloc(arena, (count + 1) * sizeof *item->rows);
    for (item->count = 0; item->count < count; item->count++) {
        struct meta_row *row = &item->rows[item->count];
        redisReply *const *cell = reply->element + 1 + item->count * width;
        uint8_t *bytes = arena_bytes(arena, META_KEY_MAX);
        if (cell[0]->type != REDIS_REPLY_STRING ||
            !redis_range_key(range, cell[0]->str, (size_t)cell[0]->len, bytes, &row->key))
            return bad_reply("a page: its key is of no kind", err);
        int rc = take_value(arena, cell[1], &row->value, err);
        if (rc == 0 && attrs)
            rc = take_value(arena, cell[2], &row->attr, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- reads ---- */

static bool has_attrs(const struct meta_item *item)
{
    return item->key.kind == META_ENTRY;
}

/* A question's six words; the hash is among the keys. */
static void put_page(struct words *w, struct arena *arena, const struct meta_item *item,
                     const struct redis_range *range)
{
    size_t limit = item->limit;
    if (has_attrs(item) && limit > META_REDIS_PAGE)
        limit = META_REDIS_PAGE;
    put_text(w, has_attrs(item) ? "d" : "q");
    put(w, &range->shape, 1);
    put_text(w, "");
    put(w, range->low, range->low_size);
    put(w, range->high, range->high_size);
    put_number(w, arena, limit);
}

static void put_get(struct words *w, const struct meta_item *item, const struct redis_slot *slot)
{
    put_text(w, item->ask == META_FOLLOW ? "f" : "g");
    put(w, &slot->shape, 1);
    put(w, slot->field, slot->field_size);
    put_text(w, "");
    put_text(w, "");
    put_text(w, "0");
}

/* Where the items of a read are. */
struct places {
    struct redis_slot *slots;
    struct redis_range *ranges;
};

static struct words read_words(const struct redis *r, struct arena *arena,
                               const struct meta_item *items, size_t count, const struct places *at)
{
    struct words w = words_for(arena, 3 + count * (1 + REDIS_ASK_WORDS));
    put_text(&w, "EVALSHA");
    put_text(&w, redis_pool_sha(r->pool, REDIS_READ));
    put_number(&w, arena, count);
    for (size_t i = 0; i < count; i++) {
        if (items[i].ask == META_PAGE)
            put(&w, at->ranges[i].hash, at->ranges[i].hash_size);
        else
            put(&w, at->slots[i].hash, at->slots[i].hash_size);
    }
    for (size_t i = 0; i < count; i++) {
        if (items[i].ask == META_PAGE)
            put_page(&w, arena, &items[i], &at->ranges[i]);
        else
            put_get(&w, &items[i], &at->slots[i]);
    }
    return w;
}

static int take_item(struct arena *arena, const redisReply *reply, const struct redis_range *range,
                     struct meta_item *item, struct error *err)
{
    if (item->ask == META_PAGE)
        return take_page(arena, reply, range, has_attrs(item), item, err);
    if (item->ask == META_GET)
        return take_value(arena, reply, &item->value, err);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        return bad_reply("an entry", err);
    int rc = take_value(arena, reply->element[0], &item->value, err);
    return rc != 0 ? rc : take_value(arena, reply->element[1], &item->attr, err);
}

static int read_places(struct redis *r, struct meta_read *read, const struct places *at,
                       struct error *err)
{
    const struct words w = read_words(r, read->arena, read->items, read->count, at);
    const struct redis_request request = request_of(&w, true, false);
    redisReply *reply;
    int rc = redis_pool_call(r->pool, &request, &reply, err);
    if (rc != 0)
        return rc;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != read->count)
        rc = bad_reply("a read", err);
    for (size_t i = 0; i < read->count && rc == 0; i++)
        rc = take_item(read->arena, reply->element[i], &at->ranges[i], &read->items[i], err);
    freeReplyObject(reply);
    return rc;
}

/* One key needs no script. */
static int read_one(struct redis *r, struct arena *arena, struct meta_item *item, struct error *err)
{
    struct redis_slot slot;
    struct words w = words_for(arena, 3);
    redisReply *reply;
    redis_slot_of(&item->key, &slot);
    put_text(&w, "HGET");
    put(&w, slot.hash, slot.hash_size);
    put(&w, slot.field, slot.field_size);
    const struct redis_request request = request_of(&w, true, false);
    int rc = redis_pool_call(r->pool, &request, &reply, err);
    if (rc != 0)
        return rc;
    rc = take_value(arena, reply, &item->value, err);
    freeReplyObject(reply);
    return rc;
}

static int redis_read(struct meta *meta, struct meta_read *read, struct error *err)
{
    struct redis *r = redis_of(meta);
    if (read->count == 1 && read->items[0].ask == META_GET)
        return read_one(r, read->arena, &read->items[0], err);
    const struct places at = {
        .slots = arena_alloc(read->arena, (read->count + 1) * sizeof *at.slots),
        .ranges = arena_alloc(read->arena, (read->count + 1) * sizeof *at.ranges),
    };
    for (size_t i = 0; i < read->count; i++) {
        if (read->items[i].ask == META_PAGE)
            redis_range_of(&read->items[i], &at.ranges[i]);
        else
            redis_slot_of(&read->items[i].key, &at.slots[i]);
    }
    return read_places(r, read, &at, err);
}

static int redis_queue(struct meta *meta, struct arena *arena, struct meta_item *item,
                       uint64_t until, struct error *err)
{
    struct redis_range range;
    const struct places at = {.ranges = &range};
    struct meta_read read = {.arena = arena, .items = item, .count = 1};
    assert(meta_kind_shape(item->key.kind) == META_QUEUE);
    item->ask = META_PAGE;
    redis_range_until(item->key.kind, until, &range);
    return read_places(redis_of(meta), &read, &at, err);
}

/* ---- commits ---- */

static const struct {
    const char *word;
    enum { NOTHING, OF_STAMP, OF_DATA, OF_PART, OF_FIELD } operands;
} steps[] = {
    [META_EXPECT_ABSENT] = {"a", NOTHING},
    [META_EXPECT_PRESENT] = {"p", NOTHING},
    [META_EXPECT_STAMP] = {"s", OF_STAMP},
    [META_EXPECT_EQUAL] = {"e", OF_FIELD},
    [META_EXPECT_AT_LEAST] = {"l", OF_FIELD},
    [META_PUT] = {"P", OF_DATA},
    [META_DELETE] = {"D", NOTHING},
    [META_SET] = {"S", OF_PART},
    [META_ADD] = {"A", OF_FIELD},
    [META_RAISE] = {"R", OF_FIELD},
};

static const char *little_endian(struct arena *arena, uint64_t number)
{
    uint64_t little = htole64(number);
    char *bytes = arena_bytes(arena, sizeof little);
    memcpy(bytes, &little, sizeof little);
    return bytes;
}

/* Lua counts from one.  An offset that no value has is cut to one that a double holds. */
static void put_offset(struct words *w, struct arena *arena, size_t offset)
{
    const uint64_t most = 1ull << 40;
    put_number(w, arena, (offset < most ? offset : most) + STAMP + 1);
}

static void put_step(struct words *w, struct arena *arena, const struct meta_step *s,
                     const struct redis_slot *slot)
{
    put_text(w, steps[s->kind].word);
    put(w, &slot->shape, 1);
    put(w, slot->field, slot->field_size);
    switch (steps[s->kind].operands) {
    case NOTHING:
        put_text(w, "");
        put_text(w, "");
        return;
    case OF_STAMP:
        put(w, little_endian(arena, s->stamp), STAMP);
        put_text(w, "");
        return;
    case OF_DATA:
        put(w, s->data, s->size);
        put_text(w, "");
        return;
    case OF_PART:
        put_offset(w, arena, s->offset);
        put(w, s->data, s->size);
        return;
    case OF_FIELD:
        put_offset(w, arena, s->offset);
        put(w, little_endian(arena, (uint64_t)s->number), sizeof s->number);
        return;
    }
}

static struct words commit_words(struct redis *r, struct arena *arena, const struct meta_commit *c)
{
    struct redis_slot *slots = arena_alloc(arena, (c->count + 1) * sizeof *slots);
    struct words w = words_for(arena, 5 + c->count * (1 + REDIS_STEP_WORDS));
    put_text(&w, "EVALSHA");
    put_text(&w, redis_pool_sha(r->pool, REDIS_COMMIT));
    put_number(&w, arena, c->count + 1);
    for (size_t i = 0; i < c->count; i++) {
        redis_slot_of(&c->steps[i].key, &slots[i]);
        put(&w, slots[i].hash, slots[i].hash_size);
    }
    put_text(&w, REDIS_TAG "number");
    for (size_t i = 0; i < c->count; i++)
        put_step(&w, arena, &c->steps[i], &slots[i]);
    pthread_mutex_lock(&r->lock);
    uint64_t stamp = rng_next(&r->rng);
    pthread_mutex_unlock(&r->lock);
    put(&w, little_endian(arena, stamp), STAMP);
    return w;
}

static int judge_commit(const redisReply *reply, struct meta_commit *c, struct error *err)
{
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < -(long long)c->count)
        return bad_reply("a commit", err);
    if (reply->integer >= 0)
        return 0;
    c->conflict = (size_t)(-reply->integer - 1);
    const struct meta_key *key = &c->steps[c->conflict].key;
    return error_set(err, E_PRECONDITION, "step %zu on %s %llu: another client was first",
                     c->conflict, meta_kind_name(key->kind), (unsigned long long)key->id);
}

static int redis_commit(struct meta *meta, struct meta_commit *c, struct error *err)
{
    struct redis *r = redis_of(meta);
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    const struct words w = commit_words(r, arena, c);
    bool changes = false;
    for (size_t i = 0; i < c->count; i++)
        changes |= c->steps[i].kind >= META_PUT;
    const struct redis_request request = request_of(&w, !changes, true);
    redisReply *reply;
    int rc = redis_pool_call(r->pool, &request, &reply, err);
    if (rc != 0)
        return rc;
    rc = judge_commit(reply, c, err);
    freeReplyObject(reply);
    return rc;
}

/* ---- clock, snapshot, open, close ---- */

static int redis_snapshot(struct meta *meta, meta_visit *visit, void *context, struct error *err)
{
    struct redis *r = redis_of(meta);
    pthread_mutex_lock(&r->lock);
    const uint64_t id = rng_next(&r->rng);
    pthread_mutex_unlock(&r->lock);
    return redis_cut_read(r->pool, id, visit, context, err);
}

static int redis_now(struct meta *meta, int64_t *unix_ms, struct error *err)
{
    static const char *const word = "TIME";
    static const size_t size = 4;
    const struct redis_request request = {.words = {&word, &size, 1}, .again = true};
    redisReply *reply;
    int rc = redis_pool_call(redis_of(meta)->pool, &request, &reply, err);
    if (rc != 0)
        return rc;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        rc = bad_reply("TIME", err);
    else
        *unix_ms = strtoll(reply->element[0]->str, NULL, 10) * 1000 +
                   strtoll(reply->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(reply);
    return rc;
}

static void redis_close(struct meta *meta)
{
    struct redis *r = redis_of(meta);
    redis_pool_close(r->pool);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static int redis_open(const char *where, bool make, struct meta **out, struct error *err)
{
    struct redis_pool *pool;
    int rc = redis_pool_open(where, make, &pool, err);
    if (rc != 0)
        return rc;
    struct redis *r = xcalloc(1, sizeof *r);
    uint64_t seed;
    random_bytes(&seed, sizeof seed);
    rng_seed(&r->rng, seed);
    r->meta.ops = &meta_redis_ops;
    r->pool = pool;
    pthread_mutex_init(&r->lock, NULL);
    *out = &r->meta;
    return 0;
}

const struct meta_ops meta_redis_ops = {
    .scheme = "redis",
    .open = redis_open,
    .close = redis_close,
    .read = redis_read,
    .commit = redis_commit,
    .queue = redis_queue,
    .snapshot = redis_snapshot,
    .now = redis_now,
};
