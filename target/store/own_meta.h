/* Pairs of an object's metadata that the target keeps beside the user's: what clients send by
 * another header than Dfc-Meta-*, and get by another one.  They stay with the bytes wherever these
 * are copied, also through targets of an earlier build, to which they are pairs like others.
 *
 *   pair                      a client sends              and gets
 *   backend-encoding          Content-Encoding            the same
 *   entity-md5                Content-MD5, to compare     Dfc-Md5
 *   entity-sum                Dfc-Sum                     the same
 *   entity-tags               Dfc-Tags                    the same
 *   entity-parts              nothing: it completes an    Dfc-Parts
 *                             upload in parts
 *   entity-part-sums          nothing, in the same way    Dfc-Part-Sums
 *   entity-cache-control, …   Cache-Control, …            the same
 *
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* S3's checksum of the bytes: "CRC32C:yZRlqg==".  In a PUT: compute and keep it, and compare it
 * where a value follows the algorithm.  Of an object that was uploaded in parts it may be one of
 * the parts' checksums: "CRC32C:yZRlqg==-3" (s3/uploads/object_sum.h). */
#define OBJECT_SUM_HEADER "Dfc-Sum"

/* Tags: "a=1&b=2", as x-amz-tagging has them (target/format/attr_tags.h). */
#define OBJECT_TAGS_HEADER "Dfc-Tags"

/* The sizes of the parts of an object that was uploaded in parts: "9999x8388608,1x123". */
#define OBJECT_PARTS_HEADER "Dfc-Parts"

/* The checksums of these parts: "CRC32C:" and all values in a row, in base64url. */
#define OBJECT_PART_SUMS_HEADER "Dfc-Part-Sums"

struct own_meta {
    const char *name;
    const char *sent;  /* the header of a PUT; NULL: a client sends none */
    const char *given; /* the header of a reply; NULL: its reply is apart */
    bool is_kept;      /* a PUT's header is kept as it is */
};

enum { OWN_METAS_MAX = 11 };

/* Ends with a row without a name. */
extern const struct own_meta own_metas[];

/* NULL: the pair is the user's. */
const struct own_meta *own_meta_find(const char *name);
