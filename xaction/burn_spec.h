/* What the job `burn` is asked for: a dataset image of objects.  Pure.
 *
 *     {"prefix": "raw/"}   or  {"csv": "list.csv"}: an object of the bucket that lists the files
 *     "image": name of the table, "to": its bucket (default: the same)
 *     "from": an older image of the bucket `to`, to begin with; then prefix and csv may be missing
 *     "remove": ["/test", …]: paths of that image that are left out
 *     "store": "refer" to the objects, or copy each content once: "unique", or "pack", where small
 *         ones share objects; "base": an older image of the bucket `to`, whose contents are used
 *     "digest": the targets compute the SHA-256 of what no row knows
 *     "check": false: the objects are not asked for
 *     "names": "any", "portable", "extended"; "joliet"; "date": Unix seconds
 *     "identifiers": {"volume": "SET", …}: texts of the volume descriptor
 *     "allow_empty": an image of nothing is no failure; "description" */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct burn_spec {
    char *prefix, *csv; /* one of them is NULL; both with `from` alone */
    char *image;
    char *from, *base;  /* or NULL */
    json_t *remove;     /* an array of texts, or NULL */
    bool stores, packs; /* contents; in packs */
    char *to;           /* or NULL */
    bool digest, unchecked, joliet, allow_empty;
    bool dated;
    int64_t date_s;
    char *names; /* one of the three */
    char *description;
    json_t *identifiers; /* an object of texts, or NULL: whoever burns knows their names */
};

/* E_SPEC, E_JSON, E_NAME; the messages name the field. */
int burn_spec_parse(json_t *value, struct burn_spec **out, struct error *err);
void burn_spec_free(struct burn_spec *s);
DEFINE_CLEANUP(struct burn_spec, burn_spec_free);
