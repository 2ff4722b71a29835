/* Users, keys, roles and grants. */
#include "cluster/testing/command_fixture.h"

#define ROOT "0000000000000000000000000000000a"
#define CHIEF "0000000000000000000000000000000b"
#define ANNA "0000000000000000000000000000000c"
#define NEW "0000000000000000000000000000000d"
#define KEY(last) "DFC4AAAAAAAAAAAAAAA" last

/* The patch is parsed, and released with the command's end. */
static int try_json(const struct cluster_state *s, struct command cmd, const char *patch,
                    const struct cluster_state **next, struct error *err)
{
    _cleanup_json_ json_t *doc = patch != NULL ? json_loads(patch, 0, NULL) : NULL;
    assert_true(patch == NULL || doc != NULL);
    cmd.patch = doc;
    *next = NULL;
    return command_apply(s, &cmd, next, err);
}

static void apply_json(const struct cluster_state **s, struct command cmd, const char *patch)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (try_json(*s, cmd, patch, &next, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(next->access.version, (*s)->access.version + 1);
    state_unref(*s);
    *s = next;
}

static void refuse_json(const struct cluster_state *s, struct command cmd, const char *patch,
                        int code)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    int r = try_json(s, cmd, patch, &next, &err);
    if (r != code)
        fail_msg("%s gave %s: %s", patch, error_name(r), err.message);
}

static const struct command add_new = {.kind = CMD_USER_ADD, .text = NEW};

static void add(const struct cluster_state **s, const char *id, const char *patch)
{
    apply_json(s, (struct command){.kind = CMD_USER_ADD, .text = id}, patch);
}

/* root may do everything; chief manages users, and reads some buckets; anna does neither. */
static const struct cluster_state *people(void)
{
    const struct cluster_state *s = cluster();
    add(&s, ROOT, "{\"name\": \"root\", \"roles\": [\"admin\"]}");
    add(&s, CHIEF,
        "{\"name\": \"chief\", \"grants\": [{\"rights\": [\"users\", \"see\"]}, "
        "{\"rights\": [\"list\", \"read\"], \"bucket\": \"b*\"}]}");
    add(&s, ANNA, "{\"name\": \"anna\"}");
    return s;
}

static void a_state_without_users_has_no_document(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    _cleanup_json_ json_t *before = state_to_json(s);
    assert_null(json_object_get(before, "access"));
    assert_int_equal(state_format(s), 1);
    add(&s, ANNA, "{\"name\": \"anna\"}");
    assert_int_equal(state_format(s), 3);
    apply(&s, (struct command){.kind = CMD_USER_REMOVE, .name = "anna"});
    assert_int_equal(state_format(s), 3); /* its version must not begin again */
}

static void a_user_is_added_changed_and_removed(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    struct command change = {.kind = CMD_USER_CHANGE, .name = "anna", .wall_ms = 500};
    refuse_json(s, add_new, "{\"name\": \"anna\"}", E_USER_EXISTS);
    refuse_json(s, add_new, "{\"name\": \"an na\"}", E_NAME);
    refuse_json(s, add_new, "{\"name\": \"ben\", \"password\": \"x\"}", E_JSON);
    refuse_json(s, add_new, "{\"name\": \"ben\", \"roles\": [\"nobody\"]}", E_ROLE_NOT_FOUND);
    refuse_json(s, add_new, "{\"name\": \"anonymous\", \"kind\": \"anonymous\"}", E_INVALID);
    refuse_json(s, (struct command){.kind = CMD_USER_ADD, .text = ANNA}, "{\"name\": \"ben\"}",
                E_EXISTS);
    refuse_json(s, change, "{\"name\": \"ben\"}", E_JSON);
    apply_json(&s, change, "{\"roles\": [\"reader\"], \"rate\": {\"requests\": 5}}");
    assert_int_equal(access_user(&s->access, "anna")->tokens_after_ms, 0);
    apply_json(&s, change, "{\"enabled\": false}");
    assert_int_equal(access_user(&s->access, "anna")->tokens_after_ms, 500);
    assert_int_equal(access_user(&s->access, "anna")->role_count, 1);
    apply(&s, (struct command){.kind = CMD_USER_REMOVE, .name = "anna"});
    assert_null(access_user(&s->access, "anna"));
    refuse_json(s, change, "{\"enabled\": true}", E_USER_NOT_FOUND);
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "users_max", .text = "2"});
    refuse_json(s, add_new, "{\"name\": \"ben\"}", E_OVERLOAD);
}

