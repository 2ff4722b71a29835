/* From a request and the documents to a job, and whether it still fits later documents. */
#include "proxy/jobs/sort_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/command/command.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/jobs/job_make.h"
#include "sort/task/plan.h"
#include "sort/spec/spec.h"

#define SPEC(more)                                                                \
    "{\"input_bck\": {\"name\": \"in\"}, \"output_bck\": {\"name\": \"out\"},"    \
    " \"input_format\": {\"prefix\": \"\"}, \"output_format\": \"out-%06d.tar\"," \
    " \"output_shard_size\": \"1MiB\"" more "}"

static const struct cluster_state *now;

static void apply(const struct command *cmd)
{
    const struct cluster_state *next = NULL;
    struct error err = ERROR_INIT;
    if (command_apply(now, cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    state_unref(now);
    now = next;
}

static void join(const char *id, enum node_role role, uint32_t weight, const char *boot)
{
    _cleanup_free_ char *url = xprintf("http://%s:1", id);
    const struct node n = {.id = id,
                           .role = role,
                           .public_url = url,
                           .control_url = url,
                           .data_url = url,
                           .weight = weight,
                           .boot = boot};
    apply(&(struct command){
        .kind = CMD_NODE_JOIN, .node = &n, .fresh = smap_node(&now->smap, id) == NULL});
}

static void set_node(const char *id, enum node_state state)
{
    apply(
        &(struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state, .force = true});
}

static void create_bucket(const char *name, enum durability durability)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.durability = durability;
    apply(&(struct command){.kind = CMD_BUCKET_CREATE, .name = name, .props = &props});
}

static int setup(void **state)
{
    (void)state;
    now = state_new("c-test");
    join("p1", NODE_PROXY, 1024, "a");
    join("t2", NODE_TARGET, 2048, "a");
    join("t1", NODE_TARGET, 1024, "a");
    create_bucket("in", DURABILITY_SYNC);
    create_bucket("out", DURABILITY_ASYNC);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    state_unref(now);
    return 0;
}

static int make(const char *request, struct job **job, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(request, strlen(request), &doc, NULL), 0);
    return sort_job_make(now, doc, 77, job, err);
}

static struct job *made(const char *request)
{
    struct job *job = NULL;
    struct error err = ERROR_INIT;
    if (make(request, &job, &err) != 0)
        fail_msg("%s", err.message);
    return job;
}

static void assert_refused(const char *request, int code, const char *words)
{
    struct job *job = NULL;
    struct error err = ERROR_INIT;
    if (make(request, &job, &err) != code || strstr(err.message, words) == NULL)
        fail_msg("%s '%s'", error_name(err.code), err.message);
    assert_null(job);
}

static struct sort_plan *plan_of(const struct job *job)
{
    struct sort_plan *p = NULL;
    assert_int_equal(sort_plan_parse(job->plan, &p, NULL), 0);
    return p;
}

/* --- making ----------------------------------------------------------------------------------- */

static void test_job_has_all_that_targets_need(void **state)
{
    (void)state;
    struct job *job = made(SPEC(", \"description\": \"mine\""));
    assert_int_equal(strncmp(job->id, "srt-", 4), 0);
    assert_string_equal(job->kind, "sort");
    assert_int_equal(job->state, JOB_QUEUED);
    assert_string_equal(job->description, "mine");
    assert_int_equal(job->created_ms, 77);
    assert_int_equal(job->participant_count, 2);
    assert_string_equal(job->participants[0], "t1");
    assert_string_equal(job->participants[1], "t2");
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = plan_of(job);
    assert_int_equal(p->count, 2);
    assert_string_equal(p->data_urls[1], "http://t2:1");
    assert_int_equal(p->nodes[1].weight, 2048);
    assert_int_equal(p->input_bucket_id, bmd_bucket(&now->bmd, "in")->id);
    assert_int_equal(p->output_bucket_id, bmd_bucket(&now->bmd, "out")->id);
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    assert_int_equal(bucket_props_from_json(p->output_props, &props, NULL), 0);
    assert_int_equal(props.durability, DURABILITY_ASYNC);
    apply(&(struct command){.kind = CMD_JOB_CREATE, .job = job});
    job_unref(job);
}

/* What the plan says of owners is what everybody else says of them. */
static void test_plan_places_as_the_map_does(void **state)
{
    (void)state;
    struct job *job = made(SPEC(""));
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = plan_of(job);
    for (int i = 0; i < 1000; i++) {
        char name[24];
        const struct node *owner;
        snprintf(name, sizeof name, "out-%06d.tar", i);
        assert_int_equal(smap_owners(&now->smap, p->output_bucket_id, name, 1, &owner), 1);
        assert_string_equal(p->ids[sort_plan_owner(p, p->output_bucket_id, name)], owner->id);
    }
    job_unref(job);
}

