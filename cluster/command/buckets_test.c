#include "cluster/testing/command_fixture.h"

static void bucket_ids_are_never_used_twice(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    const struct command create = {
        .kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default, .wall_ms = 5};
    apply(&s, create);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->id, 1);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->created_ms, 5);
    assert_refused(s, create, E_BUCKET_EXISTS);
    apply(&s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    assert_refused(s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"},
                   E_BUCKET_NOT_FOUND);
    apply(&s, create);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->id, 2);
    assert_null(bmd_bucket_by_id(&s->bmd, 1));
    assert_refused(s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "b", .bucket_id = 1},
                   E_BUCKET_NOT_FOUND);
    assert_string_equal(bmd_bucket_by_id(&s->bmd, 2)->name, "b");
    assert_true(state_bucket_is_gone(s, 1));
    assert_false(state_bucket_is_gone(s, 2));
    assert_false(state_bucket_is_gone(s, 3)); /* not heard of yet */
}

static struct command of_the_bucket(enum command_kind kind, uint64_t id)
{
    return (struct command){.kind = kind, .name = "b", .bucket_id = id};
}

static void a_bucket_is_closed_before_it_is_destroyed(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default});
    assert_refused(s, of_the_bucket(CMD_BUCKET_DESTROY, 1), E_NOT_READY);
    assert_refused(s, of_the_bucket(CMD_BUCKET_CLOSE, 2), E_BUCKET_NOT_FOUND);
    apply(&s, of_the_bucket(CMD_BUCKET_CLOSE, 1));
    assert_true(state_bucket_is_closed(s, bmd_bucket(&s->bmd, "b")));
    assert_refused(s, of_the_bucket(CMD_BUCKET_CLOSE, 1), E_NOT_READY);
    apply(&s, of_the_bucket(CMD_BUCKET_OPEN, 1));
    assert_false(state_bucket_is_closed(s, bmd_bucket(&s->bmd, "b")));
    assert_refused(s, of_the_bucket(CMD_BUCKET_DESTROY, 1), E_NOT_READY);
    apply(&s, of_the_bucket(CMD_BUCKET_CLOSE, 1));
    apply(&s, of_the_bucket(CMD_BUCKET_DESTROY, 1));
    assert_null(bmd_bucket(&s->bmd, "b"));
}

/* It is empty then: its objects are not removed with it. */
static void a_write_once_bucket_is_destroyed_closed_alone(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct bucket_props props = bucket_props_default;
    props.write_once = true;
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    assert_refused(s, of_the_bucket(CMD_BUCKET_DESTROY, 0), E_WRITE_ONCE);
    apply(&s, of_the_bucket(CMD_BUCKET_CLOSE, 1));
    assert_refused(s, of_the_bucket(CMD_BUCKET_DESTROY, 0), E_WRITE_ONCE);
    apply(&s, of_the_bucket(CMD_BUCKET_DESTROY, 1));
    assert_null(bmd_bucket(&s->bmd, "b"));
}

static void a_new_term_opens_buckets(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default});
    apply(&s, of_the_bucket(CMD_BUCKET_CLOSE, 1));
    apply(&s, (struct command){.kind = CMD_TERM_BEGIN, .node = &p1, .term = s->term + 1});
    assert_false(state_bucket_is_closed(s, bmd_bucket(&s->bmd, "b")));
    assert_refused(s, of_the_bucket(CMD_BUCKET_DESTROY, 1), E_NOT_READY);
    apply(&s, of_the_bucket(CMD_BUCKET_CLOSE, 1));
    apply(&s, of_the_bucket(CMD_BUCKET_DESTROY, 1));
}

