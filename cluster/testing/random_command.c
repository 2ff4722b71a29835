#include "cluster/testing/random_command.h"

#include "common/mem.h"

static const char *pick_id(struct rng *rng, struct arena *a, const char *prefix, uint64_t of)
{
    return arena_printf(a, "%s%llu", prefix, (unsigned long long)rng_below(rng, of));
}

static struct node *random_node(struct rng *rng, struct arena *a, bool proxy)
{
    struct node *n = arena_alloc(a, sizeof *n);
    uint64_t port = 1024 + rng_below(rng, 4);
    n->role = proxy ? NODE_PROXY : NODE_TARGET;
    n->id = pick_id(rng, a, proxy ? "p" : "t", proxy ? 3 : 9);
    n->boot = pick_id(rng, a, "boot-", 3);
    n->public_url = arena_printf(a, "http://127.0.0.1:%llu", (unsigned long long)port);
    n->control_url = arena_printf(a, "http://127.0.0.1:%llu", (unsigned long long)port + 1);
    n->data_url = proxy ? "" : arena_printf(a, "http://[::1]:%llu", (unsigned long long)port + 2);
    n->weight = (uint32_t)rng_below(rng, 3) * 1024;
    return n;
}

static struct bucket_props *random_props(struct rng *rng, struct arena *a)
{
    struct bucket_props *p = arena_alloc(a, sizeof *p);
    *p = (struct bucket_props){
        .copies = 1 + (rng_below(rng, 16) == 0),
        .durability = rng_below(rng, 2) ? DURABILITY_ASYNC : DURABILITY_SYNC,
        .checksum = (enum checksum_type)rng_below(rng, CHECKSUM_TYPES),
        .verify_on_read = rng_below(rng, 2) != 0,
    };
    return p;
}

/* Some of these props, now and then with a mistake. */
static json_t *random_patch(struct rng *rng, const struct bucket_props *p)
{
    json_t *patch = bucket_props_to_json(p);
    if (rng_below(rng, 2))
        json_object_del(patch, "durability");
    if (rng_below(rng, 2))
        json_object_del(patch, "checksum");
    if (rng_below(rng, 16) == 0)
        json_object_set_new(patch, "durability", json_string("never"));
    return patch;
}

static struct job *random_new_job(struct rng *rng, struct arena *a)
{
    struct job *j = job_new(pick_id(rng, a, "srt-", 12), "sort");
    j->spec = json_pack("{s:s, s:[i,i]}", "algorithm", "shuffle", "n", 1, 2);
    j->plan = json_pack("{s:I}", "input_bucket_id", (json_int_t)rng_below(rng, 40));
    j->created_ms = (int64_t)rng_below(rng, 1000);
    j->description = xstrdup(rng_below(rng, 2) ? "caf\xc3\xa9 \"quoted\"" : "");
    j->participant_count = rng_below(rng, 4);
    j->participants = xcalloc(j->participant_count, sizeof j->participants[0]);
    for (size_t i = 0; i < j->participant_count; i++)
        j->participants[i] = xstrdup(pick_id(rng, a, "t", 9));
    return j;
}

static struct job *random_job_step(struct rng *rng, const struct job *old)
{
    struct job *j = job_copy(old);
    j->state = (enum job_state)rng_below(rng, JOB_ABORTED + 1);
    j->stop_as = rng_below(rng, 2) ? JOB_FAILED : JOB_ABORTED;
    if (rng_below(rng, 4) == 0) {
        free(j->error_code);
        free(j->error_message);
        j->error_code = xstrdup("no_space");
        j->error_message = xstrdup("t1: '/d2': No space left on device");
    }
    if (rng_below(rng, 4) == 0 && j->participant_count > 0 &&
        !job_leaves_out(j, j->participants[0])) {
        job_leave_out(j, j->participants[0]);
        j->attempt += j->state == JOB_QUEUED;
    }
    if (rng_below(rng, 4) == 0) {
        json_decref(j->report);
        j->report = json_pack("{s:I}", "records", (json_int_t)rng_below(rng, 1000));
    }
    return j;
}

static struct job *random_job(struct rng *rng, const struct cluster_state *s, struct arena *a)
{
    if (s->jobs.count == 0)
        return random_new_job(rng, a);
    return random_job_step(rng, s->jobs.jobs[rng_below(rng, s->jobs.count)]);
}

static void random_config(struct rng *rng, struct arena *a, struct command *cmd)
{
    static const char *const names[] = {"nodes_max", "buckets_max", "jobs_max", "no_such_setting"};
    cmd->name = names[rng_below(rng, 4)];
    if (rng_below(rng, 3) != 0)
        cmd->text = arena_printf(a, "%llu", (unsigned long long)rng_below(rng, 40));
}

/* --- users ------------------------------------------------------------------------------------ */

