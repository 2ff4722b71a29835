/* What the commands of the table do: each returns an exit code (exit.h). */
#pragma once

#include "api/ctl/args.h"
#include "api/ctl/ctl.h"
#include "api/ctl/names/name.h"

int cluster_status(struct ctl *ctl, const struct args *args);

int cluster_health(struct ctl *ctl, const struct args *args);
int cluster_watch(struct ctl *ctl, const struct args *args);
int cluster_top(struct ctl *ctl, const struct args *args);
int cluster_events(struct ctl *ctl, const struct args *args);
int cluster_migrate_metastore(struct ctl *ctl, const struct args *args);
int cluster_set_primary(struct ctl *ctl, const struct args *args);
int cluster_backup(struct ctl *ctl, const struct args *args);
int cluster_restore(struct ctl *ctl, const struct args *args);
int cluster_recover(struct ctl *ctl, const struct args *args);

int config_show(struct ctl *ctl, const struct args *args);
int config_set(struct ctl *ctl, const struct args *args);

int node_ls(struct ctl *ctl, const struct args *args);
int node_show(struct ctl *ctl, const struct args *args);
int node_rm(struct ctl *ctl, const struct args *args);
int node_logs(struct ctl *ctl, const struct args *args);
int node_maintenance(struct ctl *ctl, const struct args *args);
int node_ok_to_stop(struct ctl *ctl, const struct args *args);
int node_decommission(struct ctl *ctl, const struct args *args);
int cluster_rebalance(struct ctl *ctl, const struct args *args);

int bucket_create(struct ctl *ctl, const struct args *args);
int bucket_ls(struct ctl *ctl, const struct args *args);
int bucket_props(struct ctl *ctl, const struct args *args);
int bucket_rm(struct ctl *ctl, const struct args *args);
int bucket_mv(struct ctl *ctl, const struct args *args);
int bucket_cp(struct ctl *ctl, const struct args *args);
int bucket_prefetch(struct ctl *ctl, const struct args *args);
int bucket_evict(struct ctl *ctl, const struct args *args);
int bucket_archive(struct ctl *ctl, const struct args *args);
int bucket_unarchive(struct ctl *ctl, const struct args *args);
int bucket_promote(struct ctl *ctl, const struct args *args);
int bucket_wait(struct ctl *ctl, const struct args *args);
int bucket_download(struct ctl *ctl, const struct args *args);

int object_put(struct ctl *ctl, const struct args *args);
struct object_name;
struct put_flags;
/* put --shards: one folder as shards; its flags were read. */
int object_put_shards(struct ctl *ctl, const struct args *args, const struct object_name *to,
                      const struct put_flags *flags);
int object_get(struct ctl *ctl, const struct args *args);
int object_ls(struct ctl *ctl, const struct args *args);
int object_du(struct ctl *ctl, const struct args *args);
int object_rm(struct ctl *ctl, const struct args *args);
int object_rm_by_job(struct ctl *ctl, const struct args *args);
int object_mv(struct ctl *ctl, const struct args *args);
int object_cp(struct ctl *ctl, const struct args *args);
/* cp of BUCKET/PATTERN; value: the request but for its names. */
int object_cp_pattern(struct ctl *ctl, const struct args *args, const char *bucket,
                      const char *pattern, json_t *value);
/* cp to a key, or --recursive; both names are changed. */
int object_cp_stream(struct ctl *ctl, const struct args *args, struct object_name *from,
                     struct object_name *to);
int object_cp_of_file(struct ctl *ctl, const char *path); /* refuses it */
int object_head(struct ctl *ctl, const struct args *args);
int object_show(struct ctl *ctl, const struct args *args);
int object_sync(struct ctl *ctl, const struct args *args);

int plog_check(struct ctl *ctl, const struct args *args);
int plog_cp(struct ctl *ctl, const struct args *args);
int plog_end_dead(struct ctl *ctl, const struct args *args);
int plog_flatten(struct ctl *ctl, const struct args *args);
int plog_gc(struct ctl *ctl, const struct args *args);
int plog_ls(struct ctl *ctl, const struct args *args);
int plog_map_extents(struct ctl *ctl, const struct args *args);
int plog_mount(struct ctl *ctl, const struct args *args);
int plog_show(struct ctl *ctl, const struct args *args);
int plog_umount(struct ctl *ctl, const struct args *args);
int ring_status(struct ctl *ctl, const struct args *args);
int ring_push(struct ctl *ctl, const struct args *args);
int ring_get(struct ctl *ctl, const struct args *args);
int ring_wait(struct ctl *ctl, const struct args *args);
int ring_swap(struct ctl *ctl, const struct args *args);
int ring_clear(struct ctl *ctl, const struct args *args);
int ring_save(struct ctl *ctl, const struct args *args);
int ring_verify(struct ctl *ctl, const struct args *args);
int ring_ack(struct ctl *ctl, const struct args *args);
int ring_leave(struct ctl *ctl, const struct args *args);
int ring_pause(struct ctl *ctl, const struct args *args);
int ring_resume(struct ctl *ctl, const struct args *args);
int upload_ls(struct ctl *ctl, const struct args *args);
int upload_abort(struct ctl *ctl, const struct args *args);
int object_url(struct ctl *ctl, const struct args *args);
int object_cat(struct ctl *ctl, const struct args *args);

