#include "mount/data/blocks.h"

#include <assert.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/data/entity.h"

static size_t slot_of(const struct entity *e, uint64_t index)
{
    uint64_t h = ((uint64_t)(uintptr_t)e >> 4) * 0x9e3779b97f4a7c15ull + index;
    return (size_t)((h * 0xd6e8feb86659fd93ull) >> 52) % BLOCKS_SLOTS;
}

void blocks_init(struct blocks *b, uint64_t limit_bytes)
{
    *b = (struct blocks){.limit = limit_bytes};
}

static void list_add(struct blocks *b, struct block *block)
{
    block->newer = NULL;
    block->older = b->newest;
    if (b->newest != NULL)
        b->newest->newer = block;
    else
        b->oldest = block;
    b->newest = block;
}

static void list_remove(struct blocks *b, struct block *block)
{
    *(block->newer != NULL ? &block->newer->older : &b->newest) = block->older;
    *(block->older != NULL ? &block->older->newer : &b->oldest) = block->newer;
}

static void table_remove(struct blocks *b, struct block *block)
{
    struct block **at = &b->slots[slot_of(block->entity, block->index)];
    while (*at != block)
        at = &(*at)->chain;
    *at = block->chain;
    block->listed = false;
}

static void block_free(struct blocks *b, struct block *block)
{
    b->used -= block->size;
    entity_unref(block->entity);
    free(block->data);
    free(block);
}

/* The oldest without users leaves. */
static struct block *evict_one(struct blocks *b)
{
    struct block *block = b->oldest;
    if (block == NULL)
        return NULL;
    list_remove(b, block);
    table_remove(b, block);
    return block;
}

void blocks_done(struct blocks *b)
{
    for (struct block *block; (block = evict_one(b)) != NULL;)
        block_free(b, block);
    assert(b->used == 0);
}

/* Memory for a block, of one that leaves if it has the size: new memory costs a page fault for each
 * 4 KiB, which takes longer than the copy into it.  NULL: there is no room. */
static char *make_room(struct blocks *b, size_t size)
{
    _cleanup_free_ char *data = NULL;
    while (b->used + size > b->limit) {
        struct block *block = evict_one(b);
        if (block == NULL)
            return NULL;
        if (data == NULL && block->size == size)
            data = steal(block->data);
        block_free(b, block);
    }
    return data != NULL ? steal(data) : malloc(size);
}

struct block *blocks_find(const struct blocks *b, const struct entity *e, uint64_t index)
{
    struct block *block = b->slots[slot_of(e, index)];
    while (block != NULL && (block->entity != e || block->index != index))
        block = block->chain;
    return block;
}

struct block *blocks_add(struct blocks *b, struct entity *e, uint64_t index)
{
    uint64_t rest = e->size - index * ENTITY_BLOCK;
    size_t size = rest < ENTITY_BLOCK ? (size_t)rest : ENTITY_BLOCK;
    char *data = make_room(b, size);
    if (data == NULL)
        return NULL;
    struct block *block = xcalloc(1, sizeof *block);
    struct block **slot = &b->slots[slot_of(e, index)];
    *block = (struct block){
        .entity = entity_ref(e),
        .index = index,
        .state = BLOCK_FETCHING,
        .users = 1,
        .listed = true,
        .size = size,
        .data = data,
        .chain = *slot,
    };
    *slot = block;
    b->used += size;
    return block;
}

void blocks_use(struct blocks *b, struct block *block)
{
    if (block->users++ == 0)
        list_remove(b, block);
}

bool blocks_release(struct blocks *b, struct block *block)
{
    assert(block->users > 0);
    if (--block->users > 0)
        return false;
    if (block->listed)
        list_add(b, block);
    else
        block_free(b, block);
    return true;
}

void blocks_fail(struct blocks *b, struct block *block, int error)
{
    block->state = BLOCK_FAILED;
    block->error = error;
    table_remove(b, block);
}
