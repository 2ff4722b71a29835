/* GET and HEAD of a member of an archive, the list of members, and several members:
 *
 *   GET /v1/objects/B/O?member=PATH       bytes of its file or slices: nothing is copied out
 *   GET /v1/objects/B/O?members=list&after=NAME&limit=N
 *   GET /v1/objects/B/O?members=tar&match=TEXT&mode=MODE      member_tar.h
 *
 * The call takes the place of what follows the opening of an object (http/object_read.c): its
 * conditions are those of the archive, and so is its entity tag, for what it replies with changes
 * only with the archive. */
#pragma once

struct object;
struct object_call;
struct reader;

/* Replies, now or later, for a call that object_call_wants_members(): `o` is open, and is closed
 * or given away.  The reader is given away, or left. */
void member_read_reply(struct object_call *call, const struct object *o, struct reader **reader);