static void bucket_props_are_checked(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct bucket_props p = BUCKET_PROPS_DEFAULT;
    struct command cmd = {.kind = CMD_BUCKET_CREATE, .name = "b", .props = &p};
    p.copies = COPIES_MAX + 1;
    assert_refused(s, cmd, E_INVALID);
    p.copies = 0;
    assert_refused(s, cmd, E_INVALID);
    p = BUCKET_PROPS_DEFAULT;
    p.backend = "http://h";
    p.write_policy = WRITE_POLICY_THROUGH;
    assert_refused(s, cmd, E_UNSUPPORTED);
    p = BUCKET_PROPS_DEFAULT;
    p.ec_data = 2;
    p.ec_parity = 1;
    p.copies = 2;
    p.write_quorum = WRITE_MAJORITY;
    assert_refused(s, cmd, E_UNSUPPORTED);
    p.write_quorum = WRITE_ALL;
    p.backend = "s3://b";
    assert_refused(s, cmd, E_UNSUPPORTED);
    p = BUCKET_PROPS_DEFAULT;
    cmd.name = "-b";
    assert_refused(s, cmd, E_NAME);
    cmd.name = "b";
    apply(&s, cmd);
}

static void a_patch_changes_only_what_it_names(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default});
    static const struct {
        const char *patch;
        int code;
    } rows[] = {
        {"{\"durability\": \"async\"}", 0},
        {"{\"verify_on_read\": true}", 0},
        {"{\"copies\": 99}", E_INVALID},
        {"{\"copies\": 0}", E_INVALID},
        {"{\"copies\": \"1\"}", E_JSON},
        {"{\"backend\": \"s3://x\"}", E_INVALID},
        {"{\"durability\": \"x\"}", E_INVALID},
        {"{\"ec\": {\"data\": 2, \"parity\": 1}}", E_INVALID}, /* it has its objects whole */
        {"{\"ec\": {\"data\": 0, \"parity\": 1}}", E_INVALID},
        {"{\"ec\": {\"data\": 2, \"parity\": 1}, \"copies\": 3}", E_INVALID},
        {"{\"ec\": {\"data\": 2}}", E_JSON},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_json_ json_t *patch = NULL;
        assert_int_equal(json_parse(rows[i].patch, strlen(rows[i].patch), &patch, NULL), 0);
        struct command cmd = {.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch};
        if (rows[i].code != 0) {
            assert_refused(s, cmd, rows[i].code);
            continue;
        }
        apply(&s, cmd);
        assert_unchanged(s, cmd);
        cmd.name = "none";
        assert_refused(s, cmd, E_BUCKET_NOT_FOUND);
    }
    const struct bucket_props *now = &bmd_bucket(&s->bmd, "b")->props;
    assert_int_equal(now->durability, DURABILITY_ASYNC);
    assert_true(now->verify_on_read);
    assert_int_equal(now->checksum, CHECKSUM_XXH3);
}

static json_t *text_patch(const char *name, size_t len)
{
    _cleanup_free_ char *text = xcalloc(1, len + 1);
    memset(text, 'x', len);
    return json_pack("{s:s}", name, text);
}

static void test_texts_of_buckets(void **state)
{
    (void)state;
    _cleanup_state_ const struct cluster_state *s = cluster();
    _cleanup_json_ json_t *cors = text_patch("cors", 7), *tags = text_patch("tags", 3);
    _cleanup_json_ json_t *fewer = text_patch("cors", 6), *none = json_pack("{s:n}", "cors");
    struct command put = {.kind = CMD_BUCKET_TEXTS, .name = "b", .patch = cors};
    assert_refused(s, put, E_BUCKET_NOT_FOUND);
    for (const char *const *name = (const char *const[]){"b", "a", NULL}; *name != NULL; name++)
        apply(&s, (struct command){
                      .kind = CMD_BUCKET_CREATE, .name = *name, .props = &bucket_props_default});
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "bucket_texts_max", .text = "10"});
    apply(&s, put);
    assert_unchanged(s, put);
    put.name = "a";
    assert_refused(s, put, E_OVERLOAD);
    put.patch = tags;
    apply(&s, put);
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "bucket_texts_max", .text = "1"});
    put = (struct command){.kind = CMD_BUCKET_TEXTS, .name = "b", .patch = fewer};
    apply(&s, put); /* it frees room */
    apply(&s, (struct command){.kind = CMD_BUCKET_RENAME, .name = "b", .text = "c"});
    assert_string_equal(bmd_bucket(&s->bmd, "c")->texts.text[BUCKET_CORS], "xxxxxx");
    assert_string_equal(bmd_bucket(&s->bmd, "a")->texts.text[BUCKET_TAGS], "xxx");
    put = (struct command){.kind = CMD_BUCKET_TEXTS, .name = "c", .patch = none};
    apply(&s, put);
    assert_null(bmd_bucket(&s->bmd, "c")->texts.text[BUCKET_CORS]);
    assert_unchanged(s, put);
}

