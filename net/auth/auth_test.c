/* Two nodes without a network between them: greetings, sessions, signatures, and what is refused.
 */
#include "net/auth/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* --- nodes ------------------------------------------------------------------------------------ */

static char *key_file(const char *text, mode_t mode)
{
    char *path = xstrdup("/tmp/dfc-auth-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static struct auth *node(const char *name, const char *keys)
{
    _cleanup_free_ char *path = keys != NULL ? key_file(keys, 0600) : xstrdup("");
    const struct auth_config config = {.key_file = path, .node = name, .boot = "boot"};
    struct auth *a;
    struct error err = ERROR_INIT;
    if (auth_new(&config, &a, &err) != 0)
        fail_msg("%s", err.message);
    if (keys != NULL)
        unlink(path);
    return a;
}

struct link {
    char id[2 * AUTH_SESSION_BYTES + 1];
    unsigned char key[AUTH_MAC_BYTES];
};

static int hear(struct auth *server, const char *text, char **answer, struct error *err)
{
    bool opened;
    return auth_answer(server, text, strlen(text), answer, &opened, err);
}

/* A greeting for the server, with a challenge of its own; malloc'ed. */
static char *greet(struct auth *client, struct auth *server, struct auth_opening *o)
{
    struct error err = ERROR_INIT;
    _cleanup_free_ char *question = auth_ask(client, o);
    _cleanup_free_ char *answer = NULL;
    if (hear(server, question, &answer, &err) != 0 ||
        auth_caller_challenged(o, answer, strlen(answer), &err) != 0)
        fail_msg("%s", err.message);
    return auth_greet(client, o);
}

/* As a node of the earlier release greets; malloc'ed. */
static char *greet_earlier(struct auth *client, struct auth_opening *o)
{
    *o = (struct auth_opening){0};
    return auth_greet(client, o);
}

static int open_between(struct auth *client, struct auth *server, struct link *l, struct error *err)
{
    struct auth_opening o;
    _cleanup_free_ char *question = auth_ask(client, &o);
    _cleanup_free_ char *challenge = NULL;
    int code = hear(server, question, &challenge, err);
    if (code == 0)
        code = auth_caller_challenged(&o, challenge, strlen(challenge), err);
    if (code != 0)
        return code;
    _cleanup_free_ char *greeting = auth_greet(client, &o);
    _cleanup_free_ char *answer = NULL;
    code = hear(server, greeting, &answer, err);
    return code != 0 ? code : auth_opened(client, &o, answer, strlen(answer), l->id, l->key, err);
}

static void need_open(struct auth *client, struct auth *server, struct link *l)
{
    struct error err = ERROR_INIT;
    if (open_between(client, server, l, &err) != 0)
        fail_msg("%s", err.message);
}

static void text_of(const char *path, uint64_t counter, const struct link *l, struct buf *text)
{
    const struct auth_request r = {.session = l->id,
                                   .counter = counter,
                                   .method = "GET",
                                   .path = path,
                                   .query = "",
                                   .digest = "-"};
    auth_request_text(&r, text);
}

static struct auth_claim sign(const struct link *l, const char *path, uint64_t counter)
{
    struct auth_claim c = {.counter = counter, .digest = "-"};
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    snprintf(c.session, sizeof c.session, "%s", l->id);
    text_of(path, counter, l, &text);
    auth_request_mac(l->key, &text, c.mac);
    return c;
}

static enum auth_verdict ask(struct auth *server, const struct link *l, const struct auth_claim *c,
                             const char *path)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    text_of(path, c->counter, l, &text);
    return auth_check(server, c, &text);
}

/* --- sessions --------------------------------------------------------------------------------- */

static void test_a_signature_counts_once(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A);
    struct link l;
    need_open(p, t, &l);
    const struct auth_claim one = sign(&l, "/one", 1), two = sign(&l, "/two", 2);
    assert_int_equal(ask(t, &l, &two, "/two"), AUTH_PROVEN);
    assert_int_equal(ask(t, &l, &one, "/one"), AUTH_PROVEN); /* overtaken on the way */
    assert_int_equal(ask(t, &l, &one, "/one"), AUTH_REPLAYED);
    assert_int_equal(ask(t, &l, &two, "/two"), AUTH_REPLAYED);
    auth_free(p);
    auth_free(t);
}

