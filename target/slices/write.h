/* A PUT of an object that is kept in slices: the acting owner of its name cuts the bytes as they
 * come.
 *
 *                            ┌─ pipe ─▶ PUT slice 0 ─▶ a target
 *   ec_upload_take() ─ encoder ─ pipe ─▶ PUT slice 1 ─▶ another
 *                            └─ pipe ─▶ PUT slice 2 ─▶ a third
 *
 *   begin ─▶ take … ─▶ commit:  all slices are stored ─▶ the manifest is written as any object of
 * the bucket is, by the protocol of copies (copies_put())
 *
 * So the object is there when its manifest is, and a failure before leaves slices that nobody knows
 * (slices/sweep.h): one that has not got its turn in half the time that these are left alone is
 * refused. Each target of the plan has stored its slice before the manifest is written; whoever
 * could not makes the PUT fail, with nothing changed.
 *
 * A pipe is small, and so is what did not go into it of a stripe: the slowest target slows the
 * client down.  Memory of an upload: two stripes, and a pipe for each slice.
 *
 * begin, take, commit and abort: one thread at a time, as fan.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "target/store/object.h"

struct ec_upload;
struct object_call;

/* Its length is known, and above the bucket's min_size; another is kept as whole copies. */
bool ec_upload_wanted(const struct object_call *call);
/* Of the spec: checksum, expect, content type, metadata.  E_NO_TARGETS. */
int ec_upload_begin(struct object_call *call, const struct object_put_spec *spec,
                    struct ec_upload **out, struct error *err);
/* How many of these bytes were taken; the request is resumed when it is worth trying again. */
size_t ec_upload_take(struct ec_upload *u, const char *data, size_t len, struct error *err);
/* All bytes have come.  Takes the upload over; done(call) with the manifest's attributes.  Where it
 * fails for certain (another owner acts by now, or a target did not take its slice) the bytes are
 * read from the slices that were stored, and sent on (copies/hand_on.h): then that replies. */
void ec_upload_commit(struct ec_upload *u, struct object_call *call, object_done_fn *done);
void ec_upload_abort(struct ec_upload *u); /* NULL is fine */
