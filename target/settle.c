#include "target/settle.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"
#include "target/copies.h"
#include "target/staged.h"
#include "target/target.h"
#include "target/unsettled.h"

#define ASKED_MAGIC 0x0b1ec751

enum {
    TICK_MS = 500,
    OLD_MS = 1000, /* until then a write is under way */
    AT_ONCE = 500,
    BODY_MAX = AT_ONCE * 4096,
};

struct settler {
    struct target *target;
    pthread_t thread;
};

/* --- asking ----------------------------------------------------------------------------------- */

/* Names that one owner acts for. */
struct batch {
    const struct node *acting;
    size_t count;
    const struct unsettled_name *names[AT_ONCE];
};

static json_t *question(const struct batch *b)
{
    char version[VERSION_TEXT_MAX];
    json_t *list = json_array();
    for (size_t i = 0; i < b->count; i++)
        json_array_append_new(list,
                              json_pack("{sI ss ss}", "bucket", (json_int_t)b->names[i]->bucket_id,
                                        "name", b->names[i]->name, "version",
                                        version_format(&b->names[i]->version, version)));
    return list;
}

static void take_answer(struct target *t, const struct batch *b, json_t *answer)
{
    json_t *settled = NULL;
    if (json_get_array(answer, "", "settled", &settled, NULL) != 0)
        return;
    for (size_t i = 0; i < json_array_size(settled); i++) {
        json_int_t at = json_integer_value(json_array_get(settled, i));
        if (at < 0 || (size_t)at >= b->count)
            continue;
        const struct unsettled_name *n = b->names[at];
        unsettled_settle(t->copies->unsettled, n->bucket_id, n->name, &n->version);
    }
}

static void ask(struct target *t, const struct cluster_state *s, const struct batch *b)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *list = question(b);
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *url = xprintf("%s/v1/settled?dfcv=%llu.%llu", b->acting->data_url,
                                       (unsigned long long)s->term, (unsigned long long)s->version);
    if (http_json_wait(t->data_client, HTTP_POST, url, list, t->params.call_timeout, &answer,
                       &err) == 0)
        take_answer(t, b, answer);
    else
        log_debug("unsettled names not asked about", lstr("target", b->acting->id), lerr(&err));
}

/* Whom to ask about it; NULL: nobody now, or nobody any more. */
static const struct node *acting_of(struct target *t, const struct cluster_state *s,
                                    const struct unsettled_name *n)
{
    struct owners o;
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, n->bucket_id);
    if (b == NULL) {
        unsettled_settle(t->copies->unsettled, n->bucket_id, n->name, &n->version);
        return NULL;
    }
    owners_of(s, b, n->name, &o);
    return o.acting;
}

static void ask_all(struct target *t, const struct cluster_state *s,
                    const struct unsettled_name *names, size_t count)
{
    _cleanup_free_ const struct node **acting = xcalloc(count, sizeof *acting);
    _cleanup_free_ struct batch *b = xcalloc(1, sizeof *b);
    for (size_t i = 0; i < count; i++) {
        acting[i] = acting_of(t, s, &names[i]);
        if (acting[i] != NULL && strcmp(acting[i]->id, t->id) == 0) {
            (void)copies_settle(t, names[i].bucket_id, names[i].name, NULL); /* or the next time */
            acting[i] = NULL;
        }
    }
    for (size_t i = 0; i < count; i++) {
        *b = (struct batch){.acting = acting[i]};
        for (size_t k = i; b->acting != NULL && k < count; k++) {
            if (acting[k] != b->acting)
                continue;
            b->names[b->count++] = &names[k];
            acting[k] = NULL;
        }
        if (b->count > 0)
            ask(t, s, b);
    }
}

static void work_off(struct target *t)
{
    struct unsettled_name names[AT_ONCE];
    size_t count;
    uint64_t now_ms = clock_ms(), before_ms = now_ms > OLD_MS ? now_ms - OLD_MS : 0;
    while (!t->copies->stop.wanted && (count = unsettled_due(t->copies->unsettled, before_ms,
                                                             clock_ms(), names, AT_ONCE)) > 0) {
        _cleanup_state_ const struct cluster_state *s = state_current(t->state);
        ask_all(t, s, names, count);
        for (size_t i = 0; i < count; i++)
            free(names[i].name);
    }
}

