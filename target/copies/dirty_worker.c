#include "target/copies/dirty_worker.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"
#include "target/copies/copies.h"
#include "target/copies/staged.h"
#include "target/node/target.h"
#include "target/copies/dirty.h"

enum {
    TICK_MS = 500,
    OLD_MS = 1000,          /* until then a write is under way */
    ITEM_TEXT_MAX = 400,    /* of a call's body an item takes so much beside its name … */
    NAME_BYTE_TEXT_MAX = 6, /* … and so much for a byte of that: "\\u0001" */
};

static const char *const questions[] = {
    [DIRTY_IS_SETTLED] = "settled", [DIRTY_IS_HELD] = "held", [DIRTY_WANTED] = "wanted",
    [DIRTY_DOUBTED] = "doubted",    [DIRTY_LOSS] = "loss",
};

struct dirty_worker {
    struct target *target;
    pthread_t thread;
};

/* --- asking ----------------------------------------------------------------------------------- */

static void add_content(json_t *item, const struct dirty_name *n)
{
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&n->checksum, hex);
    json_object_set_new(item, "size", json_integer((json_int_t)n->size));
    json_object_set_new(item, "checksum_type", json_string(checksum_name(n->checksum.type)));
    json_object_set_new(item, "checksum", json_string(hex));
}

static json_t *list_of(const struct dirty_name *const *names, size_t count)
{
    char version[VERSION_TEXT_MAX];
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct dirty_name *n = names[i];
        json_t *item = json_pack("{sI ss ss}", "bucket", (json_int_t)n->bucket_id, "name", n->name,
                                 "version", version_format(&n->version, version));
        if (n->rank != 0)
            json_object_set_new(item, "rank", json_integer((json_int_t)n->rank));
        if (n->has_content)
            add_content(item, n);
        json_array_append_new(list, item);
    }
    return list;
}

static int take_answer(json_t *answer, size_t count, bool *yes, struct error *err)
{
    json_t *settled = NULL;
    int code = json_get_array(answer, "", "settled", &settled, err);
    for (size_t i = 0; code == 0 && i < json_array_size(settled); i++) {
        json_t *item = json_array_get(settled, i);
        json_int_t at = json_integer_value(item);
        if (json_is_integer(item) && at >= 0 && (size_t)at < count)
            yes[at] = true;
    }
    return code;
}

static int ask_node(struct target *t, const struct cluster_state *s, const struct node *n,
                    enum dirty_question question, json_t *list, json_t **answer, struct error *err)
{
    _cleanup_free_ char *url =
        xprintf("%s/v1/settled?dfcv=%llu.%llu&question=%s", n->data_url,
                (unsigned long long)s->term, (unsigned long long)s->version, questions[question]);
    return http_json_wait(t->data_client, n->id, HTTP_POST, url, list, t->params.call_timeout,
                          answer, err);
}