static uint64_t seed_of(const struct job *job)
{
    struct sort_spec *spec = NULL;
    assert_int_equal(sort_spec_parse(job->spec, &spec, NULL), 0);
    uint64_t seed = spec->seed;
    assert_true(spec->seed_given);
    sort_spec_free(spec);
    return seed;
}

/* A shuffle can be repeated: the seed is the request's, or drawn and told. */
static void test_seed(void **state)
{
    (void)state;
    struct job *a = made(SPEC(", \"algorithm\": {\"kind\": \"shuffle\"}"));
    struct job *b = made(SPEC(", \"algorithm\": {\"kind\": \"shuffle\"}"));
    struct job *c =
        made(SPEC(", \"algorithm\": {\"kind\": \"shuffle\", \"seed\": \"18446744073709551615\"}"));
    assert_true(seed_of(a) != seed_of(b));
    assert_true(seed_of(c) == UINT64_MAX);
    assert_string_not_equal(a->id, b->id);
    assert_string_not_equal(json_string_value(json_object_get(a->plan, "salt")),
                            json_string_value(json_object_get(b->plan, "salt")));
    job_unref(a);
    job_unref(b);
    job_unref(c);
}

/* The spec in the job says what the request said. */
static void test_spec_survives(void **state)
{
    (void)state;
    struct job *job = made(SPEC(", \"missing_shards\": \"warn\", \"dry_run\": true"));
    struct job *again = NULL;
    assert_int_equal(sort_job_make(now, job->spec, 77, &again, NULL), 0);
    assert_true(json_equal(job->spec, again->spec));
    job_unref(job);
    job_unref(again);
}

/* --- refusing --------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("{}", E_SPEC, "input_bck");
    assert_refused("[]", E_SPEC, "object");
    assert_refused(SPEC(", \"dsorter_type\": \"x\""), E_UNSUPPORTED, "dsorter_type");
    assert_refused(SPEC(", \"ekm_file\": \"dfc://no/o\""), E_BUCKET_NOT_FOUND,
                   "field 'ekm_file': bucket 'no'");
    apply(&(struct command){.kind = CMD_BUCKET_DESTROY, .name = "out"});
    assert_refused(SPEC(""), E_BUCKET_NOT_FOUND, "field 'output_bck': bucket 'out'");
    apply(&(struct command){.kind = CMD_BUCKET_DESTROY, .name = "in"});
    assert_refused(SPEC(""), E_BUCKET_NOT_FOUND, "field 'input_bck': bucket 'in'");
}

static void test_targets(void **state)
{
    (void)state;
    set_node("t1", NODE_UNREACHABLE);
    assert_refused(SPEC(""), E_NODE_UNREACHABLE, "'t1'");
    set_node("t1", NODE_MAINTENANCE); /* owns nothing */
    struct job *job = made(SPEC(""));
    assert_int_equal(job->participant_count, 1);
    job_unref(job);
    set_node("t2", NODE_MAINTENANCE);
    assert_refused(SPEC(""), E_NO_TARGETS, "no active target");
}

/* A request whose shards have `count` names of some 100 bytes. */
static char *long_request(size_t count)
{
    struct buf text = BUF_INIT;
    buf_puts(&text, "{\"input_bck\": \"in\", \"output_bck\": \"out\", \"output_format\": \"o-%d\","
                    " \"output_shard_size\": 1, \"input_format\": {\"objnames\": [");
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s\"%0100zu\"", i > 0 ? "," : "", i);
    buf_puts(&text, "]}}");
    return buf_steal(&text);
}