static void a_token_that_was_withdrawn_stays_so(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    struct command change = {.kind = CMD_USER_CHANGE, .name = "anna", .wall_ms = 500};
    struct command set = {
        .kind = CMD_PASSWORD, .name = "anna", .text = "scrypt:15:8:1:a:b", .wall_ms = 70};
    apply_json(&s, change, "{\"tokens_after_ms\": 400}");
    refuse_json(s, change, "{\"tokens_after_ms\": 0}", E_INVALID);
    refuse_json(s, change, "{\"tokens_after_ms\": 399}", E_INVALID);
    refuse_json(s, change, "{\"enabled\": false, \"tokens_after_ms\": 1}", E_INVALID);
    refuse_json(s, change, "{\"tokens_after_ms\": 300501}", E_INVALID); /* never to be taken back */
    refuse_json(s, change, "{\"tokens_after_ms\": 9223372036854775807}", E_INVALID);
    apply(&s, set); /* a primary with a clock that is behind */
    assert_int_equal(access_user(&s->access, "anna")->tokens_after_ms, 400);
    apply_json(&s, change, "{\"tokens_after_ms\": 300500}"); /* a client whose clock is ahead */
    assert_int_equal(access_user(&s->access, "anna")->tokens_after_ms, 300500);
    apply_json(&s, change, "{\"rate\": {\"requests\": 5}}");
}

static void a_user_has_two_keys_at_most(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    static const struct access_key keys[] = {
        {.access = KEY("1"), .secret = "s1"},
        {.access = KEY("2"), .secret = "s2"},
        {.access = KEY("3"), .secret = "s3"},
    };
    struct command key = {.kind = CMD_KEY_ADD, .name = "anna", .key = &keys[0]};
    struct command drop = {.kind = CMD_KEY_REMOVE, .name = "anna", .text = KEY("1")};
    apply(&s, key);
    key.name = "chief";
    assert_refused(s, key, E_EXISTS);
    key = (struct command){.kind = CMD_KEY_ADD, .name = "anna", .key = &keys[1]};
    apply(&s, key);
    assert_string_equal(access_key_owner(&s->access, KEY("2"))->user->name, "anna");
    key.key = &keys[2];
    assert_refused(s, key, E_OVERLOAD);
    apply(&s, drop);
    assert_null(access_key_owner(&s->access, KEY("1")));
    assert_int_equal(access_user(&s->access, "anna")->tokens_after_ms, 0);
    assert_refused(s, drop, E_NOT_FOUND);
    apply(&s, key);
}

static void root_is_made_and_made_good_again(void **unused)
{
    (void)unused;
    static const struct access_key keys[] = {{.access = KEY("1"), .secret = "s1"},
                                             {.access = KEY("2"), .secret = "s2"}};
    struct command root = {.kind = CMD_ROOT_KEY, .text = ROOT, .key = &keys[0], .wall_ms = 70};
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s, root);
    const struct user *u = access_user(&s->access, USER_ROOT);
    assert_string_equal(u->id, ROOT);
    assert_true(u->enabled && access_is_admin(&s->access, u));
    assert_int_equal(u->tokens_after_ms, 0);
    apply_json(&s, (struct command){.kind = CMD_USER_CHANGE, .name = USER_ROOT, .wall_ms = 80},
               "{\"enabled\": false, \"roles\": []}");
    apply(&s,
          (struct command){.kind = CMD_PASSWORD, .name = USER_ROOT, .text = "scrypt:15:8:1:a:b"});
    root = (struct command){.kind = CMD_ROOT_KEY, .text = NEW, .key = &keys[1], .wall_ms = 90};
    apply(&s, root);
    u = access_user(&s->access, USER_ROOT);
    assert_string_equal(u->id, ROOT); /* buckets know their owner by it */
    assert_true(u->enabled && access_is_admin(&s->access, u));
    assert_string_equal(u->password, "");
    assert_int_equal(u->tokens_after_ms, 90);
    assert_int_equal(u->key_count, 1);
    assert_null(access_key_owner(&s->access, KEY("1")));
    assert_ptr_equal(access_key_owner(&s->access, KEY("2"))->user, u);
}

static void root_takes_nobodys_key_or_id(void **unused)
{
    (void)unused;
    static const struct access_key key = {.access = KEY("1"), .secret = "s1"};
    struct command root = {.kind = CMD_ROOT_KEY, .text = ANNA, .key = &key};
    _cleanup_state_ const struct cluster_state *s = cluster();
    add(&s, ANNA, "{\"name\": \"anna\"}");
    assert_refused(s, root, E_EXISTS);
    root.text = ROOT;
    apply(&s, (struct command){.kind = CMD_KEY_ADD, .name = "anna", .key = &key});
    assert_refused(s, root, E_EXISTS);
}

