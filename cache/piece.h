/* What the cache keeps: pieces of 4 MiB of entities.
 *
 * An entity is one version of something, such as an object: its name contains the version, so its
 * bytes never change and a piece is never outdated.  The file of a piece has its bytes, and behind
 * them a foot that proves them:
 *
 *     bytes | a sum of each part of 32 KiB | entity's name | number, entity's size, magic | sum
 *
 * A reader knows all but the sums beforehand, so a file of another length or with another foot is
 * no piece of this entity.  Sums are XXH3-64 in the byte order of the machine.
 *
 * An entity of several pieces may be one piece instead, the whole: its foot is a file of its own.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIECE_BYTES (4u << 20)
#define PIECE_PART (32u << 10) /* has a sum of its own */
#define PIECE_PARTS (PIECE_BYTES / PIECE_PART)
#define PIECE_WHOLE UINT64_MAX /* the number of the whole */

struct cache_entity {
    const char *name; /* no other version of anything ever has it */
    const char *set;  /* the data set: entities that are used together */
    uint64_t size;
};

struct piece_id {
    uint64_t entity[2]; /* XXH3-128 of the name */
    uint64_t index;
};

struct piece {
    const struct cache_entity *entity;
    struct piece_id id;
    uint64_t set;
    size_t size; /* bytes: PIECE_BYTES, or the entity's rest; of the whole, all */
};

uint64_t piece_count(uint64_t entity_size);
struct piece piece_of(const struct cache_entity *e, uint64_t index);
struct piece piece_whole(const struct cache_entity *e);
bool piece_id_equal(const struct piece_id *a, const struct piece_id *b);
uint64_t piece_id_hash(const struct piece_id *id);

/* "<32 hex>-<index, hex>" and back. */
#define PIECE_NAME 64
void piece_name(const struct piece_id *id, char out[static PIECE_NAME]);
bool piece_name_parse(const char *text, struct piece_id *id);

size_t piece_parts(const struct piece *p);
uint64_t piece_sum(const void *part, size_t size);
size_t piece_foot_size(const struct piece *p);
void piece_foot_write(const struct piece *p, const uint64_t *sums, void *foot);
/* True: the foot is of this piece; the sums are copied. */
bool piece_foot_read(const struct piece *p, const void *foot, uint64_t sums[static PIECE_PARTS]);
/* The foot behind its sums: is it of this piece? */
size_t piece_tail_size(const struct piece *p);
bool piece_tail_matches(const struct piece *p, const void *tail);
