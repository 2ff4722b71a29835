/* From a request for a delete or copy, and the documents, to a job. */
#include "proxy/jobs/objects_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/testing/test_state.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/task/plan.h"
#include "xaction/objects_spec.h"

static const struct cluster_state *now;

static void apply(const struct command *cmd)
{
    test_state_apply(&now, cmd);
}

static void join(const char *id)
{
    test_state_join(&now, id, "b", false);
}

static int setup(void **state)
{
    (void)state;
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    now = state_new("c-test");
    join("t1");
    join("t2");
    apply(&(struct command){.kind = CMD_BUCKET_CREATE, .name = "a", .props = &props});
    apply(&(struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    state_unref(now);
    return 0;
}

static int make(const char *kind, const char *bucket, const char *text, struct job **job,
                struct error *err)
{
    _cleanup_json_ json_t *value = NULL;
    *err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &value, err), 0);
    return objects_job_make(now, kind, bucket, value, 77, job, err);
}

static struct job *made(const char *kind, const char *bucket, const char *text)
{
    struct job *job = NULL;
    struct error err;
    if (make(kind, bucket, text, &job, &err) != 0)
        fail_msg("%s", err.message);
    return job;
}

static void refuse(const char *kind, const char *bucket, const char *text, int code)
{
    struct job *job = NULL;
    struct error err;
    assert_int_equal(make(kind, bucket, text, &job, &err), code);
    assert_null(job);
}

static void test_jobs_over_own_objects_say_what_serves_for_a_backend(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *value, *instead;
    } rows[] = {
        {"delete", "{\"prefix\": \"x\"}", "'dfcctl rm --recursive BUCKET/PREFIX'"},
        {"download", "{\"list\": [\"http://h/x\"]}", "into a bucket without one"},
    };
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    char backend[] = "s3://b";
    props.backend = backend;
    props.write_policy = WRITE_POLICY_THROUGH;
    apply(&(struct command){.kind = CMD_BUCKET_CREATE, .name = "cold", .props = &props});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job *job = NULL;
        struct error err;
        assert_int_equal(make(rows[i].kind, "cold", rows[i].value, &job, &err), E_UNSUPPORTED);
        assert_non_null(strstr(err.message, "bucket 'cold' has a backend"));
        assert_non_null(strstr(err.message, rows[i].instead));
        assert_null(strstr(err.message, "read"));
    }
}

static void test_delete(void **state)
{
    (void)state;
    struct job *job = made("delete", "a", "{\"prefix\": \"x\"}");
    struct objects_plan plan;
    assert_string_equal(job->kind, "delete");
    assert_int_equal(strncmp(job->id, "del-", 4), 0);
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->participant_count, 2);
    assert_string_equal(job->description, "a");
    assert_int_equal(objects_plan_parse(job->plan, &plan, NULL), 0);
    assert_int_equal(plan.input_bucket_id, bmd_bucket(&now->bmd, "a")->id);
    assert_int_equal(plan.output_bucket_id, 0);
    assert_int_equal(plan.version, now->version);
    apply(&(struct command){.kind = CMD_JOB_CREATE, .job = job});
    job_unref(job);
}

/* All targets that take part are in it, in the order of the participants. */
static void check_sort_plan(const struct job *job, const char *in, const char *out)
{
    struct sort_plan *plan = NULL;
    assert_int_equal(sort_plan_parse(job->plan, &plan, NULL), 0);
    assert_int_equal(plan->input_bucket_id, bmd_bucket(&now->bmd, in)->id);
    assert_int_equal(plan->output_bucket_id, bmd_bucket(&now->bmd, out)->id);
    assert_int_equal(plan->count, job->participant_count);
    for (size_t i = 0; i < plan->count; i++)
        assert_string_equal(plan->ids[i], job->participants[i]);
    sort_plan_free(plan);
}