static void test_a_signature_is_of_one_request(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A);
    struct link l;
    need_open(p, t, &l);
    struct auth_claim c = sign(&l, "/one", 1);
    assert_int_equal(ask(t, &l, &c, "/other"), AUTH_BAD_MAC);
    c.counter = 2;
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_BAD_MAC);
    c.counter = 1;
    c.mac[5] = c.mac[5] == '0' ? '1' : '0';
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_BAD_MAC);
    c = sign(&l, "/one", 1); /* none of these has used it up */
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_PROVEN);
    auth_free(p);
    auth_free(t);
}

static void test_a_node_that_began_anew_knows_no_session(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A);
    struct link l;
    need_open(p, t, &l);
    const struct auth_claim c = sign(&l, "/one", 1);
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_PROVEN);
    auth_free(t);
    t = node("t1", KEY_A);
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_NO_SESSION);
    need_open(p, t, &l);
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_NO_SESSION); /* the replay, once more */
    const struct auth_claim again = sign(&l, "/one", 1);
    assert_int_equal(ask(t, &l, &again, "/one"), AUTH_PROVEN);
    auth_free(p);
    auth_free(t);
}

static void test_who_has_another_key_is_refused(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_B), *t = node("t1", KEY_A);
    struct link l;
    struct error err = ERROR_INIT;
    assert_int_equal(open_between(p, t, &l, &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "another cluster key"));
    auth_free(p);
    auth_free(t);
}

static void test_a_greeting_that_was_changed_is_refused(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A);
    struct auth_opening o;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *greeting = greet(p, t, &o);
    _cleanup_free_ char *answer = NULL;
    char *name = strstr(greeting, "\"p1\"");
    assert_non_null(name);
    name[2] = '2';
    assert_int_equal(hear(t, greeting, &answer, &err), E_UNAUTHORIZED);
    assert_int_equal(hear(t, "{}", &answer, &err), E_JSON);
    assert_int_equal(hear(t, "{\"ask\": \"challenge\"}", &answer, &err), E_JSON);
    assert_int_equal(hear(t, "x", &answer, &err), E_JSON);
    assert_null(answer);
    name[2] = '1'; /* no changed one has used the challenge up */
    assert_int_equal(hear(t, greeting, &answer, &err), 0);
    auth_free(p);
    auth_free(t);
}

static void test_a_greeting_is_for_one_session_at_one_process(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A), *namesake = node("t1", KEY_A);
    struct auth *other = node("t2", KEY_A);
    struct auth_opening o;
    struct link l;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *greeting = greet(p, t, &o);
    _cleanup_free_ char *answer = NULL, *again = NULL;
    assert_int_equal(hear(other, greeting, &again, &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "for node 't2'"));
    assert_int_equal(hear(namesake, greeting, &again, &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "not of this process"));
    assert_int_equal(hear(t, greeting, &answer, &err), 0);
    assert_int_equal(hear(t, greeting, &again, &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "was sent before"));
    assert_null(again);
    assert_int_equal(auth_opened(p, &o, answer, strlen(answer), l.id, l.key, &err), 0);
    auth_free(p);
    auth_free(t);
    auth_free(namesake);
    auth_free(other);
}

/* Who carries packets elsewhere gives the challenge of one node and the answer of another. */
static void test_the_answer_is_of_the_node_that_gave_the_challenge(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A);
    struct auth_opening o;
    struct link l;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *greeting = greet(p, t, &o);
    _cleanup_free_ char *answer = NULL;
    assert_int_equal(hear(t, greeting, &answer, &err), 0);
    snprintf(o.node, sizeof o.node, "t2");
    assert_int_equal(auth_opened(p, &o, answer, strlen(answer), l.id, l.key, &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "node 't1' answers a greeting for node 't2'"));
    auth_free(p);
    auth_free(t);
}

/* Who carries packets elsewhere lets the whole conversation be with another node, also in the
 * earlier form: the opening names that node. */
static void test_a_session_names_the_node_that_answers(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t2", KEY_A);
    struct auth_opening o;
    struct link l;
    struct error err = ERROR_INIT;
    for (int earlier = 0; earlier <= 1; earlier++) {
        _cleanup_free_ char *greeting = earlier ? greet_earlier(p, &o) : greet(p, t, &o);
        _cleanup_free_ char *answer = NULL;
        assert_int_equal(hear(t, greeting, &answer, &err), 0);
        assert_int_equal(auth_opened(p, &o, answer, strlen(answer), l.id, l.key, &err), 0);
        assert_string_equal(o.node, "t2");
    }
    auth_free(p);
    auth_free(t);
}

