/* What other owners ask about many names (dirty_worker.h). */
#include "target/copies/dirty_worker.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "cluster/placement/copies_reduce.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "target/node/call.h"
#include "target/copies/copies.h"
#include "target/copies/acting.h"
#include "target/copies/plan.h"
#include "target/disk/version_floor.h"
#include "target/disk/crash_state.h"
#include "target/node/member.h"
#include "target/store/quarantine.h"
#include "target/copies/repair_wanted.h"
#include "target/node/target.h"
#include "target/copies/dirty.h"

#define ASKED_MAGIC 0x0b1ec751

struct asked {
    unsigned magic;
    struct http_request *req;
    struct target *target;
    enum dirty_question question;
    const char *data;
    size_t len;
};

/* By version, content and rank, as a comparison would decide (plan.h): what is not needed here is
 * held. */
static bool is_held(struct target *t, const struct dirty_name *n, const char *name)
{
    struct object_held held;
    const struct object_held wanted = {.found = true,
                                       .visible = n->has_content,
                                       .version = n->version,
                                       .rank = n->rank,
                                       .size = n->size,
                                       .checksum = n->checksum};
    return object_look(t->store, n->bucket_id, name, &held, NULL) == 0 &&
           copies_has(&held, &wanted);
}

/* Has the acting owner it, or more, visible and not marked, which is looked at last: a comparison
 * marks before it brings?  Then the others had it before. */
static bool is_settled(struct target *t, const struct cluster_state *s, uint64_t bucket_id,
                       const char *name, const struct version *v)
{
    struct owners o;
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    const struct dirty_name wanted = {.bucket_id = bucket_id, .version = *v};
    if (b == NULL)
        return true;
    owners_of(s, b, name, &o);
    return o.acting != NULL && strcmp(o.acting->id, t->id) == 0 && o.awaited == NULL &&
           copies_is_let_in(t, s) && !owners_must_compare(s, &o) && is_held(t, &wanted, name) &&
           !dirty_has(t->copies->dirty, bucket_id, name);
}

/* Of an earlier build's question there is none. */
static int parse_content(json_t *item, struct dirty_name *out, struct error *err)
{
    const char *type = NULL, *hex = NULL;
    enum checksum_type kind;
    int code = json_get_str(item, "", "checksum_type", &type, err);
    if (code != 0 || type == NULL)
        return code;
    if ((code = json_need_str(item, "", "checksum", &hex, err)) != 0 ||
        (code = json_need_u64(item, "", "size", &out->size, err)) != 0 ||
        (code = checksum_from_name(type, &kind, err)) != 0)
        return code;
    out->has_content = true;
    return kind == CHECKSUM_NONE ? 0 : checksum_parse(kind, hex, &out->checksum, err);
}

static int parse_item(json_t *item, struct dirty_name *out, const char **name, struct error *err)
{
    const char *version = NULL;
    int code = json_need_u64(item, "", "bucket", &out->bucket_id, err);
    if (code == 0)
        code = json_need_str(item, "", "name", name, err);
    if (code == 0)
        code = json_need_str(item, "", "version", &version, err);
    if (code == 0)
        code = json_get_u64(item, "", "rank", &out->rank, err);
    if (code == 0)
        code = object_name_check(*name, strlen(*name), err);
    if (code == 0)
        code = parse_content(item, out, err);
    return code != 0 ? code : version_parse(version, &out->version, err);
}

static int look_at(const struct asked *a, const struct cluster_state *s, json_t *item, bool *yes,
                   struct error *err)
{
    struct dirty_name n = {.rank = 0};
    const char *name = NULL;
    int code = parse_item(item, &n, &name, err);
    if (code != 0)
        return code;
    if (a->question == DIRTY_DOUBTED) {
        repair_wanted(a->target, n.bucket_id, name);
        return 0;
    }
    if (a->question == DIRTY_IS_HELD)
        *yes = is_held(a->target, &n, name);
    else if (a->question == DIRTY_IS_SETTLED)
        *yes = is_settled(a->target, s, n.bucket_id, name, &n.version);
    if (!*yes && a->question != DIRTY_IS_HELD)
        (void)copies_settle(a->target, n.bucket_id, name, NULL); /* or when it is asked again */
    return 0;
}

