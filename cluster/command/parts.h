/* The appliers of command.c's table, and what they have in common: each refuses, keeps the
 * snapshot, or builds the next one out of it and one new sub-document.  Internal to cluster/. */
#pragma once

#include "cluster/base/document.h"
#include "cluster/documents/smap_change.h"

struct access;
struct bmd;
struct cluster_state;
struct command;
struct error;
struct jobs;

typedef int command_fn(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err);

/* nodes.c */
command_fn command_term_begin;
command_fn command_node_join;
command_fn command_node_state;
command_fn command_node_absent;
command_fn command_node_remove;
command_fn command_moves_done;
command_fn command_lag_done;

/* buckets.c */
command_fn command_bucket_create;
command_fn command_bucket_destroy;
command_fn command_bucket_close;
command_fn command_bucket_open;
command_fn command_bucket_props;
command_fn command_bucket_texts;
command_fn command_bucket_rename;
command_fn command_copies_filled, command_copies_lowered;

/* access.c */
command_fn command_user_add, command_user_change, command_user_remove;
command_fn command_key_add, command_key_remove, command_password;
command_fn command_grant, command_revoke;
command_fn command_role_put, command_role_remove;
command_fn command_root_key, command_reseal;

/* jobs.c */
command_fn command_job_create;
command_fn command_job_update;
command_fn command_job_forget;

/* Is the map, as far as copies go, that of the repair which the command tells of?  E_STALE_MAP. */
int command_check_repaired(const struct cluster_state *s, const struct command *cmd,
                           struct error *err);
int command_keep(const struct cluster_state *s, const struct cluster_state **next);
/* The next snapshot with this sub-document, which it owns from here on. */
struct cluster_state *command_next_smap(const struct cluster_state *s, const struct smap *m);
struct cluster_state *command_next_bmd(const struct cluster_state *s, const struct bmd *b);
struct cluster_state *command_next_jobs(const struct cluster_state *s, const struct jobs *j);
struct cluster_state *command_next_access(const struct cluster_state *s, const struct access *a);