static void secrets_are_sealed_anew(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    static const struct access_key key = {.access = KEY("1"), .secret = "old"};
    const struct command reseal = {.kind = CMD_RESEAL};
    const struct cluster_state *next;
    apply(&s, (struct command){.kind = CMD_KEY_ADD, .name = "anna", .key = &key});
    apply_json(&s, reseal, "{\"" KEY("1") "\": \"new\", \"" KEY("9") "\": \"gone\"}");
    assert_string_equal(access_key_owner(&s->access, KEY("1"))->key->secret, "new");
    assert_int_equal(s->access.user_count, 3);
    assert_int_equal(try_json(s, reseal, "{\"" KEY("1") "\": \"new\"}", &next, NULL), 0);
    assert_ptr_equal(next, s);
    state_unref(next);
}

static void a_password_is_a_persons(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    struct command set = {
        .kind = CMD_PASSWORD, .name = "anna", .text = "scrypt:15:8:1:a:b", .wall_ms = 70};
    apply(&s, set);
    assert_string_equal(access_user(&s->access, "anna")->password, set.text);
    assert_int_equal(access_user(&s->access, "anna")->tokens_after_ms, 70);
    assert_unchanged(s, set);
    refuse_json(s, (struct command){.kind = CMD_USER_CHANGE, .name = "anna"},
                "{\"kind\": \"service\"}", E_INVALID);
    apply_json(&s, add_new, "{\"name\": \"robot\", \"kind\": \"service\"}");
    set.name = "robot";
    assert_refused(s, set, E_INVALID);
}

static void roles_are_put_and_removed(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    const struct command put = {.kind = CMD_ROLE_PUT};
    const struct command drop = {.kind = CMD_ROLE_REMOVE, .name = "lab"};
    const struct command change = {.kind = CMD_USER_CHANGE, .name = "anna"};
    assert_refused(s, drop, E_ROLE_NOT_FOUND);
    refuse_json(s, put, "{\"name\": \"admin\", \"grants\": []}", E_INVALID);
    assert_refused(s, (struct command){.kind = CMD_ROLE_REMOVE, .name = "admin"}, E_INVALID);
    apply_json(&s, put, "{\"name\": \"lab\", \"grants\": [{\"rights\": [\"jobs\"]}]}");
    apply_json(&s, change, "{\"roles\": [\"lab\"]}");
    assert_refused(s, drop, E_PRECONDITION);
    apply_json(&s, put, "{\"name\": \"lab\", \"grants\": [{\"rights\": [\"see\"]}]}");
    apply_json(&s, change, "{\"roles\": []}");
    apply(&s, drop);
    for (int i = 0; i < ROLES_MAX; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"name\": \"r%d\"}", i);
        apply_json(&s, put, text);
    }
    refuse_json(s, put, "{\"name\": \"more\"}", E_OVERLOAD);
}

static uint32_t rights_at(const struct cluster_state *s, const char *user, size_t grant)
{
    return access_user(&s->access, user)->grants.items[grant].rights;
}

static void grants_add_up_and_are_taken_away(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    const struct command grant = {.kind = CMD_GRANT, .name = "anna"};
    const struct command revoke = {.kind = CMD_REVOKE, .name = "anna"};
    apply_json(&s, grant, "{\"rights\": [\"read\"], \"bucket\": \"b\"}");
    apply_json(&s, grant, "{\"rights\": [\"list\"], \"bucket\": \"b\"}");
    apply_json(&s, grant, "{\"rights\": [\"write\"], \"bucket\": \"b\", \"prefix\": \"a/\"}");
    assert_int_equal(access_user(&s->access, "anna")->grants.count, 2);
    assert_int_equal(rights_at(s, "anna", 0), right_bit(RIGHT_READ) | right_bit(RIGHT_LIST));
    refuse_json(s, revoke, "{\"rights\": [\"write\"], \"bucket\": \"b\"}", E_NOT_FOUND);
    apply_json(&s, revoke, "{\"rights\": [\"read\", \"write\"], \"bucket\": \"b\"}");
    assert_int_equal(rights_at(s, "anna", 0), right_bit(RIGHT_LIST));
    apply_json(&s, revoke, "{\"rights\": [\"list\"], \"bucket\": \"b\"}");
    assert_int_equal(access_user(&s->access, "anna")->grants.count, 1);
    for (int i = 1; i < GRANTS_MAX; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"rights\": [\"read\"], \"bucket\": \"c%d\"}", i);
        apply_json(&s, grant, text);
    }
    refuse_json(s, grant, "{\"rights\": [\"read\"], \"bucket\": \"d\"}", E_OVERLOAD);
}

