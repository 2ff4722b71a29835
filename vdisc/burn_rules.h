/* What every burn decides alike, by a client or as a job of the cluster.  So both make the same
 * bytes.  Pure. */
#pragma once

#include "vdisc/plan.h"
#include "vdisc/reference.h"

/* The name of an image's header: KEY.<16 hex digits>.isohdr; the caller's. */
#define BURN_HEADER_SUFFIX ".isohdr"
char *burn_rules_header_name(const char *key, const struct checksum_value *sha256);
/* Has the object of this name the header's bytes?  Its name has only a part of their checksum, and
 * anybody may have replaced it.  sha256: its bytes', as a target has computed it.
 * E_OBJECT_EXISTS. */
int burn_rules_check_header(const char *bucket, const char *key, const char *sha256,
                            const uint8_t wanted[static TABLE_ID], struct error *err);
/* Is the name that of a header, of the image `key`; NULL: of any image? */
bool burn_rules_is_header(const char *name, const char *key);

/* A collection of contents looks for images by their names: NAME.vdsc, and not among contents. */
bool burn_rules_is_image(const char *key);
/* A burn makes no other ones: E_NAME. */
int burn_rules_check_name(const char *key, struct error *err);

/* Objects of a bucket whose contents are removed now, or into which images are burned now
 * (client/lease.h); and for how long a collection counts that was killed. */
#define BURN_LEASES ".dfc-vdisc/"
#define BURN_COLLECTIONS BURN_LEASES "gc/"
#define BURN_COLLECTION_MS (24ll * 3600 * 1000)
/* E_OBJECT_RESERVED: this object says that something is at work. */
int burn_rules_busy(const char *bucket, const char *key, const char *what, struct error *err);

/* --- rows ------------------------------------------------------------------------------------- */

/* The rows of a CSV go into a plan. */
struct burn_list {
    struct plan *plan;
    uint64_t rows_max; /* E_IMAGE_TOO_LARGE; 0: any number */
    /* May the image refer to this object?  text: as the list has it; host: NULL, or "HOST:PORT". */
    int (*check)(void *ctx, const char *text, const struct reference *to, const char *host,
                 struct error *err);
    void *ctx;
};
/* A csv_row of a struct burn_list.  E_INVALID, with the line; what check() says. */
int burn_list_row(void *list, uint64_t line, const char *const *fields, size_t count,
                  struct error *err);

/* An object as a list or its head shows it. */
struct burn_found {
    uint64_t size;
    int64_t modified_ms;
    const char *etag;
    const char *checksum_type, *checksum; /* NULL or "": it has none */
};
/* The plan has no more rows than this, or E_IMAGE_TOO_LARGE; 0: any number. */
int burn_rules_count(const struct plan *p, uint64_t rows_max, struct error *err);
/* E_NOTHING_MATCHED: there is none, before or after plan_close(). */
int burn_rules_not_empty(const struct plan *p, bool allowed, struct error *err);
/* The object `name` of a list of all below `prefix`, which its path does not have.  "a/" without
 * bytes is a directory, as programs that know S3 write it. */
void burn_rules_add(struct plan *p, const char *bucket, const char *prefix, const char *name,
                    const struct burn_found *found);

/* --- objects that the image refers to --------------------------------------------------------- */

#define BURN_REPLACED "has been replaced since its tag or checksum was taken"
#define BURN_OTHER_CHECKSUM "has another checksum than the list says"

/* E_IMAGE_CHANGED: "line 7: object 'b/k' WHAT: …". */
int burn_rules_changed(const struct plan_object *o, const char *what, struct error *err);
/* E_OBJECT_NOT_FOUND: the same with `why`, which may name the object. */
int burn_rules_missing(const struct plan_object *o, const char *why, struct error *err);
/* The numbers of objects in the order of their lines, so that the first one of a list that is wrong
 * is named; the caller's. */
uint32_t *burn_rules_order(const struct plan_object *objects, uint32_t count);
int burn_rules_size(const struct plan_object *o, uint64_t size, struct error *err);
/* "TYPE:HEX", the caller's; NULL of no checksum. */
char *burn_rules_pin(const struct checksum_value *sum);
/* What was found: sets etag and pin, which are the caller's, or E_IMAGE_CHANGED. */
int burn_rules_take(struct plan_object *o, const struct burn_found *found, struct error *err);
/* The same of an object that nobody has asked for. */
void burn_rules_trust(struct plan_object *o);
