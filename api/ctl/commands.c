/* The command table: a file of rows for each noun, in verbs/. */
#include "api/ctl/commands.h"

#include <limits.h>

#define ANY UINT_MAX
#define FLAGS(...) ((const enum flag_id[]){__VA_ARGS__ __VA_OPT__(, ) F_END})

#define ARCHIVES_ARE                                                                              \
    "Tars of all dialects, zips and cpios are read, compressed by gzip, bzip2, xz, zstd or lz4\n" \
    "or not; with --formats also others. The content decides, not the name."
#define KEY_MAY_BE_PATTERN                                                         \
    "A KEY with *, ? or [ is a pattern (glob) of whole names, as 'ls' takes it.\n" \
    "* matches any text, also slashes; ? one character; [0-9] one of several.\n"   \
    "A \\ before a sign takes it as it is: 'b/a\\*' names the object 'a*'.\n"      \
    "If an object has the pattern's very text as its name, the command refuses\n"  \
    "(exit code 2): escape the signs for the object, or add --pattern.\n"          \
    "A pattern that matches nothing is an error (exit code 4); --allow-empty\n"    \
    "accepts that."

#define OF_SORT_INPUT                                                                      \
    {F_template, "input_format: names of the input shards, such as shard-{000..999}.tar"}, \
    {                                                                                      \
        F_prefix, "input_format: input shards whose names begin with PREFIX"               \
    }

static const struct flag_help of_sort[] = {OF_SORT_INPUT, {F_END, NULL}};
static const struct flag_help of_sort_local[] = {
    OF_SORT_INPUT,
    {F_ekm_file, "ekm_file: an external key map, a file of this machine"},
    {F_END, NULL}};
static const struct flag_help of_put[] = {{F_recursive, "directories are stored whole in any case"},
                                          {F_if_absent, "leave objects that exist as they are"},
                                          {F_delete, "with --shards: remove shards of higher "
                                                     "numbers that an earlier put left"},
                                          {F_END, NULL}};
static const struct flag_help of_sync[] = {
    {F_dry_run, "print what would be sent and removed, and do nothing"}, {F_END, NULL}};
static const struct flag_help of_node_wait[] = {
    {F_wait, "wait until its objects are moved; of a target that leaves: until it has left"},
    {F_END, NULL}};
static const struct flag_help of_node_ok[] = {{F_wait, "wait until it may be stopped"},
                                              {F_END, NULL}};
static const struct flag_help of_vdisc_burn[] = {
    {F_to, "the image: dfc://BUCKET/NAME.vdsc; -o IMAGE does the same"},
    {F_bucket,
     "dfc://BUCKET[/PREFIX]: the objects that become files; paths begin behind the prefix"},
    {F_no_check,
     "do not ask for the objects: then the image has no tags, and what the list says is "
     "believed"},
    {F_parallel, "objects that are asked for, or stored, at once (default 8)"},
    {F_allow_empty, "an empty list makes an empty image"},
    {F_END, NULL}};
static const struct flag_help of_vdisc_gc[] = {{F_dry_run, "count, and remove nothing"},
                                               {F_END, NULL}};
static const struct flag_help of_vdisc_export[] = {{F_to, "the file; -o FILE does the same"},
                                                   {F_END, NULL}};
static const struct flag_help of_vdisc[] = {{F_recursive, "also what is in directories"},
                                            {F_long, "show modes and owners, too"},
                                            {F_END, NULL}};
static const struct flag_help of_archive[] = {
    {F_prepend, "text before the name of each member"},
    {F_bare, "members have no directories: a/b/c.jpg becomes c.jpg"},
    {F_shard_size, "make archives of so many bytes each; KEY is their template"},
    {F_seed, "shuffle, in the same order each time"},
    {F_END, NULL}};
static const struct flag_help of_unarchive[] = {{F_prepend, "text before the name of each object"},
                                                {F_END, NULL}};
static const struct flag_help of_promote[] = {{F_prepend, "text before the name of each object"},
                                              {F_node, "this target's files alone"},
                                              {F_END, NULL}};
static const struct flag_help of_prefetch[] = {
    {F_parallel, "transfers at once on each target (default: its parameter prefetch_parallel)"},
    {F_END, NULL}};
static const struct flag_help of_download[] = {
    {F_parallel, "transfers at once on each target (default: its parameter prefetch_parallel)"},
    {F_list, "a file with one URL a line (-: standard input)"},
    {F_template, "URLs, such as https://host/shard-{000..999}.tar"},
    {F_prepend, "text before the name of each object"},
    {F_END, NULL}};
static const struct flag_help of_validate[] = {
    {F_rate,
     "with --checksums: bytes a second that are read at each mountpath (default 64MiB; 0: no "
     "limit)"},
    {F_END, NULL}};