static json_t *random_grant(struct rng *rng)
{
    static const char *const texts[] = {
        "{\"rights\": [\"list\", \"read\"], \"bucket\": \"b*\"}",
        "{\"rights\": [\"write\"], \"bucket\": \"b1\", \"prefix\": \"a/\"}",
        "{\"rights\": [\"read\"], \"bucket\": \"b1\", \"prefix\": \"a/\"}",
        "{\"rights\": [\"users\", \"see\"]}",
        "{\"rights\": [\"fly\"]}",
    };
    return json_loads(texts[rng_below(rng, 5)], 0, NULL);
}

static json_t *random_user_patch(struct rng *rng, struct arena *a, bool fresh)
{
    static const char *const roles[] = {"reader", "admin", "r0", "r1"};
    json_t *patch = json_object();
    if (fresh)
        json_object_set_new(patch, "name", json_string(pick_id(rng, a, "u", 8)));
    if (rng_below(rng, 2))
        json_object_set_new(patch, "kind", json_string(rng_below(rng, 2) ? "person" : "service"));
    if (rng_below(rng, 2))
        json_object_set_new(patch, "enabled", json_boolean(rng_below(rng, 4) != 0));
    if (rng_below(rng, 2))
        json_object_set_new(patch, "roles", json_pack("[s]", roles[rng_below(rng, 4)]));
    if (rng_below(rng, 4) == 0)
        json_object_set_new(patch, "grants", json_pack("[o]", random_grant(rng)));
    if (rng_below(rng, 16) == 0)
        json_object_set_new(patch, "password", json_string("in clear"));
    return patch;
}

static json_t *random_role(struct rng *rng, struct arena *a)
{
    return json_pack("{s:s, s:[o]}", "name", pick_id(rng, a, "r", 3), "grants", random_grant(rng));
}

static struct access_key *random_key(struct rng *rng, struct arena *a)
{
    struct access_key *key = arena_alloc(a, sizeof *key);
    *key = (struct access_key){
        .access =
            arena_printf(a, "DFC4AAAAAAAAAAAAAAA%llu", (unsigned long long)rng_below(rng, 10)),
        .secret = pick_id(rng, a, "sealed-", 4),
        .created_ms = (int64_t)rng_below(rng, 1000),
    };
    return key;
}

static const char *random_actor(struct rng *rng, const struct cluster_state *s)
{
    if (s->access.user_count == 0 || rng_below(rng, 2))
        return NULL;
    return s->access.users[rng_below(rng, s->access.user_count)].id;
}

static void random_access(struct rng *rng, const struct cluster_state *s, struct arena *a,
                          struct command *cmd)
{
    cmd->name = rng_below(rng, 8) == 0 ? USER_ANONYMOUS : pick_id(rng, a, "u", 8);
    cmd->actor = random_actor(rng, s);
    cmd->key = rng_below(rng, 2) || cmd->kind == CMD_KEY_ADD || cmd->kind == CMD_ROOT_KEY
                   ? random_key(rng, a)
                   : NULL;
    if (cmd->kind == CMD_USER_ADD || cmd->kind == CMD_ROOT_KEY)
        cmd->text = arena_printf(a, "%032llx", (unsigned long long)rng_below(rng, 20) + 1);
    else if (cmd->kind == CMD_KEY_REMOVE)
        cmd->text = random_key(rng, a)->access;
    else if (cmd->kind == CMD_PASSWORD)
        cmd->text = rng_below(rng, 4) == 0 ? "" : pick_id(rng, a, "scrypt:", 9);
    if (cmd->kind == CMD_USER_ADD || cmd->kind == CMD_USER_CHANGE)
        cmd->patch = random_user_patch(rng, a, cmd->kind == CMD_USER_ADD);
    else if (cmd->kind == CMD_GRANT || cmd->kind == CMD_REVOKE)
        cmd->patch = random_grant(rng);
    else if (cmd->kind == CMD_ROLE_PUT)
        cmd->patch = random_role(rng, a);
    else if (cmd->kind == CMD_ROLE_REMOVE)
        cmd->name = pick_id(rng, a, "r", 3);
    else if (cmd->kind == CMD_RESEAL)
        cmd->patch = json_pack("{s:s}", random_key(rng, a)->access, pick_id(rng, a, "anew-", 4));
}

static const char *random_bucket_name(struct rng *rng, struct arena *a)
{
    return rng_below(rng, 16) == 0 ? "-no" : pick_id(rng, a, "b", 20);
}

static void random_bucket(struct rng *rng, const struct cluster_state *s, struct arena *a,
                          struct command *cmd)
{
    cmd->actor = random_actor(rng, s);
    cmd->name = random_bucket_name(rng, a);
    const struct bucket *known = bmd_bucket(&s->bmd, cmd->name);
    if (known != NULL && (cmd->kind != CMD_BUCKET_DESTROY || rng_below(rng, 2) == 0))
        cmd->bucket_id = known->id;
    cmd->props = random_props(rng, a);
    cmd->patch = random_patch(rng, cmd->props);
}