static void everybody_gets_few_rights(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    static const struct access_key key = {.access = KEY("1"), .secret = "s"};
    const struct command grant = {.kind = CMD_GRANT, .name = USER_ANONYMOUS};
    refuse_json(s, grant, "{\"rights\": [\"delete\"], \"bucket\": \"b\"}", E_INVALID);
    refuse_json(s, grant, "{\"rights\": [\"see\"]}", E_INVALID);
    apply_json(&s, grant, "{\"rights\": [\"list\", \"read\"], \"bucket\": \"b\"}");
    assert_refused(s, (struct command){.kind = CMD_KEY_ADD, .name = USER_ANONYMOUS, .key = &key},
                   E_INVALID);
    refuse_json(s, (struct command){.kind = CMD_USER_CHANGE, .name = USER_ANONYMOUS},
                "{\"roles\": [\"reader\"]}", E_INVALID);
}

/* --- what an actor may do --------------------------------------------------------------------- */

static const struct {
    const char *actor;
    enum command_kind kind;
    const char *name, *patch;
    int code;
} tries[] = {
    {CHIEF, CMD_GRANT, "anna", "{\"rights\": [\"read\"], \"bucket\": \"b1\"}", 0},
    {CHIEF, CMD_GRANT, "anna", "{\"rights\": [\"read\"], \"bucket\": \"*\"}", E_ACCESS_DENIED},
    {CHIEF, CMD_GRANT, "anna", "{\"rights\": [\"write\"], \"bucket\": \"b1\"}", E_ACCESS_DENIED},
    {CHIEF, CMD_GRANT, "anna", "{\"rights\": [\"users\"]}", 0},
    {CHIEF, CMD_GRANT, "anna", "{\"rights\": [\"operate\"]}", E_ACCESS_DENIED},
    {CHIEF, CMD_GRANT, "chief", "{\"rights\": [\"admin\"]}", E_ACCESS_DENIED},
    {CHIEF, CMD_GRANT, "anonymous", "{\"rights\": [\"write\"], \"bucket\": \"b1\"}",
     E_ACCESS_DENIED},
    {CHIEF, CMD_USER_ADD, NULL, "{\"name\": \"ben\"}", 0},
    {CHIEF, CMD_USER_ADD, NULL, "{\"name\": \"ben\", \"roles\": [\"admin\"]}", E_ACCESS_DENIED},
    {CHIEF, CMD_USER_CHANGE, "anna", "{\"roles\": [\"reader\"]}", E_ACCESS_DENIED},
    {CHIEF, CMD_USER_CHANGE, "root", "{\"enabled\": false}", E_ACCESS_DENIED},
    {CHIEF, CMD_USER_CHANGE, "writer", "{\"enabled\": false}", 0},
    /* Whoever enables the user later does not look at the grants. */
    {CHIEF, CMD_USER_CHANGE, "anna", "{\"enabled\": false, \"roles\": [\"admin\"]}",
     E_ACCESS_DENIED},
    {CHIEF, CMD_USER_ADD, NULL, "{\"name\": \"ben\", \"enabled\": false, \"roles\": [\"admin\"]}",
     E_ACCESS_DENIED},
    {CHIEF, CMD_USER_REMOVE, "root", NULL, E_ACCESS_DENIED},
    {CHIEF, CMD_USER_REMOVE, "anna", NULL, 0},
    {CHIEF, CMD_KEY_ADD, "root", NULL, E_ACCESS_DENIED},
    {CHIEF, CMD_PASSWORD, "root", NULL, E_ACCESS_DENIED},
    {CHIEF, CMD_KEY_ADD, "anna", NULL, 0},
    {CHIEF, CMD_KEY_ADD, "writer", NULL, E_ACCESS_DENIED},
    {CHIEF, CMD_PASSWORD, "writer", NULL, E_ACCESS_DENIED},
    {CHIEF, CMD_KEY_ADD, "owner", NULL, E_ACCESS_DENIED},
    {CHIEF, CMD_ROLE_PUT, NULL, "{\"name\": \"r\", \"grants\": [{\"rights\": [\"jobs\"]}]}",
     E_ACCESS_DENIED},
    {CHIEF, CMD_ROLE_PUT, NULL, "{\"name\": \"r\", \"grants\": [{\"rights\": [\"see\"]}]}", 0},
    {ANNA, CMD_KEY_ADD, "anna", NULL, 0},
    {ANNA, CMD_PASSWORD, "anna", NULL, 0},
    {ANNA, CMD_KEY_ADD, "chief", NULL, E_ACCESS_DENIED},
    {ANNA, CMD_GRANT, "anna", "{\"rights\": [\"see\"]}", E_ACCESS_DENIED},
    {ANNA, CMD_USER_ADD, NULL, "{\"name\": \"ben\"}", E_ACCESS_DENIED},
    {ANNA, CMD_USER_REMOVE, "anna", NULL, E_ACCESS_DENIED},
    {ROOT, CMD_USER_ADD, NULL, "{\"name\": \"ben\", \"roles\": [\"admin\"]}", 0},
    {ROOT, CMD_KEY_ADD, "root", NULL, 0},
    {NEW, CMD_USER_ADD, NULL, "{\"name\": \"ben\"}", E_ACCESS_DENIED},
};

