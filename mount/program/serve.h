/* Serving a mount, in a process that the supervisor has started. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mount/group/reader.h"

#define SERVE_THREADS 64 /* calls of programs at once: most of them wait */
/* Of a mount of plogs: each rank that writes a file may wait for the store in one. */
#define SERVE_PLOG_THREADS 512

struct dfc_client;
struct disk;
struct options;
struct session;
struct volume_memory;

struct mounted {
    const struct options *options;
    const char *bucket, *prefix; /* NULL: a volume; of an image, prefix is its name */
    bool image, plogs;
    const char *directory;         /* absolute */
    const char *ca_file;           /* absolute, or as given */
    const char *cache_directories; /* the same; NULL: none */
    const char *group_key_file;    /* the same; "": none */
    struct session *session;
    struct disk *disk;           /* of --mode tcmu, in place of a session; NULL */
    int ledger;                  /* ledger_memory() */
    struct volume_memory *calls; /* of a volume, also of processes before */
    int64_t opened_s;            /* directories' time */
    pid_t supervisor;
    struct dfc_client *client; /* of the process that serves */
    int log;                   /* the file of logs, or -1 */
    int ready;                 /* a pipe to the caller, for the exit code; -1: there is none */
};

/* Until it is unmounted: an exit code, see program.h. */
int serve(struct mounted *m);
/* For struct supervised: the first process has the caller's descriptors until it is ready, and the
 * supervisor has none. */
void serve_started(void *mounted);
/* For session_serve(): the caller is told.  context: the struct mounted. */
void serve_ready(void *context);
/* Its group, or NULL, key file and times. */
struct group_reader_options serve_group(const struct mounted *m);
/* volume.c: the same of a volume; an exit code. */
int serve_volume(struct mounted *m, struct dfc_client *client);
int serve_image(struct mounted *m, struct dfc_client *client); /* image.c */
int serve_disk(struct mounted *m, struct dfc_client *client);  /* disk.c, as the next */
bool disk_has_served(const struct disk *d);                    /* maybe by a process before */
int serve_plogs(struct mounted *m, struct dfc_client *client); /* plogs.c */
