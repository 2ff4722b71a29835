/* Nodes: what the kernel knows by number.
 *
 * A file's node is one version of one object: the attributes never change, and a new version is
 * another node.  A directory's node is its prefix.  A node lives while the kernel counts lookups of
 * it, or while a handle has it open. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NODES_SLOTS 65536

struct node {
    char *key; /* object's name, or a directory's prefix */
    bool is_directory;
    char *version; /* of a file */
    uint64_t inode;
    uint64_t size;
    int64_t modified_s;
    uint64_t uses;
    struct node *chain;
};

struct nodes {
    pthread_mutex_t lock;
    struct node root; /* id 1; always there */
    uint64_t count;
    struct node *slots[NODES_SLOTS];
};

void nodes_init(struct nodes *n, const char *root_prefix);
void nodes_done(struct nodes *n); /* whatever is left */

struct node_is {
    const char *key;
    bool is_directory;
    const char *version;
    uint64_t inode;
    uint64_t size;
    int64_t modified_s;
};

/* The node of this version, made where there is none, with one use more. */
struct node *nodes_take(struct nodes *n, const struct node_is *is);
void nodes_use(struct nodes *n, struct node *node);
void nodes_forget(struct nodes *n, struct node *node, uint64_t uses);

/* The kernel's number. */
uint64_t nodes_id(const struct nodes *n, const struct node *node);
struct node *nodes_of(struct nodes *n, uint64_t id);
