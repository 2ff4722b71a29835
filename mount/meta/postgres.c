#include "mount/meta/postgres.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "mount/meta/group.h"
#include "mount/meta/postgres_array.h"
#include "mount/meta/postgres_pool.h"

enum { STAMP = 8 };

struct postgres {
    struct meta meta;
    struct postgres_pool *pool;
    struct group *group;
    struct rng rng; /* of stamps; of the group's thread */
};

static struct postgres *postgres_of(struct meta *m)
{
    assert(m->ops == &meta_postgres_ops);
    return (struct postgres *)m;
}

/* ---- values ---- */

/* NULL is an absent key. */
static int take_value(struct arena *arena, const PGresult *from, int row, int column,
                      struct meta_value *out, struct error *err)
{
    uint64_t little;
    *out = (struct meta_value){0};
    if (PQgetisnull(from, row, column))
        return 0;
    const char *cell = PQgetvalue(from, row, column);
    const size_t stored = (size_t)PQgetlength(from, row, column);
    if (stored < STAMP)
        return error_set(err, E_CORRUPT, "a stored value has %zu bytes, at least %d are needed",
                         stored, STAMP);
    memcpy(&little, cell, sizeof little);
    uint8_t *copy = arena_bytes(arena, stored - STAMP + 1);
    memcpy(copy, cell + STAMP, stored - STAMP);
    *out = (struct meta_value){
        .found = true, .stamp = le64toh(little), .data = copy, .size = stored - STAMP};
    return 0;
}

static int take_row(struct arena *arena, const PGresult *from, int at, struct meta_row *row,
                    struct error *err)
{
    const size_t size = (size_t)PQgetlength(from, at, 0);
    uint8_t *key = arena_bytes(arena, size + 1);
    memcpy(key, PQgetvalue(from, at, 0), size);
    if (size > META_KEY_MAX || !meta_key_decode(key, size, &row->key))
        return error_set(err, E_CORRUPT, "a key of %zu bytes is no key of this release", size);
    int rc = take_value(arena, from, at, 1, &row->value, err);
    return rc != 0 || PQnfields(from) < 3 ? rc : take_value(arena, from, at, 2, &row->attr, err);
}

