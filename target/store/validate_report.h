/* What a validation or a scrub of a target has found: how much it has looked at, how many
 * differences of each kind there are, and the first of them by name.  All of them go to the log.
 * Any thread.
 *
 * Each mountpath has a part of its own, which can be written down and read again: a scrub goes on
 * where it was, with the counts that it had there (scrub_cursor.h). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* FINDING(name, what it says) */
#define VALIDATE_FINDINGS(FINDING)                                                   \
    FINDING(file_missing, "the index has the object, and its file is gone")          \
    FINDING(not_indexed, "the file is there, and no list shows it")                  \
    FINDING(index_differs, "a list says something else of it than the file")         \
    FINDING(attribute_damaged, "the file has no attribute that can be read")         \
    FINDING(unknown_format, "a newer release wrote the attribute, or it is damaged") \
    FINDING(size_differs, "the file has not the length that its attribute says")     \
    FINDING(checksum_differs,                                                        \
            "the file's bytes do not have the checksum that they were stored with")  \
    FINDING(misplaced, "the file is not in the directory of its name")               \
    FINDING(quarantined, "its damaged file was moved aside, and no other has come")  \
    FINDING(unreadable, "the disk does not give the file")                           \
    FINDING(not_looked_at, "the mountpath, or its index, could not be looked at")

enum validate_finding {
#define FINDING(name, text) VALIDATE_##name,
    VALIDATE_FINDINGS(FINDING)
#undef FINDING
        VALIDATE_FINDINGS_COUNT,
};

/* What a scrub does about them. */
#define VALIDATE_MENDS(MEND)                                           \
    MEND(quarantined, "damaged files moved aside")                     \
    MEND(indexed, "rows of indexes that say what the files say again") \
    MEND(repairs_wanted, "objects of which a good copy was asked for") \
    MEND(failed, "damaged files, or rows, that could not be dealt with")

enum validate_mend {
#define MEND(name, text) VALIDATE_MEND_##name,
    VALIDATE_MENDS(MEND)
#undef MEND
        VALIDATE_MENDS_COUNT,
};

/* Kept by name, of each mountpath, and shown, of all; the others are counted. */
enum { VALIDATE_SHOWN = 50 };

struct validate_report;
struct validate_part;

struct validate_report *validate_report_new(void);
void validate_report_free(struct validate_report *r);

void validate_report_expect(struct validate_report *r, uint64_t objects); /* in all */
/* The part of this mountpath, which lives as long as the report. */
struct validate_part *validate_report_part(struct validate_report *r, const char *mountpath);
void validate_report_end(struct validate_report *r);

void validate_part_reset(struct validate_part *p);
void validate_part_looked_at(struct validate_part *p);            /* a file of an object */
void validate_part_read(struct validate_part *p, uint64_t bytes); /* for checksums */
/* `name` is the object's, or "" where it is not known; `detail` says more, or is "". */
void validate_part_add(struct validate_part *p, enum validate_finding what, uint64_t bucket_id,
                       const char *name, const char *detail);
void validate_part_mended(struct validate_part *p, enum validate_mend what);
json_t *validate_part_to_json(struct validate_part *p);
/* E_JSON: it is reset. */
int validate_part_from_json(struct validate_part *p, json_t *doc, struct error *err);

uint64_t validate_report_count(struct validate_report *r, enum validate_finding what);
uint64_t validate_report_mended(struct validate_report *r, enum validate_mend what);
const char *validate_finding_name(enum validate_finding what);
/* E_NOT_FOUND. */
int validate_finding_from_name(const char *name, enum validate_finding *out, struct error *err);
/* As proxy/jobs/objects_view.h takes it, and: "found": {finding: how many}, "mended": {what: how
 * many}, "differences": [{"what", "mountpath", "bucket_id", "name", "detail"}], "warnings". */
json_t *validate_report_status(struct validate_report *r);
