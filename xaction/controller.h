/* What the primary does next for one job: pure.
 *
 * In: the job as it stands in the document, and the last report of each participant.  Out: the
 * order to send to each, and the state that the job shall move to (the driver commits that to the
 * metastore before it sends any order that depends on it).
 *
 *   queued      all participants are told to prepare; all ready -> running
 *   running     all are told to run; all prepared -> committing; one failed -> stopping (failed)
 *   committing  all are told to commit until they have; all committed -> finished
 *   stopping    all are told to stop; all that can be reached stopped -> failed or aborted
 *
 * A user's abort is not the controller's business: it is a move to stopping like any other,
 * committed by whoever takes the request.
 *
 * A participant that the map says is unreachable, or that came back without knowing the job (its
 * report is `none` in running), fails the job before the decision, unless the job may begin again;
 * after it the driver waits for the participant to return, since only it can make its part visible.
 * One that was taken out of the map will not return: its part is lost, and the job ends without it.
 *
 * A kind that resumes (kinds.def) is not failed by a participant that is away or has restarted
 * while the job runs: it is waited for, told to prepare and to run again, until all have done their
 * part since their last start.  What one cannot do fails the job when the others that can be
 * reached have come to their end, too.
 *
 * A kind that begins again (kinds.def) goes back to `queued` when a participant is lost while it
 * runs, or streams between two of them were cut: everybody is told to prepare for the next attempt,
 * who is away is waited for, and what stands is not done again.  Whom the job can do without (the
 * driver says so, of one that has been away for long) it sheds there: from then on it is no peer.
 * While it is committed such a one counts as done, and commits its part when it is back.  What a
 * participant fails by for a reason of its own ends the job all the same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cluster/documents/job.h"
#include "common/error.h"
#include "xaction/states.h"

struct controller_peer {
    const char *id;
    bool heard;     /* a report has come since the job's present state began */
    bool silent;    /* the last question had no answer */
    bool reachable; /* by the committed map */
    bool gone;      /* out of the map */
    bool spared;    /* it has been away for long, and the job can do without it */
    enum xaction_state state;
    int error_code; /* with XACTION_FAILED */
    const char *error_message;
};

enum controller_order {
    CONTROLLER_NOTHING,
    CONTROLLER_PREPARE,
    CONTROLLER_RUN,
    CONTROLLER_COMMIT,
    CONTROLLER_STOP
};

struct controller_verdict {
    enum job_state next;    /* = job->state: stays */
    bool sheds;             /* goes on without those that are spared: that is a move, too */
    enum job_state stop_as; /* with next = JOB_STOPPING */
    struct error cause;     /* with a failure */
};

/* Fills orders[0..n) for the job's present state.  When verdict->next differs from it, or it sheds,
 * the driver first commits the move and then calls again. unfit: why what the job makes would be of
 * no use any more (the cluster's targets, or its buckets, are not those of its plan), or NULL.
 * E_ABORTED: it was for nothing, but nothing has gone wrong. patient: where all failures known are
 * echoes (a stream cut by a peer that failed itself) and somebody still runs, wait for the cause;
 * the driver is patient for a while. again: the job may have another attempt. */
void controller_step(const struct job *job, const struct controller_peer *peers, size_t n,
                     const struct error *unfit, bool patient, bool again,
                     struct controller_verdict *verdict, enum controller_order *orders);