/* Of the earlier form: sent again it gives another session, of whose key the nonce of the other
 * side is a part. */
static void test_an_earlier_greeting_that_was_overheard_gives_no_key(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A);
    struct auth_opening o;
    struct link l, other;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *greeting = greet_earlier(p, &o);
    _cleanup_free_ char *one = NULL, *two = NULL;
    assert_int_equal(hear(t, greeting, &one, &err), 0);
    assert_int_equal(hear(t, greeting, &two, &err), 0);
    assert_int_equal(auth_opened(p, &o, one, strlen(one), l.id, l.key, &err), 0);
    assert_int_equal(auth_opened(p, &o, two, strlen(two), other.id, other.key, &err), 0);
    assert_string_not_equal(l.id, other.id);
    assert_memory_not_equal(l.key, other.key, AUTH_MAC_BYTES);
    const struct auth_claim c = sign(&l, "/one", 1);
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_PROVEN);
    auth_free(p);
    auth_free(t);
}

/* Greetings of both forms that were overheard, sent again and again, push out nobody's session. */
static void test_greetings_sent_again_push_out_nobody(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *other = node("p2", KEY_A), *t = node("t1", KEY_A);
    struct auth_opening o;
    struct link l;
    _cleanup_free_ char *overheard = greet(p, t, &o);
    _cleanup_free_ char *earlier = greet_earlier(p, &o);
    need_open(other, t, &l);
    for (size_t i = 0; i < 300; i++) {
        _cleanup_free_ char *answer = NULL;
        _cleanup_free_ char *another = NULL;
        assert_int_equal(hear(t, overheard, &answer, NULL), i == 0 ? 0 : E_UNAUTHORIZED);
        assert_int_equal(hear(t, earlier, &another, NULL), 0);
    }
    const struct auth_claim c = sign(&l, "/one", 1);
    assert_int_equal(ask(t, &l, &c, "/one"), AUTH_PROVEN);
    auth_free(p);
    auth_free(other);
    auth_free(t);
}

static void test_an_answer_without_the_key_is_refused(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", KEY_A);
    struct auth_opening o, later;
    struct link l;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *greeting = greet(p, t, &o);
    _cleanup_free_ char *next = greet(p, t, &later);
    _cleanup_free_ char *answer = NULL;
    assert_int_equal(hear(t, greeting, &answer, &err), 0);
    assert_int_equal(auth_opened(p, &later, answer, strlen(answer), l.id, l.key, &err),
                     E_UNAUTHORIZED); /* an answer to something else */
    char *session = strstr(answer, "\"session\"");
    assert_non_null(session);
    session[14] = session[14] == '0' ? '1' : '0';
    assert_int_equal(auth_opened(p, &o, answer, strlen(answer), l.id, l.key, &err), E_UNAUTHORIZED);
    auth_free(p);
    auth_free(t);
}

static void test_without_a_key_there_is_no_session(void **state)
{
    (void)state;
    struct auth *p = node("p1", KEY_A), *t = node("t1", NULL);
    struct link l;
    assert_true(auth_has_key(p));
    assert_false(auth_has_key(t));
    assert_int_equal(open_between(p, t, &l, NULL), E_UNSUPPORTED);
    auth_free(p);
    auth_free(t);
}

/* A new key, node by node: at each step both kinds of node understand one another. */
static void test_keys_are_changed_without_a_pause(void **state)
{
    (void)state;
    static const char *const steps[] = {KEY_A, KEY_A "\n" KEY_B "\n", KEY_B "\n" KEY_A "\n", KEY_B};
    for (size_t i = 0; i + 1 < sizeof steps / sizeof steps[0]; i++) {
        struct auth *old = node("p1", steps[i]), *new = node("t1", steps[i + 1]);
        struct link l;
        need_open(old, new, &l);
        need_open(new, old, &l);
        auth_free(old);
        auth_free(new);
    }
}

/* --- the table of sessions -------------------------------------------------------------------- */

