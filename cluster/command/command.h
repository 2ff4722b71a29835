/* Commands: the only way in which the documents change.  Each is small, typed and pure:
 *
 *     next = command_apply(current, cmd)      or an error that says why not
 *
 * A command that changes nothing returns the same snapshot (referenced); any other one makes the
 * state's version, and that of the sub-document it changes, greater by exactly one.  Repeating a
 * command is therefore safe: the second time it changes nothing, or says that what it wants is so
 * already (E_BUCKET_EXISTS, E_BUCKET_NOT_FOUND, E_NODE_NOT_FOUND, E_JOB_NOT_FOUND).
 *
 * What the metastore keeps of a change is the difference of the two snapshots
 * (cluster/documents/delta.h). */
#pragma once

#include "cluster/documents/job.h"
#include "cluster/placement/copies_reduce.h"
#include "cluster/documents/state.h"

enum command_kind {
    CMD_TERM_BEGIN, /* node = the new primary; term; wall_ms */
    CMD_NODE_JOIN, /* node, fresh, lost: added, or updated where it is known, and active; wall_ms */
    CMD_NODE_STATE,    /* name = id, node_state, wall_ms, force; see command.c for who may not go */
    CMD_NODE_ABSENT,   /* name = id, absent: struct node's absent_since; nothing where it is
                          unreachable */
    CMD_NODE_REMOVE,   /* name = id; of a node that is not active */
    CMD_BUCKET_CREATE, /* name, props, wall_ms; `actor` becomes the owner */
    CMD_BUCKET_DESTROY, /* name; bucket_id: 0, or the id of the bucket that was closed */
    CMD_BUCKET_CLOSE,   /* name, bucket_id: it takes no objects in this term, or until … */
    CMD_BUCKET_OPEN,    /* … name, bucket_id */
    CMD_BUCKET_PROPS,   /* name, patch: the props that change, as in the bucket's document */
    CMD_BUCKET_TEXTS,   /* name, patch: {"cors": text, or null for none} */
    CMD_BUCKET_RENAME,  /* name, text = the new name; not while an unfinished job uses it */
    CMD_CONFIG_SET,     /* name, text (NULL: back to the default) */
    CMD_JOB_CREATE,     /* job */
    CMD_JOB_UPDATE,     /* job: the new form; its move is checked */
    CMD_JOB_FORGET,     /* name = id: an ended job leaves the document */
    CMD_MOVES_DONE, /* placed: every object lies by the set of owners that began with this version
                     */
    CMD_LAG_DONE,   /* lagged, placed: a repair that began when the map had these has compared what
                     * all   active targets have */
    CMD_COPIES_FILLED,  /* raised, lagged, placed: after that one; the repair has brought to all
                         * owners what there was in the buckets whose copies had been raised by then
                         */
    CMD_COPIES_LOWERED, /* fence: no target has anything left that nobody owns of its bucket */
    /* On the document `access`: `actor` asks.  access_rules.h says what is refused. */
    CMD_USER_ADD,    /* text = a new id; patch: name, kind, enabled, roles, grants, rate; key */
    CMD_USER_CHANGE, /* name, patch: fields as above that change, and tokens_after_ms; wall_ms */
    CMD_USER_REMOVE, /* name */
    CMD_KEY_ADD,     /* name, key; a user has at most USER_KEYS_MAX */
    CMD_KEY_REMOVE,  /* name, text = the access key; wall_ms: older tokens end */
    CMD_PASSWORD,    /* name, text = the hash, "" for none; wall_ms as above */
    CMD_GRANT,       /* name, patch: a grant that the user gets */
    CMD_REVOKE,      /* name, patch: a grant whose rights the user loses on this very place */
    CMD_ROLE_PUT,    /* patch: the whole role, new or in place of the one of its name */
    CMD_ROLE_REMOVE, /* name; not while a user has it */
    CMD_ROOT_KEY,    /* text = a new id, key; wall_ms: `root` is made or repaired, see access.c */
    CMD_RESEAL,      /* patch: {access key: the same secret, sealed anew} */
    CMD_RESTORE,     /* restored: its buckets and settings; seen_bmd, seen_config: the versions
                         * that they must have now; term: of the new term in its epoch */
};

struct command {
    enum command_kind kind;
    const char *name;
    const char *text;
    uint64_t term;
    uint64_t placed;
    uint64_t lagged, raised;
    uint64_t bucket_id;
    struct copies_reduce_fence fence;
    int64_t wall_ms;
    enum node_state node_state;
    const struct node *node;
    bool force; /* also where that may lose what only this node has */
    bool fresh; /* the node has seen no cluster yet: a target has no objects */
    bool absent;
    bool lost; /* it comes without what it had, or with less, as its operator says */
    const struct bucket_props *props;
    json_t *patch;
    const struct job *job;
    const char *actor; /* id of the user who asks; NULL: an operator with the cluster key */
    const struct access_key *key;
    const struct cluster_state *restored;
    uint64_t seen_bmd, seen_config;
};

int command_apply(const struct cluster_state *s, const struct command *cmd,
                  const struct cluster_state **next, struct error *err);

/* A copy that owns everything it points to, for handing a command to another thread. */
struct command *command_copy(const struct command *cmd);
void command_free(struct command *cmd); /* of command_copy() */
