/* The table of nodes: what the kernel knows by number.  A node lives while the kernel counts
 * lookups of it, or while a handle has it open. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PLOG_NODES_SLOTS 4096

struct dfc_plog;

struct plog_node {
    uint64_t uses; /* the kernel's, and those of handles and calls */
    struct plog_node *chain;
    bool is_directory;
    uint64_t inode;
    atomic_bool is_gone; /* no name leads to it any more */
    /* Of a file.  What follows changes with `use` held for writing; key, is_flat and version with
     * the table's lock, too. */
    pthread_rwlock_t use;    /* no thread takes it twice */
    char *key;               /* object's name, or a directory's prefix */
    bool is_flat;            /* an object that is no plog */
    char version[256];       /* id of the plog; entity tag of an object that is none */
    struct dfc_plog *writer; /* of all handles that write; NULL: nothing is unsynced */
    unsigned writers;        /* handles that write */
    bool has_lost;           /* the file went, and with it bytes that were not synced */
    atomic_bool is_unsynced; /* bytes were written since the last sync */
    /* By the table's lock. */
    char seen[512];      /* what other mounts change of the file, as it was seen last */
    uint64_t generation; /* how often it changed: readers look anew */
    uint64_t shown;      /* the generation that the writer's reads show */
    uint64_t size;       /* as it was told last */
    int64_t changed_ns;  /* when this mount wrote, or saw a change; 0: not yet */
    int64_t mtime_ms;    /* that a program has set, to be stored after the merge; -1: none */
};

struct plog_nodes {
    pthread_mutex_t lock;
    struct plog_node root;
    struct plog_node *slots[PLOG_NODES_SLOTS];
    struct plog_node *gone;
};

void plog_nodes_init(struct plog_nodes *n, const char *root_prefix);
void plog_nodes_done(struct plog_nodes *n);

struct plog_node_is {
    const char *key;
    bool is_directory, is_flat;
    const char *version;
    uint64_t inode;
};
/* The node that is this, with one use more; a node of this key that is something else is gone. */
struct plog_node *plog_nodes_take(struct plog_nodes *n, const struct plog_node_is *is);
/* The node of the key, with one use more; NULL: there is none. */
struct plog_node *plog_nodes_find(struct plog_nodes *n, const char *key);
void plog_nodes_use(struct plog_nodes *n, struct plog_node *node);
void plog_nodes_forget(struct plog_nodes *n, struct plog_node *node, uint64_t uses);
/* No name leads to the node any more. */
void plog_nodes_remove(struct plog_nodes *n, struct plog_node *node);
/* The file is a plog of this id now. */
void plog_nodes_replace(struct plog_nodes *n, struct plog_node *node, const char *id);
/* A node of the new key is gone. */
void plog_nodes_rename(struct plog_nodes *n, struct plog_node *node, const char *key);

uint64_t plog_nodes_id(const struct plog_nodes *n, const struct plog_node *node);
struct plog_node *plog_nodes_of(struct plog_nodes *n, uint64_t id);
