/* What map.c and paint.c share of a map. */
#pragma once

#include "plog/map.h"

struct segment {
    struct plog_footer footer;
    uint8_t *index;
};

struct place { /* what a key is made of */
    size_t segment;
    uint64_t position; /* of the record in the segment */
};

struct piece {
    struct plog_record record;
    struct place place;
};

struct plog_map {
    size_t segments_count, segments_room;
    struct segment *segments;
    size_t *sorted; /* numbers of the segments, by their names */
    size_t pieces_count, pieces_room, cuts_count, cuts_room;
    struct piece *pieces, *cuts;
    bool is_ready;   /* what follows is true, and pieces are sorted by their start */
    uint64_t *reach; /* of each piece: the greatest end up to it */
    uint64_t size;
    uint64_t memory, memory_max; /* memory_max 0: any number */
    const char *hint;
};

/* The next item of an array that grows. */
void *plog_map_grown(void *items, size_t count, size_t *room, size_t size);
void plog_map_ready(struct plog_map *m); /* sorts it, where it has changed */
int plog_map_compare(const struct plog_map *m, const struct place *a, const struct place *b);
/* The first piece that reaches beyond `from`: those before it do not touch what follows. */
size_t plog_map_first(const struct plog_map *m, uint64_t from);
