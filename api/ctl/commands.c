/* The command table. */
#include "api/ctl/commands.h"

#include <limits.h>

#define ANY UINT_MAX
#define FLAGS(...) ((const enum flag_id[]){__VA_ARGS__ __VA_OPT__(, ) F_END})

const struct noun nouns[] = {
    {"cluster", "The whole cluster"},
    {"bucket", "Buckets: names for objects that share properties"},
    {"object", "Objects: bytes with a name"},
    {"sort", "SortDataset: a dataset of tar shards becomes an ordered one"},
    {"job", "Jobs: everything long that the cluster does by itself"},
    {"node", "Proxies and targets"},
    {"config", "Settings of the cluster, parameters of its nodes"},
    {"storage", "The targets' disks, and what is on them"},
    {"help", "Help"},
    {"completion", "Completion for shells"},
    {"version", "Version"},
    {NULL, NULL},
};

const struct command commands[] = {
    {
        .noun = "cluster",
        .verb = "status",
        .words = "",
        .flags = FLAGS(F_watch, F_count, F_what),
        .run = cluster_status,
        .summary = "Show the nodes, their state and capacity, and what is going on",
        .text =
            "The primary proxy is marked [P]. With --what, one of the documents state, smap, bmd,\n"
            "config, jobs is printed as the cluster has it.",
        .examples = {"cluster status", "cluster status --watch=5", "cluster status -o json"},
    },
    {
        .noun = "cluster",
        .verb = "show",
        .words = "",
        .flags = FLAGS(F_watch, F_count, F_what),
        .run = cluster_status,
        .summary = "The same as 'cluster status'",
        .examples = {"cluster show"},
    },
    {
        .noun = "cluster",
        .verb = "members",
        .words = "",
        .flags = FLAGS(F_watch, F_count),
        .run = node_ls,
        .summary = "List proxies and targets, as 'node ls' does",
        .examples = {"cluster members"},
    },
    {
        .noun = "cluster",
        .verb = "health",
        .words = "",
        .flags = FLAGS(F_watch, F_count),
        .run = cluster_health,
        .summary = "Say green, yellow or red, and why",
        .text = "green: everybody is there. yellow: all objects are served, and something wants\n"
                "looking after. red: objects or changes are refused; the exit code is 1 then.",
        .examples = {"cluster health", "cluster health -o json"},
    },
    {
        .noun = "cluster",
        .verb = "watch",
        .words = "",
        .flags = FLAGS(F_watch, F_count),
        .watches = true,
        .run = cluster_watch,
        .summary = "Show nodes, health and running jobs, again and again",
        .text = "Every 2 seconds, or as --watch says.",
        .examples = {"cluster watch", "cluster watch --watch=10"},
    },
    {
        .noun = "cluster",
        .verb = "set-primary",
        .words = "NODE",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_NODE},
        .flags = FLAGS(),
        .run = cluster_set_primary,
        .summary = "Have another proxy be the primary (with etcd)",
        .text = "The primary resigns; changes wait for the next one, for a second or two.",
        .examples = {"cluster set-primary p2"},
    },
    {
        .noun = "cluster",
        .verb = "backup",
        .words = "FILE",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_FILE},
        .flags = FLAGS(),
        .run = cluster_backup,
        .summary = "Save the cluster's documents: nodes, buckets, settings, jobs (not the objects)",
        .text = "One JSON file with a checksum. 'cluster restore' takes it, and dfc-proxyd --import.",
        .examples = {"cluster backup dfc-$(date +%F).json", "cluster backup - | gzip > dfc.json.gz"},
    },
    {
        .noun = "cluster",
        .verb = "restore",
        .words = "FILE",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_FILE},
        .flags = FLAGS(F_dry_run, F_yes),
        .run = cluster_restore,
        .summary = "Put buckets and settings back to what a backup has",
        .text = "Shows first what would change, and asks; elsewhere than on a terminal --yes is\n"
                "required. Nodes and jobs stay as they are. It is for the cluster that the backup is\n"
                "of; where all documents are lost: 'cluster recover', or dfc-proxyd --import FILE.",
        .examples = {"cluster restore dfc-2026-11-21.json --dry-run"},
    },
    {
        .noun = "cluster",
        .verb = "recover",
        .words = "",
        .flags = FLAGS(F_cluster, F_node, F_dry_run, F_yes),
        .run = cluster_recover,
        .summary = "Rebuild the documents of a primary that lost its directory, from the nodes' copies",
        .text = "For a primary with an embedded metastore that was started with an empty directory, or\n"
                "an earlier one: its targets ask it to let them in, and are refused. Shown are the\n"
                "copies that they have, and which one would be believed: the latest. It asks before it\n"
                "is done; elsewhere than on a terminal --yes is required. --node takes that node's copy.",
        .examples = {"cluster recover --dry-run", "cluster recover --yes"},
    },
    {
        .noun = "cluster",
        .verb = "migrate-metastore",
        .words = "",
        .flags = FLAGS(F_to, F_etcd_prefix, F_yes),
        .run = cluster_migrate_metastore,
        .summary = "Move the documents of an embedded primary to etcd",
        .text = "While the cluster runs; objects are served all the time, changes are refused from then\n"
                "until a proxy is started with --metastore. May be repeated after any failure.\n"
                "docs/operations.md, 'Growing', has the whole way, and the way back.",
        .examples = {"cluster migrate-metastore --to etcd://10.0.0.5:2379,10.0.0.6:2379,10.0.0.7:2379"},
    },
    {
        .noun = "bucket",
        .verb = "create",
        .words = "BUCKET",
        .min_words = 1,
        .max_words = 1,
        .flags = FLAGS(F_copies, F_durability, F_checksum, F_verify_on_read, F_backend, F_lru,
                       F_lru_min_age, F_write_policy, F_validate, F_validate_interval, F_stale,
                       F_range_fetch),
        .run = bucket_create,
        .summary = "Create a bucket",
        .text =
            "With --backend the bucket is a cache of another store: objects that are not here are\n"
            "read from there at the first GET, kept, and read here from then on. Keys are not part\n"
            "of the URL: the targets find them in their environment or in ~/.aws/credentials.\n"
            "Writes are refused, unless --write-policy through has them go to the backend (S3).",
        .examples = {"bucket create train", "bucket create scratch --durability async",
                     "bucket create cache --backend 's3://name/prefix?endpoint=http://store:9000'",
                     "bucket create web --backend https://data.example.org/sets"},
    },
    {
        .noun = "bucket",
        .verb = "ls",
        .words = "",
        .flags = FLAGS(F_watch, F_count),
        .run = bucket_ls,
        .summary = "List the buckets",
        .examples = {"bucket ls", "bucket ls -o json"},
    },
    {
        .noun = "bucket",
        .verb = "props",
        .words = "BUCKET",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_BUCKET},
        .flags = FLAGS(F_copies, F_durability, F_checksum, F_verify_on_read, F_backend, F_lru,
                       F_lru_min_age, F_write_policy, F_validate, F_validate_interval, F_stale,
                       F_range_fetch),
        .run = bucket_props,
        .summary = "Show a bucket's properties; change those that flags name",
        .examples = {"bucket props train", "bucket props train --durability async"},
    },
    {
        .noun = "bucket",
        .verb = "rm",
        .words = "BUCKET...",
        .min_words = 1,
        .max_words = ANY,
        .kinds = {WORD_BUCKET, WORD_BUCKET},
        .flags = FLAGS(F_yes),
        .run = bucket_rm,
        .summary = "Destroy buckets and everything in them",
        .text = "Asks first on a terminal; elsewhere --yes is required.",
        .examples = {"bucket rm scratch --yes"},
    },
    {
        .noun = "bucket",
        .verb = "mv",
        .words = "BUCKET NEW",
        .min_words = 2,
        .max_words = 2,
        .kinds = {WORD_BUCKET, WORD_OTHER},
        .flags = FLAGS(),
        .run = bucket_mv,
        .summary = "Give a bucket another name",
        .text = "Nothing is copied. A bucket that an unfinished job works on keeps its name.",
        .examples = {"bucket mv train train-2025"},
    },
    {
        .noun = "bucket",
        .verb = "cp",
        .words = "BUCKET TO",
        .min_words = 2,
        .max_words = 2,
        .kinds = {WORD_BUCKET, WORD_BUCKET},
        .flags = FLAGS(F_prefix, F_prepend, F_description, F_wait, F_timeout),
        .run = bucket_cp,
        .summary = "Copy a bucket's objects to another bucket, in a job; print its id",
        .text = "The bucket TO must exist. The targets send the objects to one another; an object "
                "that\n"
                "has the same size and checksum there already is passed over, so that the same "
                "command\n"
                "again copies what is new. With --wait, the exit code is 0 where the job finished "
                "and 1\n"
                "where it failed or was aborted; what was copied until then stays.",
        .examples = {"bucket cp train backup --wait", "bucket cp train all --prepend train/",
                     "bucket cp train backup --prefix shards/"},
    },
    {
        .noun = "bucket",
        .verb = "prefetch",
        .words = "BUCKET",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_BUCKET},
        .flags = FLAGS(F_template, F_prefix, F_list, F_parallel, F_rate, F_description, F_wait,
                       F_timeout),
        .run = bucket_prefetch,
        .summary = "Bring objects of a bucket with a backend here, in a job; print its id",
        .text = "What is here is passed over (where the bucket's --validate asks the backend at reads, so\n"
                "does this); what the backend does not have is counted as missing.",
        .examples = {"bucket prefetch cache --template 'shard-{0000..0999}.tar' --wait",
                     "bucket prefetch cache --list epoch.txt --rate 100MiB -j 32"},
    },
    {
        .noun = "bucket",
        .verb = "evict",
        .words = "BUCKET",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_BUCKET},
        .flags = FLAGS(F_template, F_prefix, F_list, F_description, F_wait, F_timeout),
        .run = bucket_evict,
        .summary = "Let go of what is kept here of a backend's objects, in a job; print its id",
        .text = "The backend's objects are not touched: the next read fetches them again.",
        .examples = {"bucket evict cache --prefix old/ --wait", "bucket evict cache --prefix ''"},
    },
    {
        .noun = "bucket",
        .verb = "download",
        .words = "BUCKET [URL...]",
        .min_words = 1,
        .max_words = ANY,
        .kinds = {WORD_BUCKET, WORD_OTHER},
        .flags = FLAGS(F_template, F_list, F_prepend, F_parallel, F_rate, F_description, F_wait,
                       F_timeout),
        .run = bucket_download,
        .summary = "Download http(s) URLs into a bucket, in a job; print its id",
        .text = "The targets do it, so they must reach the servers. An object gets the last segment of\n"
                "its URL's path as name. What came from the same URL before is asked about first, and\n"
                "passed over where it has not changed. The URLs are in the job's document: everybody\n"
                "sees them, with the queries of signed ones.",
        .examples = {"bucket download train https://data.example.org/a.tar --wait",
                     "bucket download train --template 'https://h/set/shard-{0000..0999}.tar' --prepend set/",
                     "bucket download train --list urls.txt -j 32"},
    },
    {
        .noun = "object",
        .verb = "put",
        .alias = "put",
        .words = "SOURCE... BUCKET[/KEY]",
        .min_words = 2,
        .max_words = ANY,
        .kinds = {WORD_FILE, WORD_OBJECT},
        .flags = FLAGS(F_parallel, F_content_type, F_meta, F_if_absent, F_if_match, F_no_checksum),
        .run = object_put,
        .summary = "Store files, whole directories, or standard input (-)",
        .text =
            "A KEY that is missing or ends with / is completed with the file's name. A "
            "directory's\n"
            "files get KEY/ and their path below it as names; what cannot be stored (a socket, a\n"
            "symbolic link to a directory, a file that cannot be read) is listed, and the exit "
            "code is\n"
            "6. A file's checksum is sent along and verified by the target.",
        .examples = {"put shard-000.tar train", "put model.bin train/models/v1.bin -m step=1200",
                     "put -j 16 ./shards train/shards", "object put - train/log.txt < log.txt"},
    },
    {
        .noun = "object",
        .verb = "get",
        .alias = "get",
        .words = "BUCKET[/KEY] [PATH]",
        .min_words = 1,
        .max_words = 2,
        .kinds = {WORD_OBJECT, WORD_FILE},
        .flags = FLAGS(F_recursive, F_parallel, F_offset, F_length, F_if_match, F_no_checksum),
        .run = object_get,
        .summary = "Fetch an object, or everything below a prefix into a directory",
        .text =
            "PATH is a file, a directory, or - for standard output; without it, the file gets the\n"
            "name behind the key's last slash. A file appears under its name only when it is\n"
            "whole and its checksum is right; until then it is .dfc-… beside it, which a kill -9\n"
            "leaves there.\n\n"
            "With --recursive, or where the key is missing or ends with /, everything below it is\n"
            "fetched into the directory PATH (default: here). Keys that do not name a file below "
            "it\n"
            "(.., empty parts) are refused and listed, and the exit code is 6.",
        .examples = {"get train/shard-000.tar", "get train/shard-000.tar - | tar t",
                     "get -r train/shards ./shards -j 16",
                     "get train/big.bin part --offset 1GiB --length 16MiB"},
    },
    {
        .noun = "object",
        .verb = "ls",
        .alias = "ls",
        .words = "[BUCKET[/PREFIX]]",
        .max_words = 1,
        .kinds = {WORD_OBJECT},
        .flags = FLAGS(F_prefix, F_delimiter, F_start_after, F_limit, F_partial, F_cached, F_watch,
                       F_count),
        .run = object_ls,
        .summary = "List a bucket's objects in bytewise order; without a bucket, the buckets",
        .examples = {"ls", "ls train/shards/", "ls train -n 10 --delimiter /",
                     "ls train --start-after shards/0500 -o json"},
    },
    {
        .noun = "object",
        .verb = "rm",
        .alias = "rm",
        .words = "BUCKET/KEY...|BUCKET",
        .min_words = 1,
        .max_words = ANY,
        .kinds = {WORD_OBJECT, WORD_OBJECT},
        .flags = FLAGS(F_recursive, F_parallel, F_yes, F_template, F_prefix, F_list, F_description,
                       F_wait, F_timeout),
        .run = object_rm,
        .summary = "Remove objects; with --recursive or --prefix, --template, --list many of them",
        .text =
            "--recursive removes everything below the prefix, one by one, from here. --prefix,\n"
            "--template and --list have a bucket's objects removed by a job of the cluster, and "
            "print its\n"
            "id; objects that are put after that stay. All of these ask first on a terminal; "
            "elsewhere they\n"
            "require --yes. What a job has removed stays removed when it is aborted.",
        .examples = {"rm train/shard-000.tar", "rm -r train/old/ --yes",
                     "rm train --template 'shard-{0000..0099}.tar' --yes --wait",
                     "rm train --list names.txt --yes"},
    },
    {
        .noun = "object",
        .verb = "cp",
        .alias = "cp",
        .words = "BUCKET[/KEY] TO",
        .min_words = 2,
        .max_words = 2,
        .kinds = {WORD_OBJECT, WORD_BUCKET},
        .flags = FLAGS(F_template, F_prefix, F_list, F_prepend, F_description, F_wait, F_timeout),
        .run = object_cp,
        .summary = "Copy objects to another bucket, in a job; print its id",
        .text = "One object, or those that --template, --prefix or --list say. As 'bucket cp'.",
        .examples = {"cp train/shard-000.tar backup --wait",
                     "cp train backup --template 'shard-{0000..0099}.tar'",
                     "cp train train --prefix raw/ --prepend copy/"},
    },
    {
        .noun = "object",
        .verb = "mv",
        .alias = "mv",
        .words = "BUCKET/KEY BUCKET/NEW",
        .min_words = 2,
        .max_words = 2,
        .kinds = {WORD_OBJECT, WORD_OBJECT},
        .flags = FLAGS(),
        .run = object_mv,
        .summary = "Give an object another name in its bucket",
        .text =
            "An object that has the new name is replaced. The object is copied to its new place,\n"
            "then the old name goes: a reader finds one of the two, for a moment both.",
        .examples = {"mv train/a.tar train/b.tar"},
    },
    {
        .noun = "object",
        .verb = "head",
        .words = "BUCKET/KEY",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_OBJECT},
        .flags = FLAGS(),
        .run = object_head,
        .summary = "Show an object's size, version, checksum and metadata",
        .examples = {"object head train/shard-000.tar"},
    },
    {
        .noun = "object",
        .verb = "cat",
        .alias = "cat",
        .words = "BUCKET/KEY...",
        .min_words = 1,
        .max_words = ANY,
        .kinds = {WORD_OBJECT, WORD_OBJECT},
        .flags = FLAGS(F_offset, F_length, F_no_checksum),
        .run = object_cat,
        .summary = "Write objects to standard output, one after another",
        .examples = {"cat train/index.json", "cat train/big.bin --offset 1MiB --length 64KiB"},
    },
    {
        .noun = "sort",
        .verb = "start",
        .words = "[SPEC|-]",
        .max_words = 1,
        .kinds = {WORD_FILE},
        .flags =
            FLAGS(F_input_bucket, F_output_bucket, F_template, F_prefix, F_output_format,
                  F_shard_size, F_algorithm, F_seed, F_decreasing, F_key_rule, F_input_extension,
                  F_output_extension, F_missing_shards, F_duplicated_records, F_max_mem,
                  F_description, F_dry_run, F_wait, F_timeout),
        .run = sort_start,
        .summary = "Start a sort; print its id",
        .text =
            "SPEC is a file in JSON or YAML with the fields of docs/sort.md (- : standard input);\n"
            "flags set or replace its fields. With --wait, progress is shown, and the exit code is "
            "0\n"
            "where the sort finished and 1 where it failed or was aborted. An interrupted --wait\n"
            "leaves the sort running.",
        .examples = {"sort start spec.yaml --wait",
                     "sort start --input-bucket train --template 'shard-{000..999}.tar' "
                     "--output-bucket sorted --output-format out-%06d.tar --shard-size 256MiB",
                     "sort start --input-bucket train --prefix raw/ --output-format s-%06d.tar "
                     "--shard-size 1GiB --algorithm shuffle --seed 7"},
    },
    {
        .noun = "sort",
        .verb = "plan",
        .words = "[SPEC|-]",
        .max_words = 1,
        .kinds = {WORD_FILE},
        .flags = FLAGS(F_input_bucket, F_output_bucket, F_template, F_prefix, F_output_format,
                       F_shard_size, F_algorithm, F_seed, F_decreasing, F_key_rule,
                       F_input_extension, F_output_extension, F_missing_shards,
                       F_duplicated_records, F_max_mem, F_description, F_timeout),
        .run = sort_plan,
        .summary = "Say what a sort would come to, without storing anything",
        .text = "Waits for a dry run: headers of tars are read, other formats and members that are "
                "keys\n"
                "are decoded. Prints the output's shards, records and bytes, and what would go over "
                "the\n"
                "network; an interrupted one leaves its dry run to end by itself.",
        .examples = {"sort plan spec.yaml"},
    },
    {
        .noun = "sort",
        .verb = "status",
        .words = "[ID]",
        .max_words = 1,
        .kinds = {WORD_JOB},
        .flags = FLAGS(F_regex, F_watch, F_count),
        .run = sort_status,
        .summary = "Show a sort in detail, or all of them",
        .examples = {"sort status srt-4k2j9x7a1b --watch", "sort status"},
    },
    {
        .noun = "sort",
        .verb = "ls",
        .words = "",
        .flags = FLAGS(F_regex, F_watch, F_count),
        .run = sort_ls,
        .summary = "List sorts",
        .examples = {"sort ls --regex nightly"},
    },
    {
        .noun = "sort",
        .verb = "abort",
        .words = "ID",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_JOB},
        .flags = FLAGS(),
        .run = sort_abort,
        .summary = "Abort a sort; nothing of its output remains",
        .examples = {"sort abort srt-4k2j9x7a1b"},
    },
    {
        .noun = "sort",
        .verb = "rm",
        .words = "ID",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_JOB},
        .flags = FLAGS(),
        .run = sort_forget,
        .summary = "Forget a sort that has ended (its output stays)",
        .examples = {"sort rm srt-4k2j9x7a1b"},
    },
    {
        .noun = "job",
        .verb = "start",
        .words = "KIND",
        .min_words = 1,
        .max_words = 1,
        .flags = FLAGS(F_wait, F_timeout),
        .run = job_start,
        .summary = "Start a job of a kind that needs nothing but its name; print its id",
        .text = "cleanup: remove tombstones that are older than tombstone_ttl, what is left of\n"
                "destroyed buckets, and abandoned files, on every target (which do the same by\n"
                "themselves, every sweep_interval).\n"
                "lru: evict what was used longest ago from buckets with a backend, until disks are\n"
                "at space_low (targets do so by themselves above space_high).",
        .examples = {"job start cleanup --wait", "job start lru --wait"},
    },
    {
        .noun = "job",
        .verb = "ls",
        .words = "",
        .flags = FLAGS(F_kind, F_state, F_watch, F_count),
        .run = job_ls,
        .summary = "List jobs",
        .examples = {"job ls", "job ls --state failed"},
    },
    {
        .noun = "job",
        .verb = "show",
        .words = "ID",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_JOB},
        .flags = FLAGS(F_watch, F_count),
        .run = job_show,
        .summary = "Show a job in detail",
        .text = "With --watch, until it has ended.",
        .examples = {"job show srt-4k2j9x7a1b", "job show srt-4k2j9x7a1b --watch"},
    },
    {
        .noun = "job",
        .verb = "wait",
        .words = "ID",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_JOB},
        .flags = FLAGS(F_timeout),
        .run = job_wait,
        .summary = "Wait until a job has ended",
        .text = "The exit code is 0 where it finished, 1 where it failed or was aborted, 5 where "
                "the time\n"
                "ran out.",
        .examples = {"job wait srt-4k2j9x7a1b --timeout 10m"},
    },
    {
        .noun = "job",
        .verb = "abort",
        .words = "ID",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_JOB},
        .flags = FLAGS(),
        .run = job_abort,
        .summary = "Abort a job",
        .examples = {"job abort srt-4k2j9x7a1b"},
    },
    {
        .noun = "node",
        .verb = "ls",
        .words = "",
        .flags = FLAGS(F_watch, F_count),
        .run = node_ls,
        .summary = "List proxies and targets",
        .examples = {"node ls"},
    },
    {
        .noun = "node",
        .verb = "show",
        .words = "NODE",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_NODE},
        .flags = FLAGS(F_what, F_watch, F_count),
        .run = node_show,
        .summary = "Show what a node says about itself",
        .text =
            "With --what, one of its documents smap, bmd, config, mountpaths, stats is printed.",
        .examples = {"node show t1", "node show t1 --what mountpaths"},
    },
    {
        .noun = "cluster",
        .verb = "rebalance",
        .words = "",
        .flags = FLAGS(F_wait, F_timeout),
        .run = cluster_rebalance,
        .summary = "Have every target send what another one owns to that owner; print the job's id",
        .text = "It begins by itself when targets come or go, unless the setting 'rebalance' is off.",
        .examples = {"cluster rebalance --wait"},
    },
    {
        .noun = "node",
        .verb = "maintenance",
        .words = "start|stop NODE",
        .min_words = 2,
        .max_words = 2,
        .kinds = {WORD_OTHER, WORD_NODE},
        .flags = FLAGS(F_force),
        .run = node_maintenance,
        .summary = "Move a target's objects off to the others, and later back",
        .text =
            "start NODE   it owns nothing from now on; a rebalance moves off what it has ('job ls\n"
            "             --kind rebalance'); when that is through it may be stopped\n"
            "stop NODE    it owns its share again, which a rebalance moves back\n"
            "Refused where no other target could take the objects, or where it does not answer;\n"
            "with --force then, too: its objects are out of reach until it is back.",
        .examples = {"node maintenance start t2", "node maintenance stop t2"},
    },
    {
        .noun = "node",
        .verb = "decommission",
        .words = "NODE",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_NODE},
        .flags = FLAGS(F_force, F_yes),
        .run = node_decommission,
        .summary = "Move a target's objects off, then let it leave the cluster for good",
        .text = "Until it has left, 'node maintenance stop' takes it back. A target that does not\n"
                "answer is refused; with --force it leaves at once, and what only it has is lost (asks\n"
                "first on a terminal; elsewhere --yes is required).",
        .examples = {"node decommission t4"},
    },
    {
        .noun = "node",
        .verb = "rm",
        .words = "NODE",
        .min_words = 1,
        .max_words = 1,
        .kinds = {WORD_NODE},
        .flags = FLAGS(F_yes),
        .run = node_rm,
        .summary = "Take a node that is unreachable out of the cluster for good",
        .text = "The names of objects that it owned belong to the other targets from then on; the "
                "objects\n"
                "that only it had are lost. Asks first on a terminal; elsewhere --yes is required.",
        .examples = {"node rm t4 --yes"},
    },
    {
        .noun = "config",
        .verb = "show",
        .words = "[NAME]",
        .max_words = 1,
        .flags = FLAGS(F_node),
        .run = config_show,
        .summary = "Show the cluster's settings, or the parameters of one node",
        .text = "With their defaults and bounds, and whether a change takes effect now or needs a\n"
                "restart. Of a single NAME also what it means.",
        .examples = {"config show", "config show --node t1", "config show --node t1 sort_memory"},
    },
    {
        .noun = "config",
        .verb = "set",
        .words = "NAME [VALUE]",
        .min_words = 1,
        .max_words = 2,
        .flags = FLAGS(F_node),
        .run = config_set,
        .summary = "Change a setting of the cluster, or a parameter of one running node",
        .text = "A cluster-wide setting lasts, and reaches every node; without VALUE it goes back to its\n"
                "default. A node's parameter lasts until the node ends; those that need a restart are\n"
                "refused. Values have units: 64MiB, 500ms, 90%.",
        .examples = {"config set jobs_max 2000", "config set jobs_max",
                     "config set --node t1 sort_memory 1GiB", "config set --node p1 log_level debug"},
    },
    {
        .noun = "storage",
        .verb = "summary",
        .words = "[BUCKET]",
        .max_words = 1,
        .kinds = {WORD_BUCKET},
        .flags = FLAGS(F_watch, F_count),
        .run = storage_summary,
        .summary = "Show how many objects and bytes each target has of each bucket",
        .text = "By the targets' indexes. While objects are moved between mountpaths, one may be counted\n"
                "twice. Fails where a target cannot tell.",
        .examples = {"storage summary", "storage summary train -o json"},
    },
    {
        .noun = "storage",
        .verb = "mountpath",
        .words = "ls|load|attach|detach|enable|disable|resilver [NODE [PATH]]",
        .min_words = 1,
        .max_words = 3,
        .kinds = {WORD_OTHER, WORD_NODE},
        .flags = FLAGS(F_lost, F_yes, F_watch, F_count),
        .run = storage_mountpath,
        .summary = "Show the mountpaths of one target or all; have them come and go",
        .text =
            "ls [NODE]            how each one is; of a disabled one also why, and what it held\n"
            "load [NODE]          what each disk does, over the last minute or so: bytes a second sent\n"
            "                     to clients, read and written; operations under way; milliseconds\n"
            "                     that half and 99 of 100 opens, reads, writes, syncs stay within\n"
            "attach NODE PATH     a new disk, at a directory of the target; objects are moved to "
            "it\n"
            "detach NODE PATH     all objects are moved off, then it is released\n"
            "disable NODE PATH    taken out at once: its objects give 503 until it is enabled\n"
            "enable NODE PATH     taken back; also ends a detach that is under way\n"
            "resilver NODE        move objects to where they belong, after the job was aborted\n"
            "\n"
            "Objects stay readable while a job of the kind 'resilver' moves them. With --lost, a\n"
            "detach gives the mountpath up with every object on it: it asks first on a terminal;\n"
            "elsewhere --yes is required.",
        .examples = {"storage mountpath ls", "storage mountpath load --watch",
                     "storage mountpath attach t1 /disk3/dfc",
                     "storage mountpath detach t1 /disk2/dfc --lost --yes"},
    },
    {
        .noun = "storage",
        .verb = "reindex",
        .words = "NODE [MOUNTPATH]",
        .min_words = 1,
        .max_words = 2,
        .kinds = {WORD_NODE, WORD_OTHER},
        .flags = FLAGS(F_wait, F_timeout),
        .run = storage_reindex,
        .summary = "Rebuild the indexes of a target, by which objects are listed, from the files",
        .text = "The target goes on serving; lists use the old index until the new one is whole, "
                "and\n"
                "are refused where the old one is damaged. Targets do this by themselves when they "
                "find\n"
                "damage. A target that is not running is started with --reindex=true instead.",
        .examples = {"storage reindex t1 --wait", "storage reindex t1 /disk2/dfc"},
    },
    {
        .noun = "storage",
        .verb = "validate",
        .words = "",
        .flags = FLAGS(F_checksums, F_rate, F_timeout),
        .run = storage_validate,
        .summary = "Compare what is on the disks with what lists say, and with checksums; change nothing",
        .text = "A job looks at every file and at every name of the indexes, while the cluster serves, and\n"
                "says by name what differs: an object whose file is gone or not indexed, a file that is\n"
                "damaged, too short or in a wrong place. Exits with 1 where there is anything. An index\n"
                "is mended by 'storage reindex'; what is damaged or gone has to be put again or deleted.",
        .examples = {"storage validate", "storage validate --checksums --rate=200MiB",
                     "storage validate -o json"},
    },
    {
        .noun = "storage",
        .verb = "scrub",
        .words = "",
        .flags = FLAGS(F_rate, F_wait, F_timeout),
        .run = storage_scrub,
        .summary = "Read everything on the disks, check it, and move aside what is damaged",
        .text = "As 'storage validate --checksums', and what is damaged is moved into the mountpath's\n"
                ".dfc/quarantine, whence nobody removes it; the object gives 500 until it is put again.\n"
                "Rows of the indexes are mended. It begins by itself every scrub_interval, reads at\n"
                "scrub_rate at each mountpath (or --rate), lets clients go first, and goes on where it\n"
                "was after a restart. 'job show' has what it has found. With --wait it says that at the\n"
                "end, and exits with 1 where there is anything.",
        .examples = {"storage scrub", "storage scrub --rate=200MiB --wait"},
    },
    {
        .noun = "help",
        .words = "[NOUN [VERB]]",
        .max_words = 2,
        .kinds = {WORD_COMMAND, WORD_COMMAND},
        .flags = FLAGS(F_markdown),
        .local = true,
        .run = show_help,
        .summary = "Show help",
        .examples = {"help", "help object put", "help --markdown"},
    },
    {
        .noun = "completion",
        .words = "bash",
        .min_words = 1,
        .max_words = 1,
        .flags = FLAGS(),
        .local = true,
        .run = show_completion,
        .summary = "Print the completion script of a shell",
        .examples = {"completion bash > /etc/bash_completion.d/dfcctl"},
    },
    {
        .noun = "version",
        .words = "",
        .flags = FLAGS(),
        .local = true,
        .run = show_version,
        .summary = "Print dfcctl's version",
        .examples = {"version"},
    },
    {
        .noun = "__complete", /* in no list of nouns: what the completion script calls */
        .words = "[WORD...]",
        .max_words = ANY,
        .flags = FLAGS(),
        .local = true, /* it asks with a client of its own */
        .run = complete,
        .summary = "Print what the last word may become",
    },
    {0},
};