static struct command rename_to(const char *name, const char *to)
{
    return (struct command){.kind = CMD_BUCKET_RENAME, .name = name, .text = to};
}

static void test_bucket_rename_keeps_all_but_the_name(void **state)
{
    (void)state;
    const struct cluster_state *s = cluster();
    static const char *const names[] = {"m", "a", "z"};
    for (size_t i = 0; i < 3; i++)
        apply(&s, (struct command){.kind = CMD_BUCKET_CREATE,
                                   .name = names[i],
                                   .props = &bucket_props_default,
                                   .wall_ms = 7});
    const struct bucket before = *bmd_bucket(&s->bmd, "m");
    uint64_t version = s->version;
    uint64_t bmd_version = s->bmd.version;
    static const char *const turns[] = {"m", "zz", "b", "0", "m"};
    for (size_t i = 1; i < 5; i++) {
        apply(&s, rename_to(turns[i - 1], turns[i]));
        assert_null(bmd_bucket(&s->bmd, turns[i - 1]));
        const struct bucket *b = bmd_bucket(&s->bmd, turns[i]);
        assert_int_equal(b->id, before.id);
        assert_int_equal(b->created_ms, before.created_ms);
        assert_int_equal(s->version, version + i);
        assert_int_equal(s->bmd.version, bmd_version + i);
        assert_int_equal(s->bmd.count, 3);
        assert_non_null(bmd_bucket(&s->bmd, "a"));
        assert_non_null(bmd_bucket(&s->bmd, "z"));
    }
    assert_unchanged(s, rename_to("m", "m"));
    assert_refused(s, rename_to("m", "a"), E_BUCKET_EXISTS);
    assert_refused(s, rename_to("none", "b"), E_BUCKET_NOT_FOUND);
    assert_refused(s, rename_to("m", "-no"), E_NAME);
    state_unref(s);
}

static void test_a_bucket_in_use_is_not_renamed(void **state)
{
    (void)state;
    const struct cluster_state *s = cluster();
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "a", .props = &bucket_props_default});
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &bucket_props_default});
    apply(&s,
          (struct command){.kind = CMD_BUCKET_CREATE, .name = "c", .props = &bucket_props_default});
    struct job *job = job_new("cpy-1", "copy");
    job->plan = json_pack("{s:I, s:I}", "input_bucket_id", (json_int_t)bmd_bucket(&s->bmd, "a")->id,
                          "output_bucket_id", (json_int_t)bmd_bucket(&s->bmd, "b")->id);
    apply(&s, (struct command){.kind = CMD_JOB_CREATE, .job = job});
    assert_refused(s, rename_to("a", "x"), E_JOB_STATE);
    assert_refused(s, rename_to("b", "x"), E_JOB_STATE);
    apply(&s, rename_to("c", "x"));
    static const enum job_state moves[] = {JOB_STOPPING, JOB_FAILED};
    for (size_t i = 0; i < 2; i++) {
        struct job *next = job_copy(job);
        next->state = moves[i];
        apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = next});
        job_unref(next);
    }
    apply(&s, rename_to("a", "y"));
    job_unref(job);
    state_unref(s);
}