/* What is said to be held is so under the sender's state: copies are removed for it
 * (trim_copies.h). */
static int check_not_behind(const struct asked *a, struct error *err)
{
    bool ahead = false;
    if (a->question != DIRTY_IS_HELD)
        return 0;
    int code = sender_is_ahead(a->req, &ahead, err);
    if (code == 0 && ahead)
        return error_set(err, E_NOT_READY, "target '%s' could not get cluster state %s",
                         a->target->id, http_query(a->req, "dfcv"));
    return code;
}

/* Of the disks, too, which are not the same when all of them were replaced; 0: a disk does not say.
 */
static uint64_t quarantine_of(const struct target *t)
{
    uint64_t sum = 0;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    for (size_t i = 0; i < set->count; i++) {
        uint64_t stamp = quarantine_stamp(set->all[i]);
        if (stamp == 0)
            return 0;
        const char *id = mountpath_id(set->all[i]);
        sum = (sum + stamp) % INT64_MAX;
        sum = (sum + XXH3_64bits(id, strlen(id)) % INT64_MAX) % INT64_MAX;
    }
    return sum;
}

static json_t *loss_of(const struct target *t)
{
    return json_pack("{sI sI}", "steps",
                     (json_int_t)(version_floor_in_force(t->mountpaths) / VERSION_FLOOR_STEP),
                     "quarantine", (json_int_t)quarantine_of(t));
}

static void answer(void *arg)
{
    const struct asked *a = arg;
    assert(a->magic == ASKED_MAGIC);
    _cleanup_state_ const struct cluster_state *s = state_current(a->target->state);
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *list = json_array();
    struct error err = ERROR_INIT;
    int code = check_not_behind(a, &err);
    if (code == 0)
        code = json_parse(a->data, a->len, &doc, &err);
    for (size_t i = 0; code == 0 && i < json_array_size(doc); i++) {
        bool yes = false;
        code = look_at(a, s, json_array_get(doc, i), &yes, &err);
        if (yes)
            json_array_append_new(list, json_integer((json_int_t)i));
    }
    if (code != 0) {
        http_reply_error(a->req, &err);
        return;
    }
    _cleanup_json_ json_t *reply =
        a->question == DIRTY_LOSS ? loss_of(a->target) : json_pack("{sO}", "settled", list);
    http_reply_json(a->req, 200, reply);
}

static void answer_body(struct http_request *req, const char *data, size_t len)
{
    struct asked *a = arena_alloc(http_arena(req), sizeof *a);
    struct error err = ERROR_INIT;
    *a = (struct asked){
        .magic = ASKED_MAGIC, .req = req, .target = http_user(req), .data = data, .len = len};
    bool ahead = false;
    int code = dirty_question_parse(http_query(req, "question"), &a->question, &err);
    if (code == 0 && a->question == DIRTY_IS_HELD)
        code = sender_is_ahead(req, &ahead, &err);
    if (code == 0 && ahead)
        member_refresh(a->target->member, http_query(req, "dfcv"), answer, a);
    else if (code == 0)
        code = pool_submit(a->target->workers, answer, a, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

static void settled_begin(struct http_request *req)
{
    http_collect_body(req, DIRTY_BODY_MAX, answer_body);
}

const struct http_route dirty_routes[] = {
    {.name = "copies_settled",
     .method = HTTP_POST,
     .pattern = "/v1/settled",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = settled_begin,
     .summary = "Which of these writes all owners have, by the leader of the names.",
     .query = HTTP_PARAMETERS(
         {"question", "settled; held: which this target has, by the sender's state or a later one; "
                      "wanted: all owners are to have what the greatest has; doubted: its own "
                      "copies are to be checked; loss: numbers that change when it has lost "
                      "something"},
         {"dfcv", "the sender's state version"}),
     .body = "`[{\"bucket\": id, \"name\", \"version\", \"rank\", \"size\", "
             "\"checksum_type\", \"checksum\"}, …]`; rank: a number of what users see beside the "
             "version, of which the greater stays",
     .reply = "200 `{\"settled\": [indices]}`, the others are seen to; or `{\"steps\", "
              "\"quarantine\"}`",
     .errors = "invalid_json invalid_argument not_ready"},
    {.name = NULL},
};
