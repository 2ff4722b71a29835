/* An output of a sort in slices, in a bucket with `ec`: what is hidden, sent to the other owners
 * and shown by the decision (sort/outputs.h) is its manifest (ec_manifest.h), as a whole output is
 * elsewhere.
 *
 *     tmp/5, all bytes ─▶ slices on k + m targets' disks (slices/store.h) ─▶ the manifest, hidden
 *
 * The bytes are in a file here first: the length of an output that is compressed is not known
 * before, and where a target fails the slices are made once more without building it anew.  So an
 * output takes its room here until it is in slices.
 *
 * Until the commit, slices are named by hidden manifests: slices/sweep.h asks for these, too.  It
 * removes the slices of an abort, and of outputs that were made anew, when they are older than
 * `slices_grace`: a manifest that would come later than half of that after its slices is refused
 * (E_NET: the job begins again).
 *
 * A slice that a disk has lost before the commit would be made anew by nobody: repairs know what is
 * visible.  So in each further attempt the slices of what stands are counted, and an output of
 * which more are missing than targets were left out is built once more.
 *
 * Outputs up to the bucket's min_size stay whole, and so do those for which too few targets are
 * left for slices, if the job goes on without those that are away. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/sort/part.h"
#include "target/store/object.h"

/* Until when the manifest may be written; lives as long as its put. */
struct sort_slices {
    uint64_t until_ms;
};

/* *put has all its bytes, by this spec.  Where it is to be in slices, a put of its manifest takes
 * its place; else it stays. Waits for targets that may answer a moment later.  E_NET: one does not;
 * E_ABORTED: the job was stopped.  After an error *put is what it was. */
int sort_slices_make(const struct sort_part *p, const struct object_put_spec *spec,
                     struct object_put **put, struct sort_slices *s, struct error *err);
/* Does what is hidden here of this name stand for what would be made of it now?  Waits. */
bool sort_slices_stand(const struct sort_part *p, const char *name);