static void test_fresh_sessions_push_out_one_another(void **state)
{
    (void)state;
    struct auth_sessions *s = auth_sessions_new(2, 2);
    auth_sessions_used(s, auth_sessions_add(s, ROOM_FRESH, "proven"));
    auth_sessions_add(s, ROOM_FRESH, "one");
    auth_sessions_add(s, ROOM_FRESH, "two");
    auth_sessions_add(s, ROOM_FRESH, "three");
    auth_sessions_add(s, ROOM_EARLIER, "earlier");
    assert_non_null(auth_sessions_find(s, "earlier"));
    assert_null(auth_sessions_find(s, "one"));
    assert_non_null(auth_sessions_find(s, "two"));
    assert_non_null(auth_sessions_find(s, "three"));
    assert_non_null(auth_sessions_find(s, "proven"));
    assert_int_equal(auth_sessions_count(s), 4);
    auth_sessions_free(s);
}

static void test_the_least_recently_used_goes(void **state)
{
    (void)state;
    struct auth_sessions *s = auth_sessions_new(2, 2);
    auth_sessions_used(s, auth_sessions_add(s, ROOM_FRESH, "one"));
    auth_sessions_used(s, auth_sessions_add(s, ROOM_FRESH, "two"));
    auth_sessions_used(s, auth_sessions_find(s, "one"));
    auth_sessions_used(s, auth_sessions_add(s, ROOM_FRESH, "three"));
    assert_non_null(auth_sessions_find(s, "one"));
    assert_null(auth_sessions_find(s, "two"));
    assert_non_null(auth_sessions_find(s, "three"));
    auth_sessions_free(s);
}

/* --- texts ------------------------------------------------------------------------------------ */

static void test_claims(void **state)
{
    (void)state;
    struct auth_claim c = {.session = "ab", .counter = 12, .digest = "-", .mac = "cd"}, back;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    auth_claim_text(&c, &text);
    assert_string_equal(buf_str(&text), "1 ab 12 - cd");
    assert_true(auth_claim_parse(buf_str(&text), &back));
    assert_string_equal(back.session, "ab");
    assert_int_equal(back.counter, 12);
    assert_string_equal(back.digest, "-");
    assert_string_equal(back.mac, "cd");
    static const char *const bad[] = {"",
                                      "1",
                                      "2 ab 12 - cd",
                                      "1 ab 12 -",
                                      "1 ab x - c",
                                      "1 ab -1 - c",
                                      "1 ab 12 - cd e",
                                      "1  ab 12 - cd",
                                      "1 ab 99999999999999999999999 - cd"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (auth_claim_parse(bad[i], &back))
            fail_msg("'%s' was taken", bad[i]);
    }
    char longer[200];
    memset(longer, 'a', sizeof longer);
    memcpy(longer, "1 ", 2);
    longer[sizeof longer - 1] = '\0';
    assert_false(auth_claim_parse(longer, &back));
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const near[] = {"127.0.0.1", "127.9.9.9", "::1"};
    static const char *const far[] = {"0.0.0.0", "192.0.2.1", "::", "2001:db8::1", "host.example"};
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
        assert_int_equal(auth_check_address("", near[i], NULL), 0);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        assert_int_equal(auth_check_address("", far[i], NULL), E_INVALID);
        assert_int_equal(auth_check_address("/key", far[i], NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signature_counts_once),
        cmocka_unit_test(test_a_signature_is_of_one_request),
        cmocka_unit_test(test_a_node_that_began_anew_knows_no_session),
        cmocka_unit_test(test_who_has_another_key_is_refused),
        cmocka_unit_test(test_a_greeting_that_was_changed_is_refused),
        cmocka_unit_test(test_a_greeting_is_for_one_session_at_one_process),
        cmocka_unit_test(test_the_answer_is_of_the_node_that_gave_the_challenge),
        cmocka_unit_test(test_a_session_names_the_node_that_answers),
        cmocka_unit_test(test_an_earlier_greeting_that_was_overheard_gives_no_key),
        cmocka_unit_test(test_greetings_sent_again_push_out_nobody),
        cmocka_unit_test(test_an_answer_without_the_key_is_refused),
        cmocka_unit_test(test_without_a_key_there_is_no_session),
        cmocka_unit_test(test_keys_are_changed_without_a_pause),
        cmocka_unit_test(test_fresh_sessions_push_out_one_another),
        cmocka_unit_test(test_the_least_recently_used_goes),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
