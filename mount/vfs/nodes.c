#include "mount/vfs/nodes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "mount/data/entity.h"

#define ROOT_ID 1

static const struct node none = {.version = (char *)"", .key = (char *)""};

/* The node's number leads to it; NULL: to none. */
static void by_id_set(struct nodes *n, uint64_t id, struct node *node)
{
    if (id >= n->by_id_room) {
        uint64_t room = n->by_id_room > 0 ? n->by_id_room : 64;
        while (room <= id)
            room *= 2;
        n->by_id = xrealloc(n->by_id, room * sizeof *n->by_id);
        memset(n->by_id + n->by_id_room, 0, (room - n->by_id_room) * sizeof *n->by_id);
        n->by_id_room = room;
    }
    n->by_id[id] = node;
}

static void node_free(struct node *node)
{
    free(node->key);
    free(node->version);
    entity_unref(node->held);
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
    free(n->by_id);
    pthread_mutex_destroy(&n->lock);
}

static struct node **slot_of(struct nodes *n, const char *key)
{
    return &n->slots[XXH3_64bits(key, strlen(key)) % NODES_SLOTS];
}

static bool node_matches(const struct node *node, const struct node_is *is)
{
    return !node->is_draft && node->is_directory == is->is_directory &&
           strcmp(node->key, is->key) == 0 && strcmp(node->version, is->version) == 0 &&
           node->size == is->size;
}

static struct node *node_add(struct nodes *n, uint64_t id, const struct node_is *is)
{
    struct node **slot = slot_of(n, is->key);
    struct node *node = xmalloc(sizeof *node);
    *node = (struct node){
        .id = id,
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
    by_id_set(n, id, node);
    return node;
}

static struct node *node_new(struct nodes *n, const struct node_is *is, enum ledger_kind kind)
{
    const struct ledger_record r = {
        .kind = kind,
        .is_directory = is->is_directory,
        .uses = 1,
        .inode = is->inode,
        .size = is->size,
        .modified_s = is->modified_s,
        .texts = {is->key, is->version},
    };
    uint64_t id = ledger_add(n->ledger, &r);
    return id != 0 ? node_add(n, id, is) : NULL;
}

static void node_restore(void *context, uint64_t number, const struct ledger_record *r)
{
    if (r->kind != LEDGER_NODE && r->kind != LEDGER_DRAFT)
        return;
    const struct node_is is = {
        .key = r->texts[0],
        .is_directory = r->is_directory,
        .version = r->texts[1],
        .inode = r->inode,
        .size = r->size,
        .modified_s = r->modified_s,
    };
    struct node *node = node_add(context, number, &is);
    node->is_draft = r->kind == LEDGER_DRAFT;
    node->uses = r->uses;
}

void nodes_init(struct nodes *n, const char *root_prefix, struct ledger *ledger)
{
    memset(n, 0, sizeof *n);
    pthread_mutex_init(&n->lock, NULL);
    n->ledger = ledger;
    n->root = none;
    n->root.id = ROOT_ID;
    n->root.key = xstrdup(root_prefix);
    n->root.is_directory = true;
    n->root.inode = 1;
    n->lost = none;
    ledger_each(ledger, node_restore, n);
}

/* The lock is held. */
static void node_use(struct nodes *n, struct node *node)
{
    node->uses++;
    if (node->id >= LEDGER_FIRST)
        ledger_uses(n->ledger, node->id, node->uses);
}

struct node *nodes_take(struct nodes *n, const struct node_is *is)
{
    pthread_mutex_lock(&n->lock);
    struct node *node = *slot_of(n, is->key);
    while (node != NULL && !node_matches(node, is))
        node = node->chain;
    if (node == NULL)
        node = node_new(n, is, LEDGER_NODE);
    if (node != NULL)
        node_use(n, node);
    pthread_mutex_unlock(&n->lock);
    return node;
}

struct node *nodes_draft(struct nodes *n, const struct node_is *is)
{
    pthread_mutex_lock(&n->lock);
    struct node *node = node_new(n, is, LEDGER_DRAFT);
    if (node != NULL) {
        node->is_draft = true;
        node_use(n, node);
    }
    pthread_mutex_unlock(&n->lock);
    return node;
}

void nodes_use(struct nodes *n, struct node *node)
{
    pthread_mutex_lock(&n->lock);
    node_use(n, node);
    pthread_mutex_unlock(&n->lock);
}

void nodes_forget(struct nodes *n, struct node *node, uint64_t uses)
{
    if (node == &n->root || node == &n->lost)
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
        by_id_set(n, node->id, NULL);
        ledger_remove(n->ledger, node->id);
        node_free(node);
    } else {
        ledger_uses(n->ledger, node->id, node->uses);
    }
    pthread_mutex_unlock(&n->lock);
}

uint64_t nodes_id(const struct node *node)
{
    return node->id;
}

struct node *nodes_of(struct nodes *n, uint64_t id)
{
    if (id == ROOT_ID)
        return &n->root;
    pthread_mutex_lock(&n->lock);
    struct node *node = id < n->by_id_room ? n->by_id[id] : NULL;
    pthread_mutex_unlock(&n->lock);
    return node != NULL ? node : &n->lost;
}
