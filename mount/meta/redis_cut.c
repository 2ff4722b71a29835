#include "mount/meta/redis_cut.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "mount/meta/redis_slot.h"

#define CUT REDIS_TAG "cut"
#define NUMBER REDIS_TAG "number"

enum { STAMP = 8, HEAD = sizeof REDIS_TAG, WORDS = 256, HASHES = 64, FIELDS = 500 };

struct cut {
    struct redis_pool *pool;
    meta_visit *visit;
    void *context;
    char id[24];
    const char *text[WORDS];
    size_t sizes[WORDS], count;
};

/* ---- calls ---- */

static void put(struct cut *c, const char *text, size_t size)
{
    assert(c->count < WORDS);
    c->text[c->count] = text;
    c->sizes[c->count++] = size;
}

static void put_text(struct cut *c, const char *text)
{
    put(c, text, strlen(text));
}

static int call(struct cut *c, bool again, redisReply **out, struct error *err)
{
    const struct redis_request request = {.words = {c->text, c->sizes, c->count}, .again = again};
    int rc = redis_pool_call(c->pool, &request, out, err);
    c->count = 0;
    return rc;
}

static int lost(struct error *err)
{
    return error_set(err, E_NOT_READY,
                     "the volume is changed faster than it can be read, or a reply came too late: "
                     "try again when less is written");
}

static int say_script(struct cut *c, enum redis_script script, bool again, long long *out,
                      struct error *err)
{
    redisReply *reply;
    char seconds[8];
    snprintf(seconds, sizeof seconds, "%d", REDIS_CUT_SECONDS);
    put_text(c, "EVALSHA");
    put_text(c, redis_pool_sha(c->pool, script));
    put_text(c, "2");
    put_text(c, CUT);
    put_text(c, NUMBER);
    put_text(c, c->id);
    put_text(c, seconds);
    int rc = call(c, again, &reply, err);
    if (rc != 0)
        return rc;
    *out = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
    freeReplyObject(reply);
    return 0;
}

static int begin(struct cut *c, struct error *err)
{
    long long begun;
    int rc = say_script(c, REDIS_CUT_BEGIN, true, &begun, err);
    if (rc == 0 && begun != 1)
        rc = error_set(err, E_NOT_READY,
                       "another dump of the volume is under way: try again in %d s",
                       REDIS_CUT_SECONDS);
    return rc;
}

static int end(struct cut *c, struct error *err)
{
    long long state;
    int rc = say_script(c, REDIS_CUT_END, false, &state, err);
    if (rc != 0)
        return error_recode(err, E_NOT_READY, "end of the snapshot");
    if (state == 2)
        return error_set(err, E_NOT_READY,
                         "a client of an earlier release changes the volume: update it, or unmount "
                         "there");
    return state == 1 ? 0 : lost(err);
}

/* ---- rows ---- */

/* Of a hash: "" of the cut itself, whose fields are whole keys. */
static int visit_row(const struct cut *c, const char *hash, size_t hash_size,
                     const redisReply *field, const redisReply *stored, struct error *err)
{
    uint8_t bytes[META_KEY_MAX];
    uint64_t little;
    struct meta_row row = {0};
    if (field->type != REDIS_REPLY_STRING || stored->type != REDIS_REPLY_STRING ||
        stored->len < STAMP || hash_size + field->len > META_KEY_MAX)
        return error_set(err, E_CORRUPT, "a row of the Redis server is none");
    memcpy(bytes, hash, hash_size);
    memcpy(bytes + hash_size, field->str, field->len);
    if (!meta_key_decode(bytes, hash_size + field->len, &row.key))
        return error_set(err, E_CORRUPT, "a key of %zu bytes is no key of this release",
                         hash_size + field->len);
    memcpy(&little, stored->str, sizeof little);
    row.value = (struct meta_value){
        .found = true,
        .stamp = le64toh(little),
        .data = (const uint8_t *)stored->str + STAMP,
        .size = stored->len - STAMP,
    };
    return c->visit(c->context, &row, err);
}

static bool is_word(const redisReply *field)
{
    return field->len > 0 && field->str[0] >= 'a' && field->str[0] <= 'z'; /* id, made, number */
}

/* The rows of one hash's page. */
static int visit_page(const struct cut *c, const redisReply *hash, const redisReply *page,
                      struct error *err)
{
    const bool is_cut = strcmp(hash->str, CUT) == 0;
    const size_t head = is_cut ? hash->len : HEAD;
    int rc = 0;
    for (size_t i = 1; i + 1 < page->elements && rc == 0; i += 2) {
        if (!is_cut || !is_word(page->element[i]))
            rc = visit_row(c, hash->str + head, hash->len - head, page->element[i],
                           page->element[i + 1], err);
    }
    return rc;
}