int archive_ls(struct ctl *ctl, const struct args *args);
int archive_cat(struct ctl *ctl, const struct args *args);
int archive_get(struct ctl *ctl, const struct args *args);
int archive_extract(struct ctl *ctl, const struct args *args);
int archive_append(struct ctl *ctl, const struct args *args);
int archive_create(struct ctl *ctl, const struct args *args);

int sort_start(struct ctl *ctl, const struct args *args);
int sort_plan(struct ctl *ctl, const struct args *args);
int sort_local(struct ctl *ctl, const struct args *args);
int sort_verify(struct ctl *ctl, const struct args *args);
int sort_status(struct ctl *ctl, const struct args *args);
int sort_ls(struct ctl *ctl, const struct args *args);
int sort_abort(struct ctl *ctl, const struct args *args);
int sort_forget(struct ctl *ctl, const struct args *args);

int job_start(struct ctl *ctl, const struct args *args);
int job_ls(struct ctl *ctl, const struct args *args);
int job_show(struct ctl *ctl, const struct args *args);
int job_wait(struct ctl *ctl, const struct args *args);
int job_abort(struct ctl *ctl, const struct args *args);

int storage_df(struct ctl *ctl, const struct args *args);
int storage_summary(struct ctl *ctl, const struct args *args);
int storage_mountpath(struct ctl *ctl, const struct args *args);
int storage_reindex(struct ctl *ctl, const struct args *args);
int storage_validate(struct ctl *ctl, const struct args *args);
int storage_scrub(struct ctl *ctl, const struct args *args);

int fs_format(struct ctl *ctl, const struct args *args);
int fs_info(struct ctl *ctl, const struct args *args);
int fs_mount(struct ctl *ctl, const struct args *args);
int fs_umount(struct ctl *ctl, const struct args *args);
int fs_tool(struct ctl *ctl, const struct args *args); /* those of volumes */
int fs_warmup(struct ctl *ctl, const struct args *args);
int fs_stats(struct ctl *ctl, const struct args *args);

int vdisc_burn(struct ctl *ctl, const struct args *args);
int vdisc_ls(struct ctl *ctl, const struct args *args);
int vdisc_tree(struct ctl *ctl, const struct args *args);
int vdisc_cat(struct ctl *ctl, const struct args *args);
int vdisc_cp(struct ctl *ctl, const struct args *args);
int vdisc_inspect(struct ctl *ctl, const struct args *args);
int vdisc_verify_image(struct ctl *ctl, const struct args *args);
int vdisc_export(struct ctl *ctl, const struct args *args);
int vdisc_stats(struct ctl *ctl, const struct args *args);
int vdisc_rm(struct ctl *ctl, const struct args *args);
int vdisc_gc(struct ctl *ctl, const struct args *args);
int vdisc_mount(struct ctl *ctl, const struct args *args);
int vdisc_umount(struct ctl *ctl, const struct args *args);
int vdisc_serve(struct ctl *ctl, const struct args *args);

int user_ls(struct ctl *ctl, const struct args *args);
int user_show(struct ctl *ctl, const struct args *args);
int user_create(struct ctl *ctl, const struct args *args);
int user_update(struct ctl *ctl, const struct args *args);
int user_rm(struct ctl *ctl, const struct args *args);
int user_password(struct ctl *ctl, const struct args *args);
int user_key(struct ctl *ctl, const struct args *args);
int user_grant(struct ctl *ctl, const struct args *args);
int user_revoke(struct ctl *ctl, const struct args *args);
int bucket_grant(struct ctl *ctl, const struct args *args);
int bucket_revoke(struct ctl *ctl, const struct args *args);
int role_ls(struct ctl *ctl, const struct args *args);
int role_show(struct ctl *ctl, const struct args *args);
int role_set(struct ctl *ctl, const struct args *args);
int role_rm(struct ctl *ctl, const struct args *args);
int auth_explain(struct ctl *ctl, const struct args *args);

int session_login(struct ctl *ctl, const struct args *args);
int session_logout(struct ctl *ctl, const struct args *args);
int session_whoami(struct ctl *ctl, const struct args *args);

int support_bundle(struct ctl *ctl, const struct args *args);

int show_help(struct ctl *ctl, const struct args *args);
int show_version(struct ctl *ctl, const struct args *args);
int show_completion(struct ctl *ctl, const struct args *args);
int complete(struct ctl *ctl, const struct args *args); /* hidden: __complete */
