/* The inside of a struct plogs, for the files of this folder.
 *
 * Order of locks: a node's `use`, then a file's `lock`, then that of the table of nodes, or that of
 * the files, or those of segments.h.  Of two nodes `use` is never held at once.  Who fetches data
 * takes none of them. */
#pragma once

#include <pthread.h>

#include "mount/bucket/tree.h"
#include "mount/plogs/nodes.h"
#include "mount/plogs/plogs.h"
#include "mount/plogs/segments.h"
#include "plog/client/dfc_plog.h"

struct plogs {
    struct plogs_options options;
    struct dfc_client *client;
    struct tree tree;
    struct dfc_plog_pool *pool;
    struct segments *segments;
    struct dfc_plog_reader reader; /* of them */
    int64_t opened_s;
    struct plog_nodes nodes;
    pthread_mutex_t files_lock;
    struct plogs_file *files; /* that are open */
};

struct plogs_file {
    struct plogs *plogs;
    struct plog_node *node;
    bool writes;
    atomic_bool was_told;    /* that bytes are lost */
    pthread_mutex_t lock;    /* of the reader */
    struct dfc_plog *reader; /* NULL: not opened yet */
    uint64_t generation;     /* of the node, that the reader shows */
    struct plogs_file *next, **at;
};

/* -errno of a failed call, which is in the log.  An object that is no plog is EOPNOTSUPP. */
int plogs_told(const char *key, const struct dfc_error *err);
/* May a file or directory have this name?  0, -EPERM, -ENAMETOOLONG, -EILSEQ. */
int plogs_check_name(const struct plogs *p, const struct plog_node *parent, const char *name);

/* ---- attributes.c ---- */

/* What the name is now: a node with one use, and its attributes. */
int plogs_find(struct plogs *p, const struct plog_node *parent, const char *name,
               struct plog_node **node, struct stat *st);
int plogs_attributes(struct plogs *p, struct plog_node *node, struct stat *st);
/* This mount has changed the file's bytes. */
void plogs_has_changed(struct plogs *p, struct plog_node *node);

/* ---- file.c: with `use` held for writing ---- */

/* The node has a writer.  flags: of open(2), of which O_TRUNC counts. */
int plogs_begin_writing(struct plogs *p, struct plog_node *node, int flags);
/* What was written is durable and merged, and there is no writer; or an error, and there is. */
int plogs_end_writing(struct plogs *p, struct plog_node *node);
/* A writer that no handle has is dropped: after an error. */
void plogs_drop_unused(struct plog_node *node);
/* The file is removed or replaced: there is no writer, and what was not synced is in no file.  The
 * close of each handle that has written says so. */
void plogs_end_gone(struct plogs *p, struct plog_node *node);
/* The same, by a call of this mount: no close says anything. */
void plogs_end_removed(struct plogs *p, struct plog_node *node);
/* The readers of the node's files have this name now. */
void plogs_rename_readers(struct plogs *p, const struct plog_node *node);
