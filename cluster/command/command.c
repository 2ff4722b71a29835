#include "cluster/command/command.h"

#include <string.h>

#include "cluster/command/parts.h"
#include "cluster/documents/layout.h"
#include "cluster/documents/settings.h"
#include "common/mem.h"

/* --- the next snapshot ------------------------------------------------------------------------ */

int command_keep(const struct cluster_state *s, const struct cluster_state **next)
{
    *next = state_ref(s);
    return 0;
}

struct cluster_state *command_next_smap(const struct cluster_state *s, const struct smap *m)
{
    struct cluster_state *next = state_next(s);
    document_unref(next->smap.memory);
    next->smap = *m;
    return next;
}

struct cluster_state *command_next_bmd(const struct cluster_state *s, const struct bmd *b)
{
    struct cluster_state *next = state_next(s);
    document_unref(next->bmd.memory);
    next->bmd = *b;
    return next;
}

struct cluster_state *command_next_jobs(const struct cluster_state *s, const struct jobs *j)
{
    struct cluster_state *next = state_next(s);
    document_unref(next->jobs.memory);
    next->jobs = *j;
    return next;
}

struct cluster_state *command_next_access(const struct cluster_state *s, const struct access *a)
{
    struct cluster_state *next = state_next(s);
    document_unref(next->access.memory);
    next->access = *a;
    return next;
}

/* --- settings -------------------------------------------------------------------------------- */

/* While objects move, targets keep them for as long as the lists of all proxies rely on. */
static int check_keep(const struct cluster_state *s, const struct cluster_config *next,
                      struct error *err)
{
    struct cluster_settings before;
    struct cluster_settings after;
    cluster_settings_get(&s->config, &before);
    cluster_settings_get(next, &after);
    if (layout_is_settled(&s->smap) || before.rebalance_keep == after.rebalance_keep)
        return 0;
    return error_set(err, E_JOB_STATE,
                     "rebalance_keep cannot change while objects move: repeat it after the "
                     "rebalance");
}

static int apply_config_set(const struct cluster_state *s, const struct command *cmd,
                            const struct cluster_state **next, struct error *err)
{
    const char *present = config_get(&s->config, cmd->name);
    int r = 0;
    if (cmd->text != NULL)
        r = cluster_settings_check(cmd->name, cmd->text, err);
    else if (present == NULL) /* what an older build has set can go, known or not */
        r = cluster_settings_check_name(cmd->name, err);
    if (r != 0)
        return r;
    if (present == NULL ? cmd->text == NULL : cmd->text != NULL && strcmp(present, cmd->text) == 0)
        return command_keep(s, next);
    struct cluster_config c;
    if (cmd->text != NULL)
        config_with(&s->config, cmd->name, cmd->text, &c);
    else
        config_without(&s->config, cmd->name, &c);
    if ((r = check_keep(s, &c, err)) != 0) {
        document_unref(c.memory);
        return r;
    }
    struct cluster_state *made = state_next(s);
    document_unref(made->config.memory);
    made->config = c;
    *next = made;
    return 0;
}
/* --- all at once ----------------------------------------------------------------------------- */

static int check_restore(const struct cluster_state *s, const struct command *cmd,
                         struct error *err)
{
    if (strcmp(cmd->restored->cluster_id, s->cluster_id) != 0)
        return error_set(err, E_WRONG_CLUSTER,
                         "the documents are those of cluster '%s', and this is cluster '%s'",
                         cmd->restored->cluster_id, s->cluster_id);
    if (cmd->seen_bmd != s->bmd.version || cmd->seen_config != s->config.version)
        return error_set(err, E_PRECONDITION,
                         "the documents have changed meanwhile: buckets are at version %llu, "
                         "settings at %llu",
                         (unsigned long long)s->bmd.version, (unsigned long long)s->config.version);
    return check_keep(s, &cmd->restored->config, err);
}