/* All that may come to a document until its job ends. */
static void grow(struct job *job)
{
    char message[512];
    memset(message, '\xff', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    job->state = JOB_STOPPING;
    job->stop_as = JOB_ABORTED;
    job->attempt = UINT32_MAX;
    job->started_ms = job->ended_ms = INT64_C(1) << 52;
    job->error_code = xstrdup("unsupported_and_more");
    job->error_message = xstrdup(message);
    for (size_t i = 0; i < job->participant_count; i++)
        job_leave_out(job, job->participants[i]);
}

/* The longest document that is accepted stays within what targets take, and read again. */
static void test_a_document_has_room_to_grow(void **state)
{
    (void)state;
    size_t fits = 38000, too_many = 41000;
    struct job *job = NULL;
    while (too_many - fits > 1) {
        size_t count = (fits + too_many) / 2;
        _cleanup_free_ char *text = long_request(count);
        if (make(text, &job, NULL) == 0)
            fits = count;
        else
            too_many = count;
        job_unref(steal(job));
    }
    _cleanup_free_ char *longest = long_request(fits);
    job = made(longest);
    grow(job);
    assert_in_range(job_bytes(job), JOB_DOCUMENT_MAX / 2, JOB_DOCUMENT_MAX);
    job_unref(job);
}

/* What a request says in few bytes may be many in the document: extensions are added to names. */
static void test_size_of_the_document(void **state)
{
    (void)state;
    _cleanup_free_ char *fits = long_request(38000);
    _cleanup_free_ char *too_long = long_request(41000);
    assert_true(strlen(too_long) > JOB_DOCUMENT_MAX && strlen(fits) < JOB_DOCUMENT_MAX);
    assert_refused(too_long, E_TOO_LARGE, "template");
    struct job *first = NULL;
    for (int i = 0; i < JOBS_BYTES_MAX / JOB_DOCUMENT_MAX; i++) {
        struct job *job = made(fits);
        assert_true(job_bytes(job) <= JOB_DOCUMENT_MAX);
        apply(&(struct command){.kind = CMD_JOB_CREATE, .job = job});
        if (first == NULL)
            first = job_copy(job);
        job_unref(job);
    }
    assert_refused(fits, E_OVERLOAD, "unfinished");
    job_unref(made(SPEC(""))); /* there is room for small ones */
    first->state = JOB_STOPPING;
    apply(&(struct command){.kind = CMD_JOB_UPDATE, .job = first});
    first->state = JOB_FAILED;
    apply(&(struct command){.kind = CMD_JOB_UPDATE, .job = first});
    job_unref(made(fits));
    job_unref(first);
}

/* --- later ------------------------------------------------------------------------------------ */

static void assert_fits(const struct job *job, int code, const char *words)
{
    struct error err = ERROR_INIT;
    if (sort_job_fits(job, now, &err) != code || strstr(err.message, words) == NULL)
        fail_msg("%s '%s'", error_name(err.code), err.message);
}

static void test_fits(void **state)
{
    (void)state;
    struct job *job = made(SPEC(""));
    assert_fits(job, 0, "");
    set_node("t1", NODE_UNREACHABLE);
    assert_fits(job, 0, "");
    join("t1", NODE_TARGET, 1024, "b"); /* the same again, restarted */
    assert_fits(job, 0, "");
    join("t1", NODE_TARGET, 512, "c");
    assert_fits(job, E_STALE_MAP, "'t1'");
    join("t1", NODE_TARGET, 1024, "d");
    apply(&(struct command){.kind = CMD_BUCKET_DESTROY, .name = "in"});
    create_bucket("in", DURABILITY_SYNC); /* not the same one */
    assert_fits(job, E_BUCKET_NOT_FOUND, "input bucket");
    job_unref(job);
    job = made(SPEC(""));
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", 2);
    apply(&(struct command){.kind = CMD_BUCKET_PROPS, .name = "out", .patch = patch});
    assert_fits(job, E_STALE_MAP, "copies of bucket 'out'");
    apply(&(struct command){.kind = CMD_BUCKET_DESTROY, .name = "out"});
    assert_fits(job, E_BUCKET_NOT_FOUND, "output bucket");
    job_unref(job);
}

static void create_with_copies(const char *name, unsigned copies)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.copies = copies;
    apply(&(struct command){.kind = CMD_BUCKET_CREATE, .name = name, .props = &props});
}

static size_t spares_of(struct job *job)
{
    size_t spares = sort_job_spares(job, now);
    job_unref(job);
    return spares;
}

/* One less than the copies of what has the fewest, and one target stays. */
static void test_what_it_can_do_without(void **state)
{
    (void)state;
    create_with_copies("in3", 3);
    create_with_copies("out3", 3);
#define SPEC3(more)                                                               \
    "{\"input_bck\": {\"name\": \"in3\"}, \"output_bck\": {\"name\": \"out3\"},"  \
    " \"input_format\": {\"prefix\": \"\"}, \"output_format\": \"out-%06d.tar\"," \
    " \"output_shard_size\": \"1MiB\"" more "}"
    assert_int_equal(spares_of(made(SPEC(""))), 0);
    assert_int_equal(spares_of(made(SPEC3(""))), 1); /* of two targets */
    join("t3", NODE_TARGET, 1024, "a");
    join("t4", NODE_TARGET, 1024, "a");
    assert_int_equal(spares_of(made(SPEC3(""))), 2);
    struct job *job = made(SPEC3(""));
    const struct bucket *in = bmd_bucket(&now->bmd, "in");
    json_object_set_new(job->plan, "ekm_bucket_id", json_integer((json_int_t)in->id));
    struct sort_plan *p = plan_of(job);
    assert_int_equal(p->ekm_bucket_id, in->id);
    sort_plan_free(p);
    assert_int_equal(spares_of(job), 0);
}

