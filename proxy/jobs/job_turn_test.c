#include "proxy/jobs/job_turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { JOBS = 3 };

struct queue {
    struct job *jobs[JOBS];
    struct cluster_state state;
};

static void queue_init(struct queue *q, const int buckets[JOBS], const char *const formats[JOBS])
{
    *q = (struct queue){.state = {.jobs = {.count = JOBS, .jobs = q->jobs}}};
    for (int i = 0; i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "srt-%d", i);
        q->jobs[i] = job_new(id, "sort");
        q->jobs[i]->state = JOB_QUEUED;
        q->jobs[i]->plan = json_pack("{s:i}", "output_bucket_id", buckets[i]);
        q->jobs[i]->spec = json_pack("{s:s}", "output_format", formats[i]);
    }
}

static void queue_done(struct queue *q)
{
    for (int i = 0; i < JOBS; i++)
        job_unref(q->jobs[i]);
}

static void test_same_names_wait(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, (const int[]){1, 1, 1},
               (const char *const[]){"o-%06d.tar", "o-{0..9}.tar", "o-1-%06d.tar"});
    assert_false(job_must_wait(q.jobs[0], &q.state));
    assert_true(job_must_wait(q.jobs[1], &q.state));
    assert_true(job_must_wait(q.jobs[2], &q.state));
    q.jobs[0]->state = JOB_COMMITTING;
    assert_true(job_must_wait(q.jobs[1], &q.state));
    q.jobs[0]->state = JOB_FINISHED;
    assert_false(job_must_wait(q.jobs[1], &q.state));
    assert_true(job_must_wait(q.jobs[2], &q.state));
    queue_done(&q);
}

static void test_others_do_not_wait(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, (const int[]){1, 2, 1},
               (const char *const[]){"a-%06d.tar", "a-%06d.tar", "b-%06d.tar"});
    assert_false(job_must_wait(q.jobs[1], &q.state));
    assert_false(job_must_wait(q.jobs[2], &q.state));
    queue_done(&q);
}

/* A copy into the bucket, and deletions, hold no names. */
static void test_jobs_that_hide_nothing_do_not_wait(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, (const int[]){1, 1, 1}, (const char *const[]){"a-%d", "a-%d", "a-%d"});
    json_object_del(q.jobs[0]->spec, "output_format");
    json_object_del(q.jobs[1]->spec, "output_format");
    assert_false(job_must_wait(q.jobs[0], &q.state));
    assert_false(job_must_wait(q.jobs[1], &q.state));
    assert_false(job_must_wait(q.jobs[2], &q.state));
    queue_done(&q);
}

/* The index of a whole output is a name besides those of the template. */
static void test_same_indexes_wait(void **state)
{
    (void)state;
    static const char *const indexes[] = {"index.json", "index.json", "b-index.json"};
    struct queue q;
    queue_init(&q, (const int[]){1, 1, 1}, (const char *const[]){"a-%d", "b-%d", "c-%d"});
    for (int i = 0; i < JOBS; i++)
        json_object_set_new(q.jobs[i]->spec, "wids_index", json_string(indexes[i]));
    assert_true(job_must_wait(q.jobs[1], &q.state));
    assert_false(job_must_wait(q.jobs[2], &q.state));
    json_object_del(q.jobs[1]->spec, "wids_index");
    assert_false(job_must_wait(q.jobs[1], &q.state));
    queue_done(&q);
}

/* It makes nothing, and so holds no names; nor are any held from it. */
static void test_a_dry_run_takes_no_turns(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, (const int[]){1, 1, 1}, (const char *const[]){"a-%d", "a-%d", "a-%d"});
    json_object_set_new(q.jobs[1]->spec, "dry_run", json_true());
    assert_false(job_must_wait(q.jobs[1], &q.state));
    assert_true(job_must_wait(q.jobs[2], &q.state));
    json_object_set_new(q.jobs[0]->spec, "dry_run", json_true());
    assert_false(job_must_wait(q.jobs[2], &q.state));
    queue_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_names_wait),
        cmocka_unit_test(test_others_do_not_wait),
        cmocka_unit_test(test_jobs_that_hide_nothing_do_not_wait),
        cmocka_unit_test(test_same_indexes_wait),
        cmocka_unit_test(test_a_dry_run_takes_no_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
