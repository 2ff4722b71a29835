/* The command line of dfc-mount; dfcctl passes its flags on under the same names.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define OPTIONS_PATHS_MOST 1024
#define OPTIONS_AS_IT_IS UINT64_MAX

struct options {
    const char *verb;      /* one of options.c */
    const char *url;       /* of mount: dfc://BUCKET[/PREFIX]; else of metadata */
    const char *directory; /* where; of info: the path; of gc: the metadata */
    const char *name;      /* of the volume, of format */
    const char *bucket;    /* dfc://BUCKET, of format */
    const char *paths[OPTIONS_PATHS_MOST + 1]; /* of warmup, with a NULL behind */
    size_t path_count;
    const char *list; /* of warmup: a file of paths */
    const char *mode; /* of mount-image: "fuse", "tcmu"; NULL: the first */
    const char *endpoint, *profile, *ca_file, *log_file;
    uint64_t retries;
    uint64_t idle_timeout_ms; /* 0: libdfc's */
    uint64_t buffer_bytes;
    uint64_t readahead_bytes;
    uint64_t parallel, uploads;
    const char *cache_directories; /* NULL: no disk cache */
    uint64_t cache_bytes, cache_free_percent, cache_idle_ms;
    const char *cache_group; /* NULL: none */
    const char *group_key_file;
    uint64_t group_refresh_ms, group_connect_ms, group_wait_ms;
    uint64_t write_bytes;
    uint64_t part_bytes;
    uint64_t write_wait_ms;
    uint64_t segment_bytes, refresh_ms; /* of plogs */
    uint64_t attr_ttl_ms, entry_ttl_ms;
    uint64_t uid, gid;
    uint64_t file_mode, directory_mode;
    uint64_t timeout_ms;
    uint64_t grace_ms;
    uint64_t dump_every_ms, dump_keep; /* of the mount of a volume; 0 ms: never */
    /* Of a volume; OPTIONS_AS_IT_IS: not given. */
    uint64_t trash_days, capacity_bytes, inodes; /* 0 bytes or inodes: no limit */
    uint64_t restarts;                           /* of a minute */
    bool insecure;
    bool allow_other;
    bool writable, read_only;
    bool no_sharing; /* no mount shares */
    bool no_passthrough;
    bool foreground;
    bool check;
    bool skip_trash;
    bool read_all, repair; /* --read; of fsck */
    bool delete_found;     /* --delete */
    bool help;
    uint64_t given; /* flags: a bit for each row of options.c */
};

/* Texts are argv's.  uid and gid are those of a file whose owner nobody named. */
int options_parse(struct options *o, int argc, char *const *argv, uint64_t uid, uint64_t gid,
                  struct error *err);

/* Was the flag, without its dashes, given? */
bool options_given(const struct options *o, const char *name);

/* A mount whose URL is one of metadata. */
bool options_of_volume(const struct options *o);

/* A mount of an image as a disk. */
bool options_by_tcmu(const struct options *o);
