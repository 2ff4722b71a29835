/* The driver against a gateway (proxy/testing/fake_etcd.h) that loses, repeats and refuses. */
#include "proxy/metastore/etcd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/testing/random_command.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "proxy/testing/fake_etcd.h"
#include "proxy/metastore/metastore.h"

enum { TTL_MS = 1000, COMMIT_TIMEOUT_MS = 700 };

struct fixture {
    struct fake_etcd *etcd;
    struct metastore *m;
    const struct cluster_state *s; /* the last one that was committed */
    atomic_uint changes;
};

static void count_change(void *arg)
{
    struct fixture *f = arg;
    atomic_fetch_add(&f->changes, 1);
}

#define until(condition)                                     \
    do {                                                     \
        uint64_t began_ = clock_ms();                        \
        while (!(condition)) {                               \
            if (clock_ms() - began_ > 20000)                 \
                fail_msg("not within 20 s: %s", #condition); \
            usleep(2000);                                    \
        }                                                    \
    } while (0)

static uint64_t election(struct fixture *f)
{
    return f->m->ops->election(f->m);
}

static const struct cluster_state *load(struct fixture *f)
{
    struct cluster_state *s = NULL;
    struct error err = ERROR_INIT;
    if (f->m->ops->load(f->m, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static const struct cluster_state *with_bucket(const struct cluster_state *s)
{
    char name[32];
    snprintf(name, sizeof name, "b-%llu", (unsigned long long)s->version);
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    const struct command cmd = {.kind = CMD_BUCKET_CREATE, .name = name, .props = &props};
    const struct cluster_state *next;
    assert_int_equal(command_apply(s, &cmd, &next, NULL), 0);
    return next;
}

/* Commits one more bucket; f->s is the new state where that succeeds. */
static int commit(struct fixture *f, struct error *err)
{
    const struct cluster_state *next = with_bucket(f->s);
    int r = f->m->ops->commit(f->m, f->s->version == 0 ? NULL : f->s, next, err);
    if (r != 0) {
        state_unref(next);
        return r;
    }
    state_unref(f->s);
    f->s = next;
    return 0;
}

static void must_commit(struct fixture *f)
{
    struct error err = ERROR_INIT;
    if (commit(f, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(err.code, 0); /* of an attempt before: who commits may go by it */
}

static void assert_found(struct fixture *f)
{
    _cleanup_state_ const struct cluster_state *s = load(f);
    assert_non_null(s);
    _cleanup_json_ json_t *a = state_to_json(s);
    _cleanup_json_ json_t *b = state_to_json(f->s);
    assert_true(json_equal(a, b));
}

static struct metastore *open_store(struct fixture *f, const char *id, const char *urls)
{
    const struct etcd_store_config etcd = {
        .endpoints = {.urls = urls,
                      .user = "",
                      .password_file = "",
                      .ca_file = "",
                      .cert_file = "",
                      .key_file = "",
                      .connect_timeout_ms = 500},
        .prefix = "/dfc",
        .lease_ttl_ms = TTL_MS,
        .commit_timeout_ms = COMMIT_TIMEOUT_MS,
        .request_max = 1 << 20,
    };
    const struct metastore_config config = {.etcd = &etcd};
    static char public_url[] = "http://public";
    static char control_url[] = "http://control";
    const struct metastore_primary self = {
        .id = (char *)id, .public_url = public_url, .control_url = control_url};
    struct metastore *m;
    assert_int_equal(etcd_endpoints_check(&etcd.endpoints, NULL), 0);
    assert_int_equal(metastore_etcd.open(&config, &m, NULL), 0);
    assert_int_equal(m->ops->campaign(m, &self, count_change, f, NULL), 0);
    return m;
}

static void reopen(struct fixture *f, const char *urls)
{
    if (f->m != NULL)
        f->m->ops->close(f->m);
    f->m = open_store(f, "p1", urls);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    log_set_level(LOG_OFF);
    f->etcd = fake_etcd_new();
    f->s = state_new("c-1");
    _cleanup_free_ char *urls = xprintf("etcd://127.0.0.1:%u", fake_etcd_port(f->etcd));
    reopen(f, urls);
    *state = f;
    return 0;
}

/* Elected, with an empty store. */
static int setup_elected(void **state)
{
    setup(state);
    struct fixture *f = *state;
    until(election(f) != 0);
    assert_null(load(f));
    must_commit(f);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    f->m->ops->close(f->m);
    fake_etcd_free(f->etcd);
    state_unref(f->s);
    free(f);
    return 0;
}

/* --- documents ------------------------------------------------------------------------------- */

static void what_is_committed_is_found(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    rng_seed(&rng, 11);
    for (unsigned step = 0; step < 300; step++) {
        struct arena *a = arena_new(512);
        struct command cmd = random_command(&rng, f->s, a);
        const struct cluster_state *next = NULL;
        if (command_apply(f->s, &cmd, &next, NULL) == 0 && next != f->s) {
            assert_int_equal(f->m->ops->commit(f->m, f->s, next, NULL), 0);
            state_unref(f->s);
            f->s = state_ref(next);
        }
        state_unref(next);
        job_unref(cmd.job);
        json_decref(cmd.patch);
        arena_free(a);
        if (step % 60 == 0)
            assert_found(f);
    }
    assert_found(f);
}

static void many_keys(struct fixture *f)
{
    for (unsigned i = 0; i < 1200; i++) {
        _cleanup_free_ char *key = xprintf("/dfc/config/n%04u", i);
        fake_etcd_put(f->etcd, key, "\"x\"");
    }
}

static void pages_that_are_compacted_are_read_anew(void **state)
{
    struct fixture *f = *state;
    many_keys(f);
    fake_etcd_fault(f->etcd, FAKE_PAGE, FAKE_COMPACTED, 1);
    _cleanup_state_ const struct cluster_state *s = load(f);
    assert_int_equal(s->config.count, 1200);
    assert_true(fake_etcd_seen(f->etcd, FAKE_PAGE) >= 3);
    fake_etcd_fault(f->etcd, FAKE_PAGE, FAKE_COMPACTED, 1000);
    struct cluster_state *none = NULL;
    assert_int_equal(f->m->ops->load(f->m, &none, NULL), E_RANGE);
}

/* --- commits that go wrong -------------------------------------------------------------------- */

static void an_attempt_that_fails_is_repeated(void **state)
{
    static const enum fake_fault faults[] = {FAKE_LOSES_ANSWER, FAKE_LOSES_IT, FAKE_UNAVAILABLE};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        unsigned seen = fake_etcd_seen(f->etcd, FAKE_COMMIT);
        fake_etcd_fault(f->etcd, FAKE_COMMIT, faults[i], 2);
        must_commit(f);
        assert_int_equal(fake_etcd_seen(f->etcd, FAKE_COMMIT), seen + 3);
        assert_found(f);
    }
    must_commit(f); /* and the fence is right afterwards */
    assert_found(f);
}

static void an_attempt_that_comes_late_does_nothing(void **state)
{
    struct fixture *f = *state;
    fake_etcd_fault(f->etcd, FAKE_COMMIT, FAKE_KEEPS_IT, 1);
    must_commit(f);
    fake_etcd_do_kept(f->etcd);
    assert_found(f);
    must_commit(f);
    assert_found(f);
}

/* Made, the answer lost, and then another one is primary: it is told as made. */
static void what_was_made_before_the_end_is_told_so(void **state)
{
    struct fixture *f = *state;
    fake_etcd_fault(f->etcd, FAKE_COMMIT, FAKE_DEPOSES, 1);
    must_commit(f);
    assert_found(f);
    struct error err = ERROR_INIT;
    until(election(f) == 0);
    assert_int_equal(commit(f, &err), E_NOT_PRIMARY);
    assert_found(f);
}

static void another_primary_fences(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    fake_etcd_expire(f->etcd);
    fake_etcd_put(f->etcd, "/dfc/primary",
                  "{\"id\":\"p2\",\"public_url\":\"http://p2\",\"control_url\":\"http://c2\"}");
    assert_int_equal(commit(f, &err), E_NOT_PRIMARY);
    assert_int_equal(election(f), 0);
    assert_found(f);
    struct metastore_primary p;
    until(f->m->ops->primary(f->m, &p) == PRIMARY_KNOWN);
    assert_string_equal(p.id, "p2");
    assert_string_equal(p.control_url, "http://c2");
    metastore_primary_done(&p);
}

static void a_stranger_is_not_written_over(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    fake_etcd_put(f->etcd, "/dfc/head", "{\"election\": 1, \"version\": 1}");
    assert_int_equal(commit(f, &err), E_NOT_PRIMARY);
    assert_non_null(strstr(err.message, "another program"));
    assert_int_equal(election(f), 0);
}

/* The doubt ends the election before it is told. */
static void no_answer_at_all_is_doubt(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    fake_etcd_fault(f->etcd, FAKE_COMMIT, FAKE_LOSES_IT, 1000000);
    assert_int_equal(commit(f, &err), E_IN_DOUBT);
    assert_int_equal(election(f), 0);
    assert_int_equal(commit(f, &err), E_NOT_PRIMARY);
    fake_etcd_fault(f->etcd, FAKE_COMMIT, FAKE_NONE, 0);
    until(election(f) != 0); /* after a time, and then it begins by reading */
    assert_int_equal(commit(f, &err), E_NOT_PRIMARY);
    assert_found(f);
    must_commit(f);
}

static void a_refusal_is_told_unless_there_is_doubt(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    fake_etcd_fault(f->etcd, FAKE_COMMIT, FAKE_FULL, 1);
    assert_int_equal(commit(f, &err), E_NO_SPACE);
    assert_true(election(f) != 0);
    must_commit(f);
    assert_found(f);
}

/* --- elections ------------------------------------------------------------------------------- */

static void a_campaign_whose_answer_is_lost_is_won(void **state)
{
    struct fixture *f = *state;
    f->m->ops->resign(f->m);
    until(election(f) == 0);
    fake_etcd_fault(f->etcd, FAKE_CAMPAIGN, FAKE_LOSES_ANSWER, 1);
    until(election(f) != 0);
    assert_found(f);
    must_commit(f);
}

static void each_election_is_greater(void **state)
{
    struct fixture *f = *state;
    uint64_t last = election(f);
    for (int i = 0; i < 2; i++) {
        fake_etcd_expire(f->etcd);
        until(election(f) != last && election(f) != 0);
        assert_true(election(f) > last);
        last = election(f);
    }
    assert_true(atomic_load(&f->changes) >= 4);
}

/* By its own clock, before etcd ends it: a lease counts from when it was asked for. */
static void a_lease_that_is_not_renewed_is_over(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    fake_etcd_fault(f->etcd, FAKE_RENEWAL, FAKE_LOSES_IT, 1000000);
    uint64_t began = clock_ms();
    until(election(f) == 0);
    assert_true(clock_ms() - began <= TTL_MS);
    assert_int_equal(commit(f, &err), E_NOT_PRIMARY);
}

static void a_few_lost_renewals_are_survived(void **state)
{
    struct fixture *f = *state;
    uint64_t at_first = election(f);
    for (int i = 0; i < 3; i++) {
        unsigned seen = fake_etcd_seen(f->etcd, FAKE_RENEWAL);
        fake_etcd_fault(f->etcd, FAKE_RENEWAL, i == 1 ? FAKE_UNAVAILABLE : FAKE_LOSES_IT, 2);
        until(fake_etcd_seen(f->etcd, FAKE_RENEWAL) >= seen + 3);
    }
    must_commit(f);
    assert_int_equal(election(f), at_first);
}

static void the_end_gives_the_lease_back(void **state)
{
    struct fixture *f = *state;
    _cleanup_free_ char *before = fake_etcd_get(f->etcd, "/dfc/primary");
    assert_non_null(strstr(before, "\"p1\""));
    f->m->ops->close(f->m);
    f->m = NULL;
    assert_null(fake_etcd_get(f->etcd, "/dfc/primary"));
    _cleanup_free_ char *urls = xprintf("etcd://127.0.0.1:%u", fake_etcd_port(f->etcd));
    reopen(f, urls);
    until(election(f) != 0);
    assert_found(f);
}

/* The first member is not there, the second one is. */
static void a_dead_member_is_passed_over(void **state)
{
    struct fixture *f = *state;
    _cleanup_free_ char *urls = xprintf("etcd://127.0.0.1:1,127.0.0.1:%u", fake_etcd_port(f->etcd));
    reopen(f, urls);
    until(election(f) != 0);
    assert_found(f);
    must_commit(f);
}

static void endpoints_are_checked(void **unused)
{
    (void)unused;
    static const struct {
        const char *urls, *user, *password, *ca, *cert, *key;
        bool ok;
    } rows[] = {
        {"etcd://h:1", "", "", "", "", "", true},
        {"etcd://h:1,i:2,[::1]:3", "", "", "", "", "", true},
        {"etcds://h:1", "u", "/p", "/a", "/c", "/k", true},
        {"etcd://127.0.0.1:1,[::1]:2,localhost:3", "u", "/p", "", "", "", true},
        {"etcd://h:1", "u", "/p", "", "", "", false}, /* the password could be read on the way */
        {"etcd://127.0.0.1:1,10.0.0.1:2", "u", "/p", "", "", "", false},
        {"etcd://127.0.0.1.evil:1", "u", "/p", "", "", "", false},
        {"etcd://", "", "", "", "", "", false},
        {"etcd://h:1,,i:2", "", "", "", "", "", false},
        {"etcd://h:1/v3", "", "", "", "", "", false},
        {"http://h:1", "", "", "", "", "", false},
        {"embeded", "", "", "", "", "", false},
        {"etcd://h:1", "u", "", "", "", "", false},
        {"etcd://h:1", "", "", "/a", "", "", false},
        {"etcds://h:1", "", "", "", "/c", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct etcd_endpoints e = {.urls = rows[i].urls,
                                         .user = rows[i].user,
                                         .password_file = rows[i].password,
                                         .ca_file = rows[i].ca,
                                         .cert_file = rows[i].cert,
                                         .key_file = rows[i].key};
        if ((etcd_endpoints_check(&e, NULL) == 0) != rows[i].ok)
            fail_msg("row %zu", i);
    }
}

#define elected_test(name) cmocka_unit_test_setup_teardown(name, setup_elected, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        elected_test(what_is_committed_is_found),
        elected_test(pages_that_are_compacted_are_read_anew),
        elected_test(an_attempt_that_fails_is_repeated),
        elected_test(an_attempt_that_comes_late_does_nothing),
        elected_test(what_was_made_before_the_end_is_told_so),
        elected_test(another_primary_fences),
        elected_test(a_stranger_is_not_written_over),
        elected_test(no_answer_at_all_is_doubt),
        elected_test(a_refusal_is_told_unless_there_is_doubt),
        elected_test(a_campaign_whose_answer_is_lost_is_won),
        elected_test(each_election_is_greater),
        elected_test(a_lease_that_is_not_renewed_is_over),
        elected_test(a_few_lost_renewals_are_survived),
        elected_test(the_end_gives_the_lease_back),
        elected_test(a_dead_member_is_passed_over),
        cmocka_unit_test(endpoints_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