static void nobody_gives_more_than_they_have(void **unused)
{
    (void)unused;
    static const struct access_key key = {.access = KEY("1"), .secret = "s"};
    _cleanup_state_ const struct cluster_state *s = people();
    add(&s, "00000000000000000000000000000001",
        "{\"name\": \"writer\", \"grants\": [{\"rights\": [\"write\"], \"bucket\": \"b1\"}]}");
    add(&s, "00000000000000000000000000000002", "{\"name\": \"owner\"}");
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE,
                               .name = "b7",
                               .props = &bucket_props_default,
                               .actor = "00000000000000000000000000000002"});
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const struct cluster_state *next;
        struct error err = ERROR_INIT;
        const struct command cmd = {.kind = tries[i].kind,
                                    .actor = tries[i].actor,
                                    .name = tries[i].name,
                                    .text = "0000000000000000000000000000000e",
                                    .key = tries[i].kind == CMD_KEY_ADD ? &key : NULL};
        int r = try_json(s, cmd, tries[i].patch, &next, &err);
        if (r != tries[i].code)
            fail_msg("row %zu: %s: %s", i, error_name(r), err.message);
        state_unref(next);
    }
}

/* Who has lost the right `users`, or was disabled, does no more with it. */
static void a_disabled_actor_does_nothing(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    static const struct access_key key = {.access = KEY("1"), .secret = "s"};
    apply_json(&s, (struct command){.kind = CMD_USER_CHANGE, .name = "chief", .wall_ms = 1},
               "{\"enabled\": false}");
    assert_refused(s, (struct command){.kind = CMD_USER_REMOVE, .name = "anna", .actor = CHIEF},
                   E_ACCESS_DENIED);
    assert_refused(
        s, (struct command){.kind = CMD_KEY_ADD, .name = "chief", .key = &key, .actor = CHIEF},
        E_ACCESS_DENIED);
}

static void a_bucket_is_its_makers(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = people();
    const struct command grant = {.kind = CMD_GRANT, .name = "anna", .actor = CHIEF};
    static const char all[] = "{\"rights\": [\"write\", \"delete\"], \"bucket\": \"mine\"}";
    struct command make = {.kind = CMD_BUCKET_CREATE, .name = "mine", .actor = CHIEF};
    make.props = &bucket_props_default;
    refuse_json(s, grant, all, E_ACCESS_DENIED);
    apply(&s, make);
    assert_string_equal(bmd_bucket(&s->bmd, "mine")->owner, CHIEF);
    apply_json(&s, grant, all);
    refuse_json(s, grant, "{\"rights\": [\"write\"], \"bucket\": \"mine*\"}", E_ACCESS_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_without_users_has_no_document),
        cmocka_unit_test(a_user_is_added_changed_and_removed),
        cmocka_unit_test(a_token_that_was_withdrawn_stays_so),
        cmocka_unit_test(a_user_has_two_keys_at_most),
        cmocka_unit_test(root_is_made_and_made_good_again),
        cmocka_unit_test(root_takes_nobodys_key_or_id),
        cmocka_unit_test(secrets_are_sealed_anew),
        cmocka_unit_test(a_password_is_a_persons),
        cmocka_unit_test(roles_are_put_and_removed),
        cmocka_unit_test(grants_add_up_and_are_taken_away),
        cmocka_unit_test(everybody_gets_few_rights),
        cmocka_unit_test(nobody_gives_more_than_they_have),
        cmocka_unit_test(a_disabled_actor_does_nothing),
        cmocka_unit_test(a_bucket_is_its_makers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