static int take_page(struct arena *arena, const PGresult *from, size_t limit,
                     struct meta_item *item, struct error *err)
{
    const size_t rows = (size_t)PQntuples(from);
    item->more = rows > limit;
    item->rows = arena_alloc(arena, (limit + 1) * sizeof *item->rows);
    for (item->count = 0; item->count < rows && item->count < limit; item->count++) {
        struct meta_row *row = &item->rows[item->count];
        *row = (struct meta_row){0};
        int rc = take_row(arena, from, (int)item->count, row, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int take_item(struct arena *arena, const PGresult *from, struct meta_item *item,
                     struct error *err)
{
    item->value = item->attr = (struct meta_value){0};
    if (PQntuples(from) == 0)
        return 0;
    int rc = take_value(arena, from, 0, 0, &item->value, err);
    return rc != 0 || item->ask == META_GET ? rc : take_value(arena, from, 0, 1, &item->attr, err);
}

/* ---- reads ---- */

/* The parameters of one question. */
struct question {
    uint8_t low[META_KEY_MAX], high[META_KEY_MAX];
    uint64_t limit; /* big-endian */
    size_t rows;    /* without the one that says whether there are more */
};

/* What is greater than all that begin with these bytes: no kind's letter is 0xff. */
static void to_next(uint8_t *bytes, size_t *size)
{
    while (bytes[*size - 1] == 0xff)
        (*size)--;
    bytes[*size - 1]++;
}

static void bound(struct question *q, size_t low, size_t high, const struct meta_item *item,
                  struct postgres_ask *ask)
{
    q->limit = htobe64(q->rows + 1);
    *ask = (struct postgres_ask){
        .statement = item->key.kind == META_ENTRY ? POSTGRES_LIST : POSTGRES_PAGE,
        .params = {{q->low, low}, {q->high, high}, {&q->limit, sizeof q->limit}},
        .count = 3,
    };
}

static void ask_page(struct question *q, const struct meta_item *item, struct postgres_ask *ask)
{
    size_t high = meta_kind_shape(item->key.kind) == META_POINT
                      ? meta_key_kind(item->key.kind, q->high)
                      : meta_key_children(item->key.kind, item->key.id, q->high);
    size_t low = high;
    memcpy(q->low, q->high, high);
    if (item->after)
        low = meta_key_encode(&item->key, q->low);
    q->rows = item->limit < META_POSTGRES_PAGE ? item->limit : META_POSTGRES_PAGE;
    to_next(q->high, &high);
    bound(q, low, high, item, ask);
}

/* There is no page behind it, so its limit is the caller's alone. */
static void ask_queue(struct question *q, const struct meta_item *item, uint64_t until,
                      struct postgres_ask *ask)
{
    size_t low = meta_key_kind(item->key.kind, q->low);
    size_t high = meta_key_children(item->key.kind, until, q->high);
    q->rows = item->limit;
    to_next(q->high, &high);
    bound(q, low, high, item, ask);
}

static void ask_item(struct question *q, const struct meta_item *item, struct postgres_ask *ask)
{
    if (item->ask == META_PAGE) {
        ask_page(q, item, ask);
        return;
    }
    *ask = (struct postgres_ask){
        .statement = item->ask == META_FOLLOW ? POSTGRES_FOLLOW : POSTGRES_GET,
        .params = {{q->low, meta_key_encode(&item->key, q->low)}},
        .count = 1,
    };
}

/* Several questions have one snapshot: asks[0] begins it, and the last one ends it. */
static int postgres_read(struct meta *meta, struct meta_read *r, struct error *err)
{
    const size_t around = r->count > 1 ? 1 : 0;
    const size_t count = r->count + 2 * around;
    struct question *questions = arena_alloc(r->arena, (r->count + 1) * sizeof *questions);
    struct postgres_ask *asks = arena_alloc(r->arena, (count + 1) * sizeof *asks);
    if (around > 0) {
        asks[0] = (struct postgres_ask){.text = POSTGRES_BEGIN_READ};
        asks[count - 1] = (struct postgres_ask){.text = "COMMIT"};
    }
    for (size_t i = 0; i < r->count; i++)
        ask_item(&questions[i], &r->items[i], &asks[around + i]);
    int rc = postgres_pool_run(postgres_of(meta)->pool, asks, count, true, err);
    for (size_t i = 0; i < r->count && rc == 0; i++) {
        struct meta_item *item = &r->items[i];
        const PGresult *from = asks[around + i].result;
        rc = item->ask == META_PAGE ? take_page(r->arena, from, questions[i].rows, item, err)
                                    : take_item(r->arena, from, item, err);
    }
    postgres_asks_done(asks, count);
    return rc;
}

static int postgres_queue(struct meta *meta, struct arena *arena, struct meta_item *item,
                          uint64_t until, struct error *err)
{
    struct question q;
    struct postgres_ask ask;
    assert(meta_kind_shape(item->key.kind) == META_QUEUE);
    ask_queue(&q, item, until, &ask);
    int rc = postgres_pool_run(postgres_of(meta)->pool, &ask, 1, true, err);
    if (rc == 0)
        rc = take_page(arena, ask.result, q.rows, item, err);
    postgres_asks_done(&ask, 1);
    return rc;
}

/* ---- all rows ---- */

struct snapshot {
    meta_visit *visit;
    void *context;
};

static int visit_page(const struct snapshot *s, const PGresult *from, struct arena *arena,
                      struct meta_row *last, struct error *err)
{
    int rc = 0;
    for (int i = 0; i < PQntuples(from) && rc == 0; i++) {
        *last = (struct meta_row){0};
        rc = take_row(arena, from, i, last, err);
        if (rc == 0)
            rc = s->visit(s->context, last, err);
    }
    return rc;
}

static int visit_kind(const struct snapshot *s, struct postgres_link *l, enum meta_kind kind,
                      struct error *err)
{
    _cleanup_arena_ struct arena *arena = arena_new(65536);
    const uint64_t limit = htobe64(META_POSTGRES_SNAPSHOT);
    uint8_t low[META_KEY_MAX], high[META_KEY_MAX];
    size_t low_size = meta_key_kind(kind, low), high_size = meta_key_kind(kind, high);
    int rc = 0, rows = META_POSTGRES_SNAPSHOT;
    to_next(high, &high_size);
    while (rc == 0 && rows == META_POSTGRES_SNAPSHOT) {
        struct meta_row last = {0};
        struct postgres_ask ask = {
            .statement = POSTGRES_PAGE,
            .params = {{low, low_size}, {high, high_size}, {&limit, sizeof limit}},
            .count = 3,
        };
        rc = postgres_link_run(l, &ask, 1, err);
        rows = rc == 0 ? PQntuples(ask.result) : 0;
        if (rc == 0)
            rc = visit_page(s, ask.result, arena, &last, err);
        if (rc == 0 && rows > 0)
            low_size = meta_key_encode(&last.key, low);
        postgres_asks_done(&ask, 1);
        arena_reset(arena);
    }
    return rc;
}

static int visit_all(void *snapshot, struct postgres_link *l, struct error *err)
{
    int rc = 0;
    for (unsigned kind = 0; kind < META_KINDS && rc == 0; kind++)
        rc = visit_kind(snapshot, l, (enum meta_kind)kind, err);
    return rc;
}

static int postgres_snapshot(struct meta *meta, meta_visit *visit, void *context, struct error *err)
{
    struct snapshot s = {visit, context};
    return postgres_pool_snapshot(postgres_of(meta)->pool, visit_all, &s, err);
}

static int postgres_now(struct meta *meta, int64_t *unix_ms, struct error *err)
{
    struct postgres_ask ask = {.statement = POSTGRES_NOW};
    int rc = postgres_pool_run(postgres_of(meta)->pool, &ask, 1, true, err);
    if (rc == 0)
        *unix_ms = postgres_number(ask.result, 0, 0);
    postgres_asks_done(&ask, 1);
    return rc;
}

/* ---- commits ---- */

static const char letters[] = {
    [META_EXPECT_ABSENT] = 'a',
    [META_EXPECT_PRESENT] = 'p',
    [META_EXPECT_STAMP] = 's',
    [META_EXPECT_EQUAL] = 'e',
    [META_EXPECT_AT_LEAST] = 'l',
    [META_PUT] = 'P',
    [META_DELETE] = 'D',
    [META_SET] = 'S',
    [META_ADD] = 'A',
    [META_RAISE] = 'R',
};

/* A commit's parameters; the bytes live in the arena. */
static struct postgres_param kept(struct arena *arena, struct buf *from)
{
    uint8_t *copy = arena_bytes(arena, from->len + 1);
    memcpy(copy, buf_str(from), from->len);
    struct postgres_param param = {copy, from->len};
    buf_clear(from);
    return param;
}

static struct postgres_param keys_of(struct arena *arena, struct buf *out,
                                     const struct meta_commit *c)
{
    uint8_t key[META_KEY_MAX];
    postgres_array_begin(out, POSTGRES_BYTEA, (uint32_t)c->count);
    for (size_t i = 0; i < c->count; i++)
        postgres_array_bytes(out, key, (uint32_t)meta_key_encode(&c->steps[i].key, key));
    return kept(arena, out);
}

static struct postgres_param data_of(struct arena *arena, struct buf *out,
                                     const struct meta_commit *c)
{
    postgres_array_begin(out, POSTGRES_BYTEA, (uint32_t)c->count);
    for (size_t i = 0; i < c->count; i++) {
        const struct meta_step *s = &c->steps[i];
        const uint64_t stamp = htole64(s->stamp);
        if (s->kind == META_EXPECT_STAMP)
            postgres_array_bytes(out, &stamp, sizeof stamp);
        else
            postgres_array_bytes(out, s->data, (uint32_t)s->size);
    }
    return kept(arena, out);
}

/* An offset that no value has is cut to one that an integer holds. */
static struct postgres_param offsets_of(struct arena *arena, struct buf *out,
                                        const struct meta_commit *c)
{
    const size_t most = 1 << 30;
    postgres_array_begin(out, POSTGRES_INT4, (uint32_t)c->count);
    for (size_t i = 0; i < c->count; i++) {
        const size_t offset = c->steps[i].offset;
        postgres_array_int4(out, (int32_t)(offset < most ? offset : most));
    }
    return kept(arena, out);
}

static struct postgres_param numbers_of(struct arena *arena, struct buf *out,
                                        const struct meta_commit *c)
{
    postgres_array_begin(out, POSTGRES_INT8, (uint32_t)c->count);
    for (size_t i = 0; i < c->count; i++)
        postgres_array_int8(out, c->steps[i].number);
    return kept(arena, out);
}

/* A stamp is a random number: a counter would give it twice after the server went back in time. */
static struct postgres_ask ask_commit(struct postgres *p, struct arena *arena,
                                      const struct meta_commit *c)
{
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    const uint64_t stamp = rng_next(&p->rng);
    struct postgres_ask ask = {.statement = POSTGRES_COMMIT, .count = 6};
    buf_append(&bytes, &stamp, sizeof stamp);
    ask.params[0] = kept(arena, &bytes);
    for (size_t i = 0; i < c->count; i++)
        buf_putc(&bytes, letters[c->steps[i].kind]);
    ask.params[1] = kept(arena, &bytes);
    ask.params[2] = keys_of(arena, &bytes, c);
    ask.params[3] = data_of(arena, &bytes, c);
    ask.params[4] = offsets_of(arena, &bytes, c);
    ask.params[5] = numbers_of(arena, &bytes, c);
    return ask;
}

static bool changes(const struct meta_commit *c)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->steps[i].kind >= META_PUT)
            return true;
    }
    return false;
}

