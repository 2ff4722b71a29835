#include "cache/piece.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define MAGIC 0x3165636569706664ull /* "dfpiece1" where the least byte is first */

struct tail {
    uint64_t index;
    uint64_t entity_size;
    uint64_t magic;
    uint64_t sum; /* of the whole foot up to here */
};

uint64_t piece_count(uint64_t entity_size)
{
    return entity_size / PIECE_BYTES + (entity_size % PIECE_BYTES != 0);
}

struct piece piece_of(const struct cache_entity *e, uint64_t index)
{
    XXH128_hash_t name = XXH3_128bits(e->name, strlen(e->name));
    uint64_t rest = e->size - index * PIECE_BYTES;
    return (struct piece){
        .entity = e,
        .id = {.entity = {name.high64, name.low64}, .index = index},
        .set = XXH3_64bits(e->set, strlen(e->set)),
        .size = rest < PIECE_BYTES ? (size_t)rest : PIECE_BYTES,
    };
}

struct piece piece_whole(const struct cache_entity *e)
{
    struct piece p = piece_of(e, 0);
    p.id.index = PIECE_WHOLE;
    p.size = (size_t)e->size;
    return p;
}

bool piece_id_equal(const struct piece_id *a, const struct piece_id *b)
{
    return a->entity[0] == b->entity[0] && a->entity[1] == b->entity[1] && a->index == b->index;
}

uint64_t piece_id_hash(const struct piece_id *id)
{
    return XXH3_64bits(id, sizeof *id);
}

void piece_name(const struct piece_id *id, char out[static PIECE_NAME])
{
    snprintf(out, PIECE_NAME, "%016" PRIx64 "%016" PRIx64 "-%" PRIx64, id->entity[0], id->entity[1],
             id->index);
}

bool piece_name_parse(const char *text, struct piece_id *id)
{
    char again[PIECE_NAME];
    if (sscanf(text, "%16" SCNx64 "%16" SCNx64 "-%" SCNx64, &id->entity[0], &id->entity[1],
               &id->index) != 3)
        return false;
    piece_name(id, again);
    return strcmp(again, text) == 0;
}

size_t piece_parts(const struct piece *p)
{
    return (p->size + PIECE_PART - 1) / PIECE_PART;
}

uint64_t piece_sum(const void *part, size_t size)
{
    return XXH3_64bits(part, size);
}

size_t piece_foot_size(const struct piece *p)
{
    return piece_parts(p) * sizeof(uint64_t) + piece_tail_size(p);
}

size_t piece_tail_size(const struct piece *p)
{
    return strlen(p->entity->name) + sizeof(struct tail);
}

bool piece_tail_matches(const struct piece *p, const void *tail)
{
    struct tail t;
    const size_t name_size = strlen(p->entity->name);
    memcpy(&t, (const char *)tail + name_size, sizeof t);
    return t.magic == MAGIC && t.index == p->id.index && t.entity_size == p->entity->size &&
           memcmp(tail, p->entity->name, name_size) == 0;
}

void piece_foot_write(const struct piece *p, const uint64_t *sums, void *foot)
{
    size_t sums_size = piece_parts(p) * sizeof *sums, name_size = strlen(p->entity->name);
    char *at = foot;
    struct tail tail = {
        .index = p->id.index,
        .entity_size = p->entity->size,
        .magic = MAGIC,
    };
    memcpy(at, sums, sums_size);
    memcpy(at + sums_size, p->entity->name, name_size);
    at += sums_size + name_size;
    memcpy(at, &tail, sizeof tail);
    tail.sum = XXH3_64bits(foot, piece_foot_size(p) - sizeof tail.sum);
    memcpy(at, &tail, sizeof tail);
}

bool piece_foot_read(const struct piece *p, const void *foot, uint64_t sums[static PIECE_PARTS])
{
    const size_t sums_size = piece_parts(p) * sizeof *sums, size = piece_foot_size(p);
    const char *at = foot;
    uint64_t sum;
    memcpy(&sum, at + size - sizeof sum, sizeof sum);
    if (!piece_tail_matches(p, at + sums_size) || sum != XXH3_64bits(foot, size - sizeof sum))
        return false;
    memcpy(sums, foot, sums_size);
    return true;
}
