/* What a name of a bucket with `ec` holds where its object is in slices: a manifest.  The file is
 * empty, the attribute has this text (attr.h), and everything else about it is as of any other
 * object: it is written, copied, compared, moved and deleted by the protocol of copies.  The slices
 * are objects of their own (slices/slices.h), named by the manifest's tag: written once, before it,
 * and never over anything, so that an object is always whole in slices of one write.
 *
 *   1:k:m:unit:length:tag:checksum type:checksum
 *   1:4:2:65536:1048576:00f3…:xxh3:91c5…
 *
 * Length and checksum are the object's: what HEAD and lists show. */
#pragma once

#include "common/checksum.h"
#include "ec/layout.h"

struct attr;

struct ec_manifest {
    struct ec_layout layout;
    uint64_t tag; /* of the write: unlike any other */
    struct checksum_value checksum;
};

/* Where the text of one stands between two targets. */
#define EC_MANIFEST_HEADER "Dfc-Slices"

/* The same as ATTR_SLICES_MAX, and what ends it. */
enum { EC_MANIFEST_TEXT_MAX = 256 };
const char *ec_manifest_text(const struct ec_manifest *m, char out[static EC_MANIFEST_TEXT_MAX]);
/* E_CORRUPT; E_UNSUPPORTED where a newer release wrote it. */
int ec_manifest_parse(const char *text, struct ec_manifest *m, struct error *err);

/* --- slices, as objects of a store ------------------------------------------------------------ */

/* They are in a bucket of their own beside each bucket: what is known of that one (it is being
 * destroyed, say) is of its slices. */
#define EC_SLICES_BIT (UINT64_C(1) << 62)
static inline uint64_t ec_slices_bucket(uint64_t bucket_id)
{
    return bucket_id | EC_SLICES_BIT;
}
static inline bool ec_is_slices_bucket(uint64_t bucket_id)
{
    return (bucket_id & EC_SLICES_BIT) != 0;
}
static inline uint64_t ec_bucket_of_slices(uint64_t bucket_id)
{
    return bucket_id & ~EC_SLICES_BIT;
}

/* "00f3….7" */
enum { EC_SLICE_NAME_MAX = 24 };
const char *ec_slice_name(uint64_t tag, unsigned index, char out[static EC_SLICE_NAME_MAX]);
int ec_slice_name_parse(const char *text, uint64_t *tag, unsigned *index, struct error *err);
/* 16 hexadecimal digits. */
int ec_tag_parse(const char *text, size_t len, uint64_t *tag, struct error *err);

/* Of what it stands for; 0: it is none in slices, or damaged. */
uint64_t ec_manifest_tag(const struct attr *a);
/* What users see of this object: length and checksum of what it stands for.  0 also where it is
 * none in slices. */
int ec_manifest_show(struct attr *a, struct error *err);