static void judge(struct group_request *r, const PGresult *reply)
{
    const int64_t step = postgres_number(reply, 0, 0);
    struct meta_commit *c = r->commit;
    if (step < 0 || (size_t)step >= c->count)
        return;
    const struct meta_key *key = &c->steps[step].key;
    c->conflict = (size_t)step;
    r->rc = error_set(r->err, E_PRECONDITION, "step %zu on %s %llu: another client was first",
                      c->conflict, meta_kind_name(key->kind), (unsigned long long)key->id);
}

enum { AROUND = 3 }; /* BEGIN, the number, and at the end COMMIT */

static int judge_all(struct group_request *const *requests, size_t count,
                     const struct postgres_ask *asks, struct error *err)
{
    const char *end = PQcmdStatus(asks[count + AROUND - 1].result);
    if (strcmp(end, "COMMIT") != 0)
        return error_set(err, E_IO, "the PostgreSQL server ended a commit by %s", end);
    for (size_t i = 0; i < count; i++)
        judge(requests[i], asks[2 + i].result);
    return 0;
}

static int write_group(void *context, struct group_request *const *requests, size_t count,
                       struct error *err)
{
    struct postgres *p = context;
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    struct postgres_ask *asks = arena_alloc(arena, (count + AROUND) * sizeof *asks);
    bool any = false;
    asks[0] = (struct postgres_ask){.text = "BEGIN"};
    asks[1] = (struct postgres_ask){.statement = POSTGRES_NUMBER};
    for (size_t i = 0; i < count; i++) {
        asks[2 + i] = ask_commit(p, arena, requests[i]->commit);
        any |= changes(requests[i]->commit);
    }
    asks[count + AROUND - 1] = (struct postgres_ask){.text = "COMMIT"};
    int rc = postgres_pool_run(p->pool, asks, count + AROUND, !any, err);
    if (rc == 0)
        rc = judge_all(requests, count, asks, err);
    postgres_asks_done(asks, count + AROUND);
    return rc;
}

