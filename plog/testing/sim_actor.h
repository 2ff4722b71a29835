/* The programs of plog_sim_test.c, and the world that they run in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"
#include "plog/merge.h"
#include "plog/session.h"
#include "plog/testing/sim_store.h"

enum {
    CELLS = 6, /* bytes of the file */
    WRITES = 250,
    ACTORS = 6,
    SEGMENTS = 2, /* of one sync */
};

struct key {
    uint32_t epoch;
    uint64_t writer;
    uint32_t n, position;
};

struct sim_write { /* its number is the byte that it writes */
    char id[PLOG_ID_CHARS + 1];
    uint64_t offset, length, acknowledged; /* time; 0: not yet */
    struct key key;
};

struct planned { /* segments of a sync: numbers of writes */
    size_t count;
    uint8_t first[SEGMENTS + 1];
};

struct actor {
    struct sim_program program;
    enum sim_role kind; /* SIM_OTHER: replaces or removes the head */
    int turns;
    bool is_open, is_running, is_dead, wants_end;
    bool opens_token; /* the next open is by the sim's token */
    struct plog_session session, before;
    struct plog_token token; /* that it gives */
    struct planned plan;
    uint64_t lease_ms;
    struct plog_look look; /* what a read has found */
    uint8_t floor[CELLS];  /* what had been read when the read began */
    char floor_id[PLOG_ID_CHARS + 1];
};

struct sim {
    struct sim_store store;
    struct rng rng;
    bool is_honest;  /* no live session is taken for dead */
    bool has_tokens; /* writers share records */
    size_t actors_count, writes_count;
    struct actor actors[ACTORS];
    struct sim_write writes[WRITES + 1];
    struct plog_token token; /* the last that was given; the id "": none */
    bool has_failed;         /* a writer ended with an error */
    uint8_t shown[CELLS];    /* by the reads up to now */
    char shown_id[PLOG_ID_CHARS + 1];
    char head_id[PLOG_ID_CHARS + 1]; /* of the stored head, since when */
    uint64_t head_since;
    char flat_id[PLOG_ID_CHARS + 1]; /* of the plog that was flattened; "": none */
    uint8_t flat[CELLS];
    const char *wrong;
};

/* The number of the write that the map of the actor's look shows at this byte; 0: none. */
uint8_t sim_shown_at(struct sim *s, struct actor *a, uint64_t cell);
/* What the actor's program does, with the results that it has had; its code if it has ended. */
int sim_run(struct actor *a, struct sim *s);
