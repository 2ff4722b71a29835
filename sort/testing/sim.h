/* A whole sort in one process: N targets over one directory of input shards and one of outputs,
 * with bounded pipes and threads where a cluster has a network.  For the tests and the harness.
 *
 * A shard belongs to the target that HRW gives its name to (ids t1, t2, …, equal weights).  Output
 * files are written under other names and renamed when every target has succeeded; a failure
 * anywhere stops all targets and leaves nothing, as the job's controller does it in a cluster; or
 * all begin again, where the job has further attempts, or all but one, whose shards those have whom
 * HRW names next. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/spec/spec.h"

enum { SIM_MODIFIED_S = 1700000000 }; /* when inputs that are no archives were written */

/* Calls of the environment at which a test can make something happen. */
enum sim_point {
    SIM_NOWHERE,
    SIM_PIN,
    SIM_OPEN_SHARD,
    SIM_SEND_MERGE,
    SIM_SEND_ORDERS,
    SIM_FETCH,
    SIM_OUTPUT_BEGIN,
    SIM_OUTPUT_WRITE,
    SIM_OUTPUT_FINISH,
};

struct sim_trip {
    enum sim_point point;
    uint64_t nth; /* pass, counting from 1 over all targets */
    bool stop;    /* stops every target there (E_ABORTED); else the call fails (E_IO) */
};

struct sim_config {
    unsigned targets;
    const struct sort_spec *spec;
    const char *in_dir;
    const char *out_dir;
    uint64_t memory_bytes; /* of each target */
    unsigned threads;      /* of extracting and of creating, each */
    uint64_t salt;
    size_t pipe_bytes;
    unsigned attempts; /* 0 is as 1 */
    unsigned restarts; /* this target (from 1) loses its memory between attempts; 0: nobody */
    unsigned leaves;   /* the job goes on without this one after the first attempt; 0: nobody */
    bool ask_status;   /* at every call of the env, as a host may be asked at any time */
    /* Of inputs that are no archives: the checksum of this one is another's; NULL: of none. */
    const char *damaged;
    struct sim_trip trip;
    /* A stream is cut (E_NET at both ends) after so many bytes; 0: none. */
    enum sim_point cut;  /* SIM_SEND_MERGE, SIM_SEND_ORDERS or SIM_FETCH */
    uint64_t cut_stream; /* which one, counting from 1 */
    uint64_t cut_bytes;
};

struct sim;

struct sim *sim_new(const struct sim_config *config);
void sim_free(struct sim *s);
DEFINE_CLEANUP(struct sim, sim_free);
int sim_run(struct sim *s, struct error *err);
json_t *sim_status(const struct sim *s);                             /* {"t1": status, …} */
uint64_t sim_streams(const struct sim *s, enum sim_point kind);      /* how many there were */
uint64_t sim_stream_bytes(const struct sim *s, enum sim_point kind); /* of the longest */