int dirty_question_parse(const char *text, enum dirty_question *out, struct error *err)
{
    for (size_t i = 0; text != NULL && i < sizeof questions / sizeof *questions; i++) {
        if (strcmp(questions[i], text) == 0) {
            *out = (enum dirty_question)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID,
                     "parameter 'question' is settled, held, wanted, doubted or loss");
}

/* How many of these names go into one call. */
static size_t count_page(const struct dirty_name *const *names, size_t count)
{
    size_t bytes = 0, page = 0;
    static_assert(NAME_BYTE_TEXT_MAX * ATTR_NAME_MAX + ITEM_TEXT_MAX < DIRTY_BODY_MAX, "one fits");
    while (page < count) {
        bytes += NAME_BYTE_TEXT_MAX * strlen(names[page]->name) + ITEM_TEXT_MAX;
        if (bytes > DIRTY_BODY_MAX)
            break;
        page++;
    }
    return page;
}

static int ask_page(struct target *t, const struct cluster_state *s, const struct node *n,
                    enum dirty_question question, const struct dirty_name *const *names,
                    size_t count, bool *yes, struct error *err)
{
    _cleanup_json_ json_t *list = list_of(names, count);
    _cleanup_json_ json_t *answer = NULL;
    int code = ask_node(t, s, n, question, list, &answer, err);
    return code != 0 ? code : take_answer(answer, count, yes, err);
}

int dirty_ask(struct target *t, const struct cluster_state *s, const struct node *n,
              enum dirty_question question, const struct dirty_name *const *names, size_t count,
              bool *yes, struct error *err)
{
    int code = 0;
    memset(yes, 0, count * sizeof *yes);
    for (size_t at = 0, page; at < count && code == 0; at += page) {
        page = count_page(names + at, count - at);
        code = ask_page(t, s, n, question, names + at, page, yes + at, err);
    }
    return code;
}

int dirty_ask_loss(struct target *t, const struct cluster_state *s, const struct node *n,
                   struct dirty_loss *out, struct error *err)
{
    _cleanup_json_ json_t *list = json_array();
    _cleanup_json_ json_t *answer = NULL;
    int code = ask_node(t, s, n, DIRTY_LOSS, list, &answer, err);
    if (code == 0)
        code = json_need_u64(answer, "", "steps", &out->steps, err);
    if (code == 0)
        code = json_need_u64(answer, "", "quarantine", &out->quarantine, err);
    return code;
}

/* Names that one owner acts for. */
struct batch {
    const struct node *acting;
    size_t count;
    const struct dirty_name *names[DIRTY_AT_ONCE];
    bool settled[DIRTY_AT_ONCE];
};

static void ask(struct target *t, const struct cluster_state *s, enum dirty_question question,
                struct batch *b)
{
    struct error err = ERROR_INIT;
    int code = dirty_ask(t, s, b->acting, question, b->names, b->count, b->settled, &err);
    if (code != 0)
        log_debug("dirty names not asked about", lstr("target", b->acting->id), lerr(&err));
    for (size_t i = 0; i < b->count && code == 0; i++) {
        const struct dirty_name *n = b->names[i];
        if (b->settled[i])
            dirty_clear(t->copies->dirty, n->bucket_id, n->name, &n->version);
    }
}

/* Whom to ask about it; NULL: nobody now, or nobody any more. */
static const struct node *acting_of(struct target *t, const struct cluster_state *s,
                                    const struct dirty_name *n)
{
    struct owners o;
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, n->bucket_id);
    if (b == NULL) {
        dirty_clear(t->copies->dirty, n->bucket_id, n->name, &n->version);
        return NULL;
    }
    owners_of(s, b, n->name, &o);
    if (bucket_has_surplus(b) && !owners_has(&o, t->id)) { /* a stray, which nobody asks for */
        dirty_clear(t->copies->dirty, n->bucket_id, n->name, &n->version);
        return NULL;
    }
    return o.acting;
}

static void ask_all(struct target *t, const struct cluster_state *s, enum dirty_question question,
                    const struct dirty_name *names, size_t count)
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
            ask(t, s, question, b);
    }
}

void dirty_want(struct target *t, const struct dirty_name *names, size_t count)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    if (count > 0)
        ask_all(t, s, DIRTY_WANTED, names, count);
}

static void work_off(struct target *t)
{
    struct dirty_name names[DIRTY_AT_ONCE];
    size_t count;
    uint64_t now_ms = clock_ms(), before_ms = now_ms > OLD_MS ? now_ms - OLD_MS : 0;
    while (!t->copies->stop.wanted &&
           (count = dirty_due(t->copies->dirty, before_ms, clock_ms(), names, DIRTY_AT_ONCE)) > 0) {
        _cleanup_state_ const struct cluster_state *s = state_current(t->state);
        ask_all(t, s, DIRTY_IS_SETTLED, names, count);
        for (size_t i = 0; i < count; i++)
            free(names[i].name);
    }
}

static void *dirty_worker_main(void *arg)
{
    struct target *t = ((struct dirty_worker *)arg)->target;
    while (job_stop_pause(&t->copies->stop, TICK_MS)) {
        uint64_t now_ms = clock_ms();
        work_off(t);
        staged_expire(t->copies->staged, now_ms > STAGED_MAX_MS ? now_ms - STAGED_MAX_MS : 0);
    }
    return NULL;
}

int dirty_worker_new(struct target *t, struct dirty_worker **out, struct error *err)
{
    struct dirty_worker *s = xcalloc(1, sizeof *s);
    s->target = t;
    int code = thread_start("dirty_worker", dirty_worker_main, s, &s->thread, err);
    if (code != 0) {
        free(s);
        return code;
    }
    *out = s;
    return 0;
}

void dirty_worker_free(struct dirty_worker *s)
{
    if (s == NULL)
        return;
    pthread_join(s->thread, NULL);
    free(s);
}
