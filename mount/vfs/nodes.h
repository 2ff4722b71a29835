/* Nodes: what the kernel knows by number.
 *
 * A file's node is one version of one object: the attributes never change, and a new version is
 * another node.  A directory's node is its prefix.  A draft is a file that is being written: its
 * size grows, and the version that it becomes is another node.  A node lives while the kernel
 * counts lookups of it, or while a handle has it open.
 *
 * The ledger has all of them, so that the process after a crash knows what the kernel's numbers
 * are. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "mount/vfs/ledger.h"

#define NODES_SLOTS 65536

struct node {
    uint64_t id; /* the kernel's number: that of the ledger */
    char *key;   /* object's name, or a directory's prefix */
    bool is_directory;
    bool is_draft;
    char *version; /* of a file */
    uint64_t inode;
    _Atomic uint64_t size; /* changes of a draft alone, as the time does */
    _Atomic int64_t modified_s;
    uint64_t uses;
    unsigned served, passed; /* opens for reading; of passing.h, as the next is */
    int backing;             /* 0: none */
    struct entity *held;     /* whose bytes the backing has */
    struct node *chain;
};

struct nodes {
    pthread_mutex_t lock;
    struct ledger *ledger;
    struct node root; /* id 1; always there */
    struct node lost; /* whom no number leads to: a file that is not there */
    uint64_t count;
    struct node **by_id;
    uint64_t by_id_room;
    struct node *slots[NODES_SLOTS];
};

/* With the nodes that the ledger has, which is borrowed. */
void nodes_init(struct nodes *n, const char *root_prefix, struct ledger *ledger);
void nodes_done(struct nodes *n); /* whatever is left */

struct node_is {
    const char *key;
    bool is_directory;
    const char *version;
    uint64_t inode;
    uint64_t size;
    int64_t modified_s;
};

/* The node of this version, made where there is none, with one use more.  NULL: the ledger has no
 * room. */
struct node *nodes_take(struct nodes *n, const struct node_is *is);
/* A new draft, which nodes_take() never finds.  NULL as above. */
struct node *nodes_draft(struct nodes *n, const struct node_is *is);
void nodes_use(struct nodes *n, struct node *node);
void nodes_forget(struct nodes *n, struct node *node, uint64_t uses);

uint64_t nodes_id(const struct node *node);
/* `lost` where no node has the number. */
struct node *nodes_of(struct nodes *n, uint64_t id);
