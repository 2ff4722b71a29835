/* What the files of a burn share: burn.c, burn_tree.c, burn_older.c. */
#pragma once

#include <stdatomic.h>

#include "vdisc/client/burn.h"
#include "vdisc/client/image.h"
#include "vdisc/client/lease.h"
#include "vdisc/client/local.h"
#include "vdisc/placing.h"

/* An object that the burn stores, if it is not there. */
struct sending {
    const char *key; /* in the image's bucket */
    uint64_t size;
    const struct local_file *const *files;
    size_t count;
    bool padded;
};

struct sendings {
    struct local_files tree;
    struct placing *contents;        /* the keys are its own */
    const struct local_file **order; /* of all sendings, side by side */
    struct sending *list;            /* by key */
    size_t count;
};

struct burn {
    struct dfc_client *client;
    const struct burn_options *options;
    struct csv *csv; /* of: */
    struct burn_list list;
    struct plan *plan;
    struct plan_object *learnt; /* of the plan; their entity tags are ours */
    uint32_t learnt_count;
    uint32_t *order;          /* in which objects are looked at */
    struct hosts *hosts;      /* loaded when a row has an http address */
    struct dfc_error failure; /* of the store, while a row is looked at */
    struct vdisc *from_image, *base_image;
    struct older *from, *base;
    struct sendings sendings;
    atomic_uint_fast64_t sent_objects, sent_bytes;
    uint8_t header_sha256[TABLE_ID];
    struct plan_object header; /* its tag and pin */
    char *header_key;
    struct lease lease; /* taken where objects are used that a collection may remove */
};

/* What is sent for the object, or NULL. */
const struct sending *burn_sending(const struct burn *b, const struct plan_object *o);
/* Stores it, unless it has come meanwhile.  *info must be freed. */
int burn_send(struct burn *b, const struct sending *s, struct dfc_object_info **info,
              struct dfc_error *err);
/* The SHA-256 of all objects, by the targets. */
int burn_digest(struct burn *b, struct dfc_error *err);

/* What is wrong with an object of the list: DFC_CONFLICT, DFC_NOT_FOUND. */
int burn_changed(const struct plan_object *o, const char *what, struct dfc_error *err);
int burn_missing(const struct plan_object *o, struct dfc_error *err);
int burn_check_size(const struct plan_object *o, const struct dfc_object_info *info,
                    struct dfc_error *err);
void burn_sendings_done(struct sendings *s);