/* What the document calls `then` is there now, if it is: by its id, or with the one that an earlier
 * restore has given it. */
static const struct bucket *find_present(const struct cluster_state *s, const struct bucket *then)
{
    const struct bucket *now = bmd_bucket_by_id(&s->bmd, then->id);
    if (now != NULL || then->created_ms == 0)
        return now;
    now = bmd_bucket(&s->bmd, then->name);
    return now != NULL && now->created_ms == then->created_ms ? now : NULL;
}

/* How far a raise or a lowering has come is a matter of what lies on the targets now. */
static int restore_present(const struct bucket *now, struct bucket *b, struct error *err)
{
    if (now->props.copies != b->props.copies)
        return error_set(err, E_PRECONDITION,
                         "bucket '%.80s' (then '%.80s') has copies %u, and had %u: set copies "
                         "to %u first, wait until that is done, then restore",
                         now->name, b->name, now->props.copies, b->props.copies, b->props.copies);
    b->id = now->id;
    b->filled = now->filled;
    b->raised = now->raised;
    b->lowered_from = now->lowered_from;
    b->lowered = now->lowered;
    return 0;
}

/* One that was destroyed is a new one: by its old id targets remove what they find, and may be at
 * that now (target/store/sweep.h), and who has not yet would show it again. */
static void restore_destroyed(struct bucket *b, uint64_t *next_id)
{
    b->id = (*next_id)++;
    b->filled = b->props.copies;
    b->raised = b->lowered = 0;
    b->lowered_from = 0;
}

static int restore_buckets(const struct cluster_state *s, const struct bmd *from, struct bmd *out,
                           uint64_t *next_id, struct error *err)
{
    struct bmd m;
    bmd_changed(from, &(struct document_change){0}, &m); /* with a version of its own */
    for (size_t i = 0; i < from->count; i++) {
        struct bucket b = from->buckets[i];
        const struct bucket *now = find_present(s, &b);
        struct bmd changed;
        if (now == NULL) {
            restore_destroyed(&b, next_id);
        } else if (restore_present(now, &b, err) != 0) {
            document_unref(m.memory);
            return E_PRECONDITION;
        }
        bmd_with(&m, &b, &changed);
        document_unref(m.memory);
        m = changed;
    }
    m.version = s->bmd.version + 1;
    *out = m;
    return 0;
}

/* An operator decides what is true: a new epoch.  Nodes and jobs are what they are. */
static int apply_restore(const struct cluster_state *s, const struct command *cmd,
                         const struct cluster_state **next, struct error *err)
{
    const struct cluster_state *from = cmd->restored;
    uint64_t next_id =
        from->next_bucket_id > s->next_bucket_id ? from->next_bucket_id : s->next_bucket_id;
    struct bmd buckets;
    int r = check_restore(s, cmd, err);
    if (r == 0)
        r = restore_buckets(s, &from->bmd, &buckets, &next_id, err);
    if (r != 0)
        return r;
    struct cluster_state *made = command_next_bmd(s, &buckets);
    document_unref(made->config.memory);
    config_changed(&from->config, &(struct document_change){0}, &made->config);
    made->config.version = s->config.version + 1;
    made->next_bucket_id = next_id;
    made->term = state_next_term(s, (int64_t)cmd->term, true);
    made->term_version = made->version;
    *next = made;
    return 0;
}