/* --- who is away ------------------------------------------------------------------------------ */

#define AWAY(in, out, more)                                                                 \
    "{\"input_bck\": \"" in "\", \"output_bck\": \"" out "\", \"output_format\": \"o-%d\"," \
    " \"output_shard_size\": 1, \"input_format\": {" more "}}"
#define TEMPLATE "\"template\": \"s-{000..499}.tar\""

/* With copies it begins as it would go on. */
static void test_it_begins_without_those_that_others_have_copies_of(void **state)
{
    (void)state;
    create_with_copies("in2", 2);
    create_with_copies("out2", 2);
    join("t3", NODE_TARGET, 1024, "a");
    set_node("t3", NODE_UNREACHABLE);
    struct job *job = made(AWAY("in2", "out2", TEMPLATE));
    assert_int_equal(job->participant_count, 3); /* it may come back in time */
    assert_int_equal(job->without_count, 0);
    job_unref(job);
    assert_refused(AWAY("in2", "out", TEMPLATE), E_NODE_UNREACHABLE, "'t3'");
    assert_refused(AWAY("in", "out2", TEMPLATE), E_NODE_UNREACHABLE, "'t3'");
    set_node("t1", NODE_UNREACHABLE);
    assert_refused(AWAY("in2", "out2", TEMPLATE), E_NODE_UNREACHABLE, "'t1'");
}

/* That is what the job shows of the shards that only these targets have. */
static void expect_unreachable(const struct job *job, const char *const *away, size_t copies)
{
    _cleanup_json_ json_t *found = sort_job_unreachable(job, now);
    struct sort_plan *p = plan_of(job);
    size_t count = 0;
    for (unsigned i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "s-%03u.tar", i);
        size_t ranked[2];
        size_t lost = 0;
        hrw_rank(hrw_key(p->input_bucket_id, name, strlen(name)), p->nodes, p->count, copies,
                 ranked);
        for (size_t k = 0; k < copies; k++) {
            for (const char *const *id = away; *id != NULL; id++)
                lost += strcmp(p->ids[ranked[k]], *id) == 0;
        }
        if (lost < copies || count == SORT_JOB_NAMES_SHOWN)
            continue;
        assert_string_equal(json_string_value(json_array_get(found, count)), name);
        count++;
    }
    assert_int_equal(json_array_size(found), count);
    assert_int_equal(count > 0, away[0] != NULL && (copies == 1 || away[1] != NULL));
    sort_plan_free(p);
}

static void test_shards_that_nobody_has(void **state)
{
    (void)state;
    create_with_copies("in2", 2);
    join("t3", NODE_TARGET, 1024, "a");
    struct job *one = made(AWAY("in", "out", TEMPLATE));
    struct job *two = made(AWAY("in2", "out", TEMPLATE));
    struct job *prefix = made(AWAY("in", "out", "\"prefix\": \"s-\""));
    struct job *list = made(AWAY("in", "out", "\"objnames\": [\"a.tar\", \"b.tar\"]"));
    expect_unreachable(one, (const char *[]){NULL}, 1);
    set_node("t1", NODE_UNREACHABLE);
    expect_unreachable(one, (const char *[]){"t1", NULL}, 1);
    expect_unreachable(two, (const char *[]){"t1", NULL}, 2);
    set_node("t3", NODE_UNREACHABLE);
    expect_unreachable(one, (const char *[]){"t1", "t3", NULL}, 1);
    expect_unreachable(two, (const char *[]){"t1", "t3", NULL}, 2);
    set_node("t2", NODE_UNREACHABLE);
    _cleanup_json_ json_t *all = sort_job_unreachable(list, now);
    assert_int_equal(json_array_size(all), 2);
    _cleanup_json_ json_t *unknown = sort_job_unreachable(prefix, now);
    assert_int_equal(json_array_size(unknown), 0);
    job_unref(one);
    job_unref(two);
    job_unref(prefix);
    job_unref(list);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_job_has_all_that_targets_need),
        TEST(test_plan_places_as_the_map_does),
        TEST(test_seed),
        TEST(test_spec_survives),
        TEST(test_refusals),
        TEST(test_targets),
        TEST(test_size_of_the_document),
        TEST(test_a_document_has_room_to_grow),
        TEST(test_fits),
        TEST(test_what_it_can_do_without),
        TEST(test_it_begins_without_those_that_others_have_copies_of),
        TEST(test_shards_that_nobody_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