static void random_bucket_change(struct rng *rng, struct arena *a, struct command *cmd)
{
    cmd->name = pick_id(rng, a, "b", 20);
    if (cmd->kind == CMD_BUCKET_RENAME) {
        cmd->text = random_bucket_name(rng, a);
        return;
    }
    cmd->patch = json_object();
    for (enum bucket_text i = 0; i < BUCKET_TEXTS; i++) {
        if (rng_below(rng, 2))
            json_object_set_new(cmd->patch, bucket_text_name(i),
                                rng_below(rng, 4) == 0 ? json_null()
                                                       : json_string(pick_id(rng, a, "<x>", 9)));
    }
}

static void random_join(struct rng *rng, struct arena *a, struct command *cmd)
{
    cmd->node = random_node(rng, a, rng_below(rng, 4) == 0);
    cmd->fresh = rng_below(rng, 4) != 0;
    cmd->lost = rng_below(rng, 8) == 0;
}

static void random_node_change(struct rng *rng, struct arena *a, struct command *cmd)
{
    cmd->name = pick_id(rng, a, rng_below(rng, 4) == 0 ? "p" : "t", 9);
    cmd->node_state = (enum node_state)rng_below(rng, NODE_DECOMMISSIONING + 1);
    cmd->absent = rng_below(rng, 2) == 0;
}

static void random_job_change(struct rng *rng, const struct cluster_state *s, struct arena *a,
                              struct command *cmd)
{
    if (cmd->kind == CMD_JOB_FORGET)
        cmd->name = pick_id(rng, a, "srt-", 12);
    else
        cmd->job = cmd->kind == CMD_JOB_CREATE ? random_new_job(rng, a) : random_job(rng, s, a);
}

static void random_copies(struct rng *rng, const struct cluster_state *s, struct command *cmd)
{
    cmd->placed = s->smap.placed;
    cmd->lagged = s->smap.lagged;
    if (cmd->kind == CMD_MOVES_DONE)
        cmd->placed += rng_below(rng, 4) == 0;
    else if (cmd->kind == CMD_LAG_DONE)
        cmd->lagged += rng_below(rng, 4) == 0;
    else if (cmd->kind == CMD_COPIES_FILLED)
        cmd->raised = rng_below(rng, s->bmd.version + 1);
    else if (s->bmd.count > 0)
        cmd->fence = copies_reduce_fence(s, &s->bmd.buckets[rng_below(rng, s->bmd.count)]);
}

struct command random_command(struct rng *rng, const struct cluster_state *s, struct arena *a)
{
    struct command cmd = {.kind = (enum command_kind)rng_below(rng, CMD_RESTORE),
                          .wall_ms = (int64_t)rng_below(rng, 1000000)};
    switch (cmd.kind) {
    case CMD_TERM_BEGIN:
        cmd.node = random_node(rng, a, rng_below(rng, 8) != 0);
        cmd.term = s->term + rng_below(rng, 3);
        break;
    case CMD_NODE_JOIN:
        random_join(rng, a, &cmd);
        break;
    case CMD_NODE_STATE:
    case CMD_NODE_ABSENT:
    case CMD_NODE_REMOVE:
        random_node_change(rng, a, &cmd);
        break;
    case CMD_BUCKET_CREATE:
    case CMD_BUCKET_DESTROY:
    case CMD_BUCKET_CLOSE:
    case CMD_BUCKET_OPEN:
    case CMD_BUCKET_PROPS:
        random_bucket(rng, s, a, &cmd);
        break;
    case CMD_BUCKET_TEXTS:
    case CMD_BUCKET_RENAME:
        random_bucket_change(rng, a, &cmd);
        break;
    case CMD_CONFIG_SET:
        random_config(rng, a, &cmd);
        break;
    case CMD_JOB_CREATE:
    case CMD_JOB_UPDATE:
    case CMD_JOB_FORGET:
        random_job_change(rng, s, a, &cmd);
        break;
    case CMD_MOVES_DONE:
    case CMD_LAG_DONE:
    case CMD_COPIES_LOWERED:
    case CMD_COPIES_FILLED:
        random_copies(rng, s, &cmd);
        break;
    case CMD_USER_ADD:
    case CMD_USER_CHANGE:
    case CMD_USER_REMOVE:
    case CMD_KEY_ADD:
    case CMD_KEY_REMOVE:
    case CMD_PASSWORD:
    case CMD_GRANT:
    case CMD_REVOKE:
    case CMD_ROLE_PUT:
    case CMD_ROLE_REMOVE:
    case CMD_ROOT_KEY:
    case CMD_RESEAL:
        random_access(rng, s, a, &cmd);
        break;
    case CMD_RESTORE: /* not among them: it wants a whole state */
        break;
    }
    return cmd;
}

const struct cluster_state *random_state(struct rng *rng, unsigned steps)
{
    const struct cluster_state *s = state_new("c-random");
    for (unsigned i = 0; i < steps; i++) {
        struct arena *a = arena_new(512);
        struct command cmd = random_command(rng, s, a);
        const struct cluster_state *next;
        if (command_apply(s, &cmd, &next, NULL) == 0) {
            state_unref(s);
            s = next;
        }
        job_unref(cmd.job);
        json_decref(cmd.patch);
        arena_free(a);
    }
    return s;
}
