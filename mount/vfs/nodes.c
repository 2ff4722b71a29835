#include "mount/vfs/nodes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"

#define ROOT_ID 1

void nodes_init(struct nodes *n, const char *root_prefix)
{
    memset(n, 0, sizeof *n);
    pthread_mutex_init(&n->lock, NULL);
    n->root = (struct node){
        .key = xstrdup(root_prefix), .is_directory = true, .version = xstrdup(""), .inode = 1};
}

static void node_free(struct node *node)
{
    free(node->key);
    free(node->version);
    free(node);
}

void nodes_done(struct nodes *n)
{
    for (size_t i = 0; i < NODES_SLOTS; i++) {
        for (struct node *node = n->slots[i], *next; node != NULL; node = next) {
            next = node->chain;
            node_free(node);
        }
    }
    free(n->root.key);
    free(n->root.version);
    pthread_mutex_destroy(&n->lock);
}

static struct node **slot_of(struct nodes *n, const char *key)
{
    return &n->slots[XXH3_64bits(key, strlen(key)) % NODES_SLOTS];
}

static bool node_matches(const struct node *node, const struct node_is *is)
{
    return node->is_directory == is->is_directory && strcmp(node->key, is->key) == 0 &&
           strcmp(node->version, is->version) == 0 && node->size == is->size;
}

struct node *nodes_take(struct nodes *n, const struct node_is *is)
{
    pthread_mutex_lock(&n->lock);
    struct node **slot = slot_of(n, is->key);
    struct node *node = *slot;
    while (node != NULL && !node_matches(node, is))
        node = node->chain;
    if (node == NULL) {
        node = xmalloc(sizeof *node);
        *node = (struct node){
            .key = xstrdup(is->key),
            .is_directory = is->is_directory,
            .version = xstrdup(is->version),
            .inode = is->inode,
            .size = is->size,
            .modified_s = is->modified_s,
            .chain = *slot,
        };
        *slot = node;
        n->count++;
    }
    node->uses++;
    pthread_mutex_unlock(&n->lock);
    return node;
}

void nodes_use(struct nodes *n, struct node *node)
{
    pthread_mutex_lock(&n->lock);
    node->uses++;
    pthread_mutex_unlock(&n->lock);
}

void nodes_forget(struct nodes *n, struct node *node, uint64_t uses)
{
    if (node == &n->root)
        return;
    pthread_mutex_lock(&n->lock);
    assert(node->uses >= uses);
    node->uses -= uses;
    if (node->uses == 0) {
        struct node **at = slot_of(n, node->key);
        while (*at != node)
            at = &(*at)->chain;
        *at = node->chain;
        n->count--;
        node_free(node);
    }
    pthread_mutex_unlock(&n->lock);
}

uint64_t nodes_id(const struct nodes *n, const struct node *node)
{
    return node == &n->root ? ROOT_ID : (uint64_t)(uintptr_t)node;
}

struct node *nodes_of(struct nodes *n, uint64_t id)
{
    return id == ROOT_ID ? &n->root : (struct node *)(uintptr_t)id;
}