static void *settler_main(void *arg)
{
    struct target *t = ((struct settler *)arg)->target;
    while (job_stop_pause(&t->copies->stop, TICK_MS)) {
        uint64_t now_ms = clock_ms();
        work_off(t);
        staged_expire(t->copies->staged, now_ms > STAGED_MAX_MS ? now_ms - STAGED_MAX_MS : 0);
    }
    return NULL;
}

int settler_new(struct target *t, struct settler **out, struct error *err)
{
    struct settler *s = xcalloc(1, sizeof *s);
    s->target = t;
    int code = thread_start("settler", settler_main, s, &s->thread, err);
    if (code != 0) {
        free(s);
        return code;
    }
    *out = s;
    return 0;
}

void settler_free(struct settler *s)
{
    if (s == NULL)
        return;
    pthread_join(s->thread, NULL);
    free(s);
}

/* --- answering -------------------------------------------------------------------------------- */

struct asked {
    unsigned magic;
    struct http_request *req;
    struct target *target;
    const char *data;
    size_t len;
};

/* Has the acting owner it, or more, visible and not marked?  Then the others had it before. */
static bool is_settled(struct target *t, const struct cluster_state *s, uint64_t bucket_id,
                       const char *name, const struct version *v)
{
    struct owners o;
    struct object_held held;
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    if (b == NULL)
        return true;
    owners_of(s, b, name, &o);
    return o.acting != NULL && strcmp(o.acting->id, t->id) == 0 && o.awaited == NULL &&
           !owners_must_compare(s, &o) && !unsettled_has(t->copies->unsettled, bucket_id, name) &&
           object_look(t->store, bucket_id, name, &held, NULL) == 0 && held.found &&
           version_compare(&held.version, v) >= 0;
}

static int look_at(struct target *t, const struct cluster_state *s, json_t *item, bool *settled,
                   struct error *err)
{
    const char *name = NULL, *text = NULL;
    struct version v;
    uint64_t bucket_id = 0;
    int code = json_need_u64(item, "", "bucket", &bucket_id, err);
    if (code == 0)
        code = json_need_str(item, "", "name", &name, err);
    if (code == 0)
        code = json_need_str(item, "", "version", &text, err);
    if (code == 0)
        code = version_parse(text, &v, err);
    if (code != 0)
        return code;
    *settled = is_settled(t, s, bucket_id, name, &v);
    if (!*settled)
        (void)copies_settle(t, bucket_id, name, NULL); /* asked again where it was not taken */
    return 0;
}

static void answer(void *arg)
{
    const struct asked *a = arg;
    assert(a->magic == ASKED_MAGIC);
    _cleanup_state_ const struct cluster_state *s = state_current(a->target->state);
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *list = json_array();
    struct error err = ERROR_INIT;
    int code = json_parse(a->data, a->len, &doc, &err);
    for (size_t i = 0; code == 0 && i < json_array_size(doc); i++) {
        bool settled = false;
        code = look_at(a->target, s, json_array_get(doc, i), &settled, &err);
        if (settled)
            json_array_append_new(list, json_integer((json_int_t)i));
    }
    if (code != 0) {
        http_reply_error(a->req, &err);
        return;
    }
    _cleanup_json_ json_t *reply = json_pack("{sO}", "settled", list);
    http_reply_json(a->req, 200, reply);
}

static void answer_body(struct http_request *req, const char *data, size_t len)
{
    struct asked *a = arena_alloc(http_arena(req), sizeof *a);
    struct error err = ERROR_INIT;
    *a = (struct asked){
        .magic = ASKED_MAGIC, .req = req, .target = http_user(req), .data = data, .len = len};
    if (pool_submit(a->target->workers, answer, a, &err) != 0)
        http_reply_error(req, &err);
}

static void settled_begin(struct http_request *req)
{
    http_collect_body(req, BODY_MAX, answer_body);
}

const struct http_route settle_routes[] = {
    {.name = "copies_settled",
     .method = HTTP_POST,
     .pattern = "/v1/settled",
     .nets = NET_DATA,
     .begin = settled_begin,
     .summary = "Which of these writes all owners have, by the owner that acts for the names.",
     .query = "dfcv=the sender's state version",
     .body = "`[{\"bucket\": id, \"name\", \"version\"}, …]`",
     .reply = "200 `{\"settled\": [indices]}`; the others are seen to",
     .errors = "invalid_json"},
    {.name = NULL},
};