static void test_archive(void **state)
{
    (void)state;
    struct job *job = made("archive", "a", "{\"prefix\": \"\", \"archive\": \"x.tar.zst\"}");
    assert_string_equal(job->description, "a to a/x.tar.zst");
    check_sort_plan(job, "a", "a");
    job_unref(job);
    job = made("archive", "a",
               "{\"prefix\": \"\", \"archive\": \"x\", \"format\": \".zip\", \"to\": \"b\"}");
    assert_string_equal(job->description, "a to b/x");
    check_sort_plan(job, "a", "b");
    job_unref(job);
    job = made("archive", "a",
               "{\"prefix\": \"\", \"to\": {\"template\": \"x-%d.tar\"}, \"shard_size\": 1, "
               "\"order\": \"shuffle\"}");
    assert_string_equal(job->description, "a to a/x-%d.tar");
    assert_true(json_is_integer(json_object_get(job->spec, "seed"))); /* the same for all targets */
    job_unref(job);
    job = made("archive", "a",
               "{\"prefix\": \"\", \"archive\": \"x.tar\", \"order\": \"shuffle\", \"seed\": 7}");
    assert_int_equal(json_integer_value(json_object_get(job->spec, "seed")), 7);
    job_unref(job);
    refuse("archive", "a", "{\"prefix\": \"\", \"archive\": \"x\"}", E_INVALID);
    refuse("archive", "a",
           "{\"prefix\": \"\", \"to\": {\"template\": \"x-%d\"}, \"shard_size\": 1}", E_INVALID);
    refuse("archive", "a", "{\"prefix\": \"\", \"archive\": \"x.tar.xz\"}", E_INVALID);
    refuse("archive", "a", "{\"prefix\": \"\", \"archive\": \"x.tar\", \"to\": \"c\"}",
           E_BUCKET_NOT_FOUND);
}

static void test_copy(void **state)
{
    (void)state;
    struct job *job = made("copy", "a", "{\"to\": \"b\", \"description\": \"nightly\"}");
    struct objects_plan plan;
    assert_string_equal(job->description, "nightly");
    assert_int_equal(objects_plan_parse(job->plan, &plan, NULL), 0);
    assert_int_equal(plan.output_bucket_id, bmd_bucket(&now->bmd, "b")->id);
    job_unref(job);
    job = made("copy", "a", "{\"to\": \"a\", \"prepend\": \"x\"}");
    job_unref(job);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("delete", "a", "{}", E_SPEC);
    refuse("delete", "none", "{\"prefix\": \"\"}", E_BUCKET_NOT_FOUND);
    refuse("delete", "-", "{\"prefix\": \"\"}", E_NAME);
    refuse("copy", "a", "{\"to\": \"none\"}", E_BUCKET_NOT_FOUND);
    refuse("copy", "a", "{\"to\": \"a\"}", E_INVALID);
    apply(&(struct command){.kind = CMD_NODE_STATE, .name = "t2", .node_state = NODE_UNREACHABLE});
    refuse("delete", "a", "{\"prefix\": \"\"}", E_NODE_UNREACHABLE);
    apply(&(struct command){
        .kind = CMD_NODE_STATE, .name = "t2", .node_state = NODE_MAINTENANCE, .force = true});
    struct job *job = made("delete", "a", "{\"prefix\": \"\"}");
    assert_int_equal(job->participant_count, 1);
    job_unref(job);
}

static void test_fits_while_its_buckets_stand(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct job *job = made("copy", "a", "{\"to\": \"b\"}");
    assert_int_equal(objects_job_fits(job, now, &err), 0);
    apply(&(struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    assert_int_equal(objects_job_fits(job, now, &err), E_BUCKET_NOT_FOUND);
    assert_non_null(strstr(err.message, "destination"));
    job_unref(job);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_jobs_over_own_objects_say_what_serves_for_a_backend),
        TEST(test_delete),
        TEST(test_archive),
        TEST(test_copy),
        TEST(test_refusals),
        TEST(test_fits_while_its_buckets_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