static const struct flag_help of_user[] = {{F_kind, "service (default) or person"}, {F_END, NULL}};
static const struct flag_help of_role[] = {
    {F_requests_rate,
     "calls a second that each node takes from each user with the role (0: no limit)"},
    {F_bytes_rate,
     "bytes a second, in both directions, that each node moves for each user with the role (0: no "
     "limit)"},
    {F_END, NULL}};
static const struct flag_help of_grant[] = {{F_prefix, "only keys that begin with PREFIX"},
                                            {F_END, NULL}};

static const struct flag_help of_fs[] = {
    {F_parallel, "requests for data at once (default 16)"},
    {F_part_size, "larger files are written in parts of this size, 5MiB to 1GiB (default 16MiB)"},
    {F_END, NULL}};
static const struct flag_help of_fs_warmup[] = {
    {F_list, "a file with paths, one a line (-: standard input)"},
    {F_parallel, "files at once (default 16)"},
    {F_END, NULL}};
static const struct flag_help of_fs_gc[] = {
    {F_delete, "delete garbage, and blocks of removed files after 15 minutes"}, {F_END, NULL}};
static const struct flag_help of_fs_cache[] = {
    {F_timeout, "wait no longer for the member (default 60s)"}, {F_END, NULL}};
static const struct flag_help of_fs_umount[] = {
    {F_timeout, "wait no longer for the process (default 60s)"}, {F_END, NULL}};

static const struct flag_help of_plog_mount[] = {
    {F_write_buffer,
     "memory of all writers; above it, writes wait until theirs is stored (default 512MiB)"},
    {F_uploads, "segments of a file that are stored at once, at most 64 (default 8)"},
    {F_max_readahead, "what is read ahead of one segment at most (default 32MiB; 0: nothing)"},
    {F_parallel, "requests for data at once (default 16)"},
    {F_read_only, "programs may write nothing"},
    {F_uid, "owner of directories (default: the caller)"},
    {F_gid, "group of directories (default: the caller's)"},
    {F_dir_mode, "permissions of directories, octal (default 0755)"},
    {F_END, NULL}};
static const struct flag_help of_plog_recover[] = {
    {F_timeout, "a writer that says nothing for so long is dead (default 60s)"}, {F_END, NULL}};

static const struct flag_help of_plog_flatten[] = {
    {F_job, "let the targets do it, and print the job's id"},
    {F_recursive, "with --job: all plogs whose names begin with NAME"},
    {F_END, NULL}};
static const struct flag_help of_plog_gc[] = {
    {F_grace, "a container of which an object is younger stays (default 1d)"},
    {F_dry_run, "count, and remove nothing"},
    {F_END, NULL}};
static const struct flag_help of_plog_ls[] = {
    {F_long, "show ids, too: the objects are below .dfc-plog/ID/"}, {F_END, NULL}};

const struct noun nouns[] = {
    {"cluster", "The whole cluster"},
    {"bucket", "Buckets: names for objects that share properties"},
    {"object", "Objects: bytes with a name"},
    {"archive", "Archives: members of tars and zips"},
    {"ring", "Rings of samples"},
    {"plog", "Files that many processes write at once"},
    {"upload", "Uploads in parts that are not completed"},
    {"sort", "SortDataset: a dataset of tar shards becomes an ordered one"},
    {"job", "Jobs: everything long that the cluster does by itself"},
    {"node", "Proxies and targets"},
    {"config", "Settings of the cluster, parameters of its nodes"},
    {"storage", "The targets' disks, and what is on them"},
    {"fs", "File systems: buckets and volumes that are mounted"},
    {"vdisc", "Dataset images: read-only file systems of objects"},
    {"user", "Users of a cluster with access control, and their keys"},
    {"role", "Roles: grants that several users have"},
    {"auth", "Decisions about rights"},
    {"login", "Be a user of a cluster with access control"},
    {"logout", "Forget a login"},
    {"whoami", "Which user the commands are of"},
    {"support", "Help from others"},
    {"help", "Help"},
    {"completion", "Completion for shells"},
    {"version", "Version"},
    {NULL, NULL},
};

const struct command commands[] = {
#include "api/ctl/verbs/cluster.def"
#include "api/ctl/verbs/bucket.def"
#include "api/ctl/verbs/object.def"
#include "api/ctl/verbs/archive.def"
#include "api/ctl/verbs/ring.def"
#include "api/ctl/verbs/plog.def"
#include "api/ctl/verbs/upload.def"
#include "api/ctl/verbs/sort.def"
#include "api/ctl/verbs/job.def"
#include "api/ctl/verbs/node.def"
#include "api/ctl/verbs/config.def"
#include "api/ctl/verbs/storage.def"
#include "api/ctl/verbs/fs.def"
#include "api/ctl/verbs/vdisc.def"
#include "api/ctl/verbs/user.def"
#include "api/ctl/verbs/login.def"
#include "api/ctl/verbs/support.def"
#include "api/ctl/verbs/itself.def"
    {0},
};
