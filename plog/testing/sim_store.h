/* A simulated store for programs that are stopped at each call.
 *
 * A program (struct sim_program) is a function that calls a plog_store and waits for each result.
 * Here it is run anew after each result: sim_store_ask() gives it the results that it has had, and
 * ends it with E_CANCELLED at the first call that has none.  This call is pending.  The simulator
 * lets it take place (sim_land), later gives the program its result (sim_deliver), or never does.
 * So the function must do the same whenever it is run, but for the results.
 *
 * A lie makes the store do what a program without one of its steps would do: the simulator has to
 * find each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"
#include "plog/store.h"

#define SIM_OBJECT "file"

enum sim_lie {
    LIE_NONE,
    LIE_LATE_RECORD,    /* the record is made after the first segment */
    LIE_NO_REFRESH,     /* a sync does not refresh the record */
    LIE_EARLY_REMOVE,   /* a merge removes the records before it stores the head */
    LIE_BLIND_REMOVE,   /* ... in whatever version they are */
    LIE_BLIND_HEAD,     /* a merge replaces whatever head there is */
    LIE_SEGMENTS_FIRST, /* a merge lists the segments before the records */
    LIE_HEAD_FIRST,     /* a reader reads the head before it lists the records */
    LIE_NO_EPOCH,       /* a phase does not look for the epochs of others */
    LIE_ONE_INDEX,      /* merged indexes of one number have one name */
    LIE_EARLY_CLOSED,   /* the record .c is stored before the last segment */
    LIE_NO_HEAD_CHECK,  /* a sync does not look at the head */
    LIE_IMPATIENT,      /* a merge does not wait for sessions that are open */
    LIE_NO_MARK,        /* a sync does not see the mark of a flattening */
    LIE_FLAT_BLIND,     /* a flattening does not see records */
    LIE_FLAT_OVER,      /* a flattening replaces whatever head there is */
    LIE_SHARE_LATE,     /* a token is given before the record is stored */
    LIE_TOKEN_READS,    /* a sync by token reads the shared record, and does not store it */
    LIE_TOKEN_STAYS,    /* ... makes no record of its own if the shared one is gone */
    LIE_TOKEN_LEAVES,   /* a close by token does not look whether the owner has closed */
    LIE_LOST_RACE,      /* a record that has changed is taken for one that has changed just now */
    LIE_REMOVE_CLOSED,  /* a merge removes the record .c, also if the other one is left */
    LIES,
};

enum sim_kind { SIM_LIST, SIM_GET, SIM_PUT, SIM_REMOVE };

struct sim_call {
    enum sim_kind kind;
    char name[PLOG_NAME_MAX], after[PLOG_NAME_MAX], if_match[PLOG_ETAG_MAX]; /* "": none */
    struct buf body;
    int code; /* the result, from here on */
    char etag[PLOG_ETAG_MAX];
    struct plog_names names;
};

enum sim_role { SIM_WRITE, SIM_CLOSE, SIM_SHARE, SIM_READ, SIM_MERGE, SIM_OTHER, SIM_FLATTEN };

struct sim_store;

struct sim_program {
    struct sim_store *sim;
    struct rng rng, rng_begin; /* equal in each run */
    enum sim_role role;
    char id[PLOG_ID_CHARS + 1]; /* of the plog that it has open; "": none */
    bool by_token;              /* it has it open by token */
    uint64_t begun;             /* time when it was begun */
    struct sim_call *calls;     /* those with results, and the pending one */
    size_t count, room, at;
    bool is_waiting, has_landed;
    bool has_put, has_lied; /* for the lies */
};

struct sim_object {
    char name[PLOG_NAME_MAX];
    struct buf body;
    uint64_t version, made;
    bool is_there;
};

struct sim_store {
    struct rng rng;
    enum sim_lie lie;
    uint64_t now, versions;
    struct sim_object *objects;
    size_t count, room;
};

void sim_store_done(struct sim_store *s);
const struct sim_object *sim_store_find(const struct sim_store *s, const char *name);
/* Is there a name with this prefix? */
bool sim_store_any(const struct sim_store *s, const char *prefix);

/* The calls of the program go to this store. */
struct plog_store sim_store_of(struct sim_program *p);
void sim_begin(struct sim_program *p, enum sim_role role); /* of another function: no results yet */
void sim_rerun(struct sim_program *p);                     /* before each run */
void sim_land(struct sim_program *p);                      /* the pending call takes place */
void sim_deliver(struct sim_program *p); /* its result is there for the next run */
void sim_program_done(struct sim_program *p);
