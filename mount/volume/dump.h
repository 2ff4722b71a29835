/* A volume's metadata as JSON lines, from any engine to any engine.
 *
 *     {"dump": 1}
 *     {"kind": "ATTR", "id": 2, "value": "a481…"}                 hex
 *     {"kind": "ENTRY", "id": 1, "name": "6162", "value": "…"}    hex
 *     {"kind": "CHUNK", "id": 2, "sub": 0, "value": "…"}
 *     {"end": 3}                                                  keys that came before
 *
 * Sessions and what belongs to them are left out.  A dump is of one moment; clients may have
 * sessions, and change the volume.  FORMAT is the first key.  A key may come twice, with the same
 * value. */
#pragma once

#include <stdio.h>

#include "mount/volume/format.h"

struct dump_tally {
    uint64_t keys;
};

/* E_NOT_READY: the engine cannot give a snapshot now.  The caller flushes the stream, and looks
 * whether that fails. */
int dump_save(struct meta *m, FILE *to, struct dump_tally *tally, struct error *err);
/* The format that a dump has, from its beginning on.  E_CORRUPT: it is no dump. */
int dump_format(FILE *from, struct volume_format *out, struct error *err);
/* Into an engine without a volume.  The format comes last, so that there is a volume only when all
 * of it is there.  next_slice: no slice of the bucket has this number or a greater one.
 * E_EXISTS: the engine has a volume, or a part of one; E_CORRUPT: it is no whole dump. */
int dump_load(struct meta *m, FILE *from, uint64_t next_slice, struct dump_tally *tally,
              struct error *err);