static void a_restore_replaces_buckets_and_settings(void **unused)
{
    (void)unused;
    const struct cluster_state *s = cluster();
    apply(&s, (struct command){
                  .kind = CMD_BUCKET_CREATE, .name = "kept", .props = &bucket_props_default});
    apply(&s, (struct command){
                  .kind = CMD_BUCKET_CREATE, .name = "lost", .props = &bucket_props_default});
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "jobs_max", .text = "7"});
    _cleanup_state_ const struct cluster_state *then = state_ref(s);
    apply(&s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "lost"});
    apply(&s, (struct command){
                  .kind = CMD_BUCKET_CREATE, .name = "later", .props = &bucket_props_default});
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "jobs_max", .text = NULL});
    struct command restore = {.kind = CMD_RESTORE,
                              .restored = then,
                              .term = 5,
                              .seen_bmd = s->bmd.version,
                              .seen_config = s->config.version};
    struct command late = restore;
    late.seen_bmd--;
    assert_refused(s, late, E_PRECONDITION);
    late = restore;
    late.seen_config++;
    assert_refused(s, late, E_PRECONDITION);
    _cleanup_state_ const struct cluster_state *before = state_ref(s);
    struct command *copy = command_copy(&restore);
    apply(&s, *copy);
    command_free(copy);
    assert_non_null(bmd_bucket(&s->bmd, "kept"));
    assert_int_equal(bmd_bucket(&s->bmd, "kept")->id, bmd_bucket(&then->bmd, "kept")->id);
    assert_null(bmd_bucket(&s->bmd, "later"));
    assert_string_equal(config_get(&s->config, "jobs_max"), "7");
    assert_int_equal(s->version, before->version + 1);
    assert_int_equal(s->bmd.version, before->bmd.version + 1);
    assert_int_equal(s->smap.version, before->smap.version);
    /* A new epoch: whoever has seen something later follows all the same. */
    assert_true(s->term > before->term);
    assert_int_equal(state_check_history(s, before->term, before->version + 100, NULL), 0);
    struct cluster_state *other = state_new("c-other");
    restore.restored = other;
    restore.seen_bmd = s->bmd.version;
    restore.seen_config = s->config.version;
    assert_refused(s, restore, E_WRONG_CLUSTER);
    state_unref(other);
    state_unref(s);
}

static void restore(const struct cluster_state **s, const struct cluster_state *from)
{
    apply(s, (struct command){.kind = CMD_RESTORE,
                              .restored = from,
                              .term = 5,
                              .seen_bmd = (*s)->bmd.version,
                              .seen_config = (*s)->config.version});
}

/* Targets go on removing what has the id of a destroyed bucket, and some may not have begun. */
static void a_restore_gives_no_id_twice(void **unused)
{
    (void)unused;
    const struct cluster_state *s = cluster();
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE,
                               .name = "lost",
                               .props = &bucket_props_default,
                               .wall_ms = 77});
    _cleanup_state_ const struct cluster_state *then = state_ref(s);
    const uint64_t old = bmd_bucket(&s->bmd, "lost")->id;
    apply(&s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "lost"});
    const uint64_t next = s->next_bucket_id;
    restore(&s, then);
    const struct bucket *back = bmd_bucket(&s->bmd, "lost");
    assert_int_equal(back->id, next);
    assert_int_equal(s->next_bucket_id, next + 1);
    assert_int_equal(back->created_ms, 77);
    assert_null(bmd_bucket_by_id(&s->bmd, old));
    restore(&s, then); /* it is there by now, with what was put into it */
    assert_int_equal(bmd_bucket(&s->bmd, "lost")->id, next);
    apply(&s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "lost"});
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE,
                               .name = "lost",
                               .props = &bucket_props_default,
                               .wall_ms = 78});
    restore(&s, then); /* another one of that name is not it */
    assert_int_equal(bmd_bucket(&s->bmd, "lost")->id, next + 2);
    assert_int_equal(bmd_bucket(&s->bmd, "lost")->created_ms, 77);
    state_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_ids_are_never_used_twice),
        cmocka_unit_test(a_write_once_bucket_is_destroyed_closed_alone),
        cmocka_unit_test(a_bucket_is_closed_before_it_is_destroyed),
        cmocka_unit_test(a_new_term_opens_buckets),
        cmocka_unit_test(bucket_props_are_checked),
        cmocka_unit_test(a_patch_changes_only_what_it_names),
        cmocka_unit_test(test_texts_of_buckets),
        cmocka_unit_test(test_bucket_rename_keeps_all_but_the_name),
        cmocka_unit_test(test_a_bucket_in_use_is_not_renamed),
        cmocka_unit_test(a_restore_replaces_buckets_and_settings),
        cmocka_unit_test(a_restore_gives_no_id_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
