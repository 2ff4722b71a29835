/* Is this target ready, and if not, why?  Pure.
 *
 *   plain     it serves, and the cluster wants it
 *   synced    ... and has what it missed: one may stop the next target (GET /v1/health?synced=true)
 *
 * Who asks for `synced` must not wait for ever for what only an operator can end.  So it is ready,
 * with a note, where the repair has no room on a disk, is switched off, or was aborted by hand.
 * Only the repair of the present map counts: after an earlier one another follows by itself.
 * A target that lacks a disk is not ready: its objects have a copy less until somebody decides. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/state.h"

struct readiness_question {
    const struct cluster_state *state;
    const char *self, *boot;
    bool serves; /* it has begun, and has a state */
    bool stops;
    const char *refused; /* why the primary does not let it in, or NULL */
    bool synced;         /* is also asked */
    bool is_full;        /* a disk takes no more */
};

struct readiness {
    bool ready;
    struct error why; /* why it is not: E_NOT_READY; or the note of one that is */
};

void readiness(const struct readiness_question *q, struct readiness *out);
/* Is it a refusal for good, and not a primary that cannot answer, or has seen less than the target?
 */
bool readiness_is_refusal(int code);