static command_fn *const appliers[] = {
    [CMD_TERM_BEGIN] = command_term_begin,
    [CMD_NODE_JOIN] = command_node_join,
    [CMD_NODE_STATE] = command_node_state,
    [CMD_NODE_ABSENT] = command_node_absent,
    [CMD_NODE_REMOVE] = command_node_remove,
    [CMD_BUCKET_CREATE] = command_bucket_create,
    [CMD_BUCKET_DESTROY] = command_bucket_destroy,
    [CMD_BUCKET_CLOSE] = command_bucket_close,
    [CMD_BUCKET_OPEN] = command_bucket_open,
    [CMD_BUCKET_PROPS] = command_bucket_props,
    [CMD_BUCKET_TEXTS] = command_bucket_texts,
    [CMD_BUCKET_RENAME] = command_bucket_rename,
    [CMD_CONFIG_SET] = apply_config_set,
    [CMD_JOB_CREATE] = command_job_create,
    [CMD_JOB_UPDATE] = command_job_update,
    [CMD_JOB_FORGET] = command_job_forget,
    [CMD_MOVES_DONE] = command_moves_done,
    [CMD_LAG_DONE] = command_lag_done,
    [CMD_COPIES_FILLED] = command_copies_filled,
    [CMD_COPIES_LOWERED] = command_copies_lowered,
    [CMD_USER_ADD] = command_user_add,
    [CMD_USER_CHANGE] = command_user_change,
    [CMD_USER_REMOVE] = command_user_remove,
    [CMD_KEY_ADD] = command_key_add,
    [CMD_KEY_REMOVE] = command_key_remove,
    [CMD_PASSWORD] = command_password,
    [CMD_GRANT] = command_grant,
    [CMD_REVOKE] = command_revoke,
    [CMD_ROLE_PUT] = command_role_put,
    [CMD_ROLE_REMOVE] = command_role_remove,
    [CMD_ROOT_KEY] = command_root_key,
    [CMD_RESEAL] = command_reseal,
    [CMD_RESTORE] = apply_restore,
};

int command_apply(const struct cluster_state *s, const struct command *cmd,
                  const struct cluster_state **next, struct error *err)
{
    return appliers[cmd->kind](s, cmd, next, err);
}

/* --- copies ---------------------------------------------------------------------------------- */

struct command_box {
    struct command cmd;
    struct node node;
    struct bucket_props props;
    struct access_key key;
    struct arena *arena;
};

static const char *copy_text(struct arena *a, const char *text)
{
    return text != NULL ? arena_strdup(a, text) : NULL;
}

static void copy_node(struct arena *a, const struct node *from, struct node *to)
{
    *to = *from;
    to->id = copy_text(a, from->id);
    to->public_url = copy_text(a, from->public_url);
    to->control_url = copy_text(a, from->control_url);
    to->data_url = copy_text(a, from->data_url);
    to->boot = copy_text(a, from->boot);
}

struct command *command_copy(const struct command *cmd)
{
    struct command_box *box = xcalloc(1, sizeof *box);
    box->arena = arena_new(256);
    box->cmd = *cmd;
    box->cmd.name = copy_text(box->arena, cmd->name);
    box->cmd.text = copy_text(box->arena, cmd->text);
    box->cmd.actor = copy_text(box->arena, cmd->actor);
    if (cmd->key != NULL) {
        box->key = *cmd->key;
        box->key.access = copy_text(box->arena, cmd->key->access);
        box->key.secret = copy_text(box->arena, cmd->key->secret);
        box->cmd.key = &box->key;
    }
    if (cmd->node != NULL) {
        copy_node(box->arena, cmd->node, &box->node);
        box->cmd.node = &box->node;
    }
    if (cmd->props != NULL) {
        box->props = *cmd->props;
        box->props.backend = copy_text(box->arena, cmd->props->backend);
        box->cmd.props = &box->props;
    }
    box->cmd.patch = json_deep_copy(cmd->patch); /* counts are for one thread */
    if (cmd->job != NULL)
        box->cmd.job = job_ref(cmd->job);
    if (cmd->restored != NULL)
        box->cmd.restored = state_ref(cmd->restored);
    return &box->cmd;
}

void command_free(struct command *cmd)
{
    if (cmd == NULL)
        return;
    struct command_box *box = (struct command_box *)cmd; /* its first member */
    json_decref(cmd->patch);
    job_unref(cmd->job);
    state_unref(cmd->restored);
    arena_free(box->arena);
    free(box);
}