static const struct group_ops group_ops = {.most = META_POSTGRES_GROUP, .write = write_group};

static int postgres_commit(struct meta *meta, struct meta_commit *c, struct error *err)
{
    return group_commit(postgres_of(meta)->group, c, err);
}

/* ---- open and close ---- */

static void postgres_close(struct meta *meta)
{
    struct postgres *p = postgres_of(meta);
    group_end(p->group);
    postgres_pool_close(p->pool);
    free(p);
}

static int postgres_open(const char *where, bool make, struct meta **out, struct error *err)
{
    _cleanup_free_ char *url = xprintf("postgres://%s", where);
    struct postgres *p = xcalloc(1, sizeof *p);
    uint64_t seed;
    random_bytes(&seed, sizeof seed);
    rng_seed(&p->rng, seed);
    p->meta.ops = &meta_postgres_ops;
    int rc =
        postgres_pool_open(url, make, META_POSTGRES_LINKS, META_POSTGRES_CALL_MS, &p->pool, err);
    if (rc == 0)
        rc = group_start(&group_ops, p, &p->group, err);
    if (rc != 0) {
        postgres_close(&p->meta);
        return rc;
    }
    *out = &p->meta;
    return 0;
}

const struct meta_ops meta_postgres_ops = {
    .scheme = "postgres",
    .open = postgres_open,
    .close = postgres_close,
    .read = postgres_read,
    .commit = postgres_commit,
    .queue = postgres_queue,
    .snapshot = postgres_snapshot,
    .now = postgres_now,
};