static int ask_pages(struct cut *c, redisReply *const *hashes, size_t count, const char *cursor,
                     redisReply **out, struct error *err)
{
    char number[24], seconds[8], fields[8];
    snprintf(number, sizeof number, "%zu", count);
    snprintf(seconds, sizeof seconds, "%d", REDIS_CUT_SECONDS);
    snprintf(fields, sizeof fields, "%d", FIELDS);
    put_text(c, "EVALSHA");
    put_text(c, redis_pool_sha(c->pool, REDIS_CUT_PAGE));
    put_text(c, number);
    for (size_t i = 0; i < count; i++)
        put(c, hashes[i]->str, hashes[i]->len);
    put_text(c, c->id);
    put_text(c, seconds);
    put_text(c, cursor);
    put_text(c, fields);
    int rc = call(c, true, out, err);
    if (rc != 0)
        return rc;
    if ((*out)->type == REDIS_REPLY_ARRAY && (*out)->elements == count)
        return 0;
    freeReplyObject(*out);
    return lost(err);
}

/* A hash that is too large for one page. */
static int visit_rest(struct cut *c, redisReply *hash, const char *cursor, struct error *err)
{
    _cleanup_free_ char *at = xstrdup(cursor);
    int rc = 0;
    while (rc == 0 && strcmp(at, "0") != 0) {
        redisReply *reply;
        rc = ask_pages(c, &hash, 1, at, &reply, err);
        if (rc != 0)
            return rc;
        rc = visit_page(c, hash, reply->element[0], err);
        free(at);
        at = xstrdup(reply->element[0]->element[0]->str);
        freeReplyObject(reply);
    }
    return rc;
}

static int visit_hashes(struct cut *c, redisReply *const *hashes, size_t count, struct error *err)
{
    redisReply *reply;
    int rc = ask_pages(c, hashes, count, "0", &reply, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const redisReply *page = reply->element[i];
        rc = visit_page(c, hashes[i], page, err);
        if (rc == 0)
            rc = visit_rest(c, hashes[i], page->element[0]->str, err);
    }
    freeReplyObject(reply);
    return rc;
}

/* ---- the database ---- */

static int visit_scanned(struct cut *c, const redisReply *scanned, struct error *err)
{
    const redisReply *hashes = scanned->element[1];
    int rc = 0;
    for (size_t i = 0; i < hashes->elements && rc == 0; i += HASHES) {
        const size_t left = hashes->elements - i;
        rc = visit_hashes(c, hashes->element + i, left < HASHES ? left : HASHES, err);
    }
    return rc;
}

static int visit_all(struct cut *c, struct error *err)
{
    _cleanup_free_ char *cursor = xstrdup("0");
    int rc;
    do {
        redisReply *reply;
        put_text(c, "SCAN");
        put_text(c, cursor);
        put_text(c, "MATCH");
        put_text(c, REDIS_TAG "h*");
        put_text(c, "COUNT");
        put_text(c, "500");
        rc = call(c, true, &reply, err);
        if (rc != 0)
            return rc;
        rc = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2
                 ? visit_scanned(c, reply, err)
                 : error_set(err, E_CORRUPT, "reply of the Redis server to SCAN");
        if (rc == 0) {
            free(cursor);
            cursor = xstrdup(reply->element[0]->str);
        }
        freeReplyObject(reply);
    } while (rc == 0 && strcmp(cursor, "0") != 0);
    return rc;
}

static int visit_named(struct cut *c, char *name, size_t size, struct error *err)
{
    redisReply hash = {.type = REDIS_REPLY_STRING, .str = name, .len = size};
    redisReply *one = &hash;
    return visit_hashes(c, &one, 1, err);
}

static int visit_format(struct cut *c, struct error *err)
{
    const struct meta_key key = meta_key_point(META_FORMAT, 0);
    struct redis_slot slot;
    redis_slot_of(&key, &slot);
    return visit_named(c, slot.hash, slot.hash_size, err);
}

/* What was deleted before SCAN came to it; and once more what changed after. */
static int visit_kept(struct cut *c, struct error *err)
{
    char name[] = CUT;
    return visit_named(c, name, strlen(name), err);
}

int redis_cut_read(struct redis_pool *pool, uint64_t id, meta_visit *visit, void *context,
                   struct error *err)
{
    struct error unused = ERROR_INIT;
    struct cut *c = xcalloc(1, sizeof *c);
    c->pool = pool;
    c->visit = visit;
    c->context = context;
    snprintf(c->id, sizeof c->id, "%llu", (unsigned long long)id);
    int rc = begin(c, err);
    if (rc == 0) {
        rc = visit_format(c, err);
        if (rc == 0)
            rc = visit_all(c, err);
        if (rc == 0)
            rc = visit_kept(c, err);
        int ended = end(c, rc == 0 ? err : &unused);
        rc = rc != 0 ? rc : ended;
    }
    free(c);
    return rc;
}
