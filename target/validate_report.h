/* What a validation of a target has found: how much it has looked at, how many differences of each
 * kind there are, and the first of them by name.  All of them go to the log.  Any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* FINDING(name, what it says) */
#define VALIDATE_FINDINGS(FINDING)                                                  \
    FINDING(file_missing, "the index has the object, and its file is gone")         \
    FINDING(not_indexed, "the file is there, and no list shows it")                 \
    FINDING(index_differs, "a list says something else of it than the file")        \
    FINDING(attribute_damaged, "the file has no attribute that can be read")        \
    FINDING(size_differs, "the file has not the length that its attribute says")    \
    FINDING(checksum_differs,                                                       \
            "the file's bytes do not have the checksum that they were stored with") \
    FINDING(misplaced, "the file lies where its name does not belong")              \
    FINDING(unreadable, "the disk does not give the file")                          \
    FINDING(not_looked_at, "the mountpath, or its index, could not be looked at")

enum validate_finding {
#define FINDING(name, text) VALIDATE_##name,
    VALIDATE_FINDINGS(FINDING)
#undef FINDING
        VALIDATE_FINDINGS_COUNT,
};

/* Kept by name; the others are counted. */
enum { VALIDATE_SHOWN = 50 };

struct validate_report;

struct validate_report *validate_report_new(void);
void validate_report_free(struct validate_report *r);

void validate_report_expect(struct validate_report *r, uint64_t objects);
void validate_report_looked_at(struct validate_report *r);            /* a file of an object */
void validate_report_read(struct validate_report *r, uint64_t bytes); /* for checksums */
/* `name` is the object's, or "" where it is not known; `detail` says more, or is "". */
void validate_report_add(struct validate_report *r, enum validate_finding what,
                         const char *mountpath, uint64_t bucket_id, const char *name,
                         const char *detail);
void validate_report_end(struct validate_report *r);

uint64_t validate_report_count(struct validate_report *r, enum validate_finding what);
const char *validate_finding_name(enum validate_finding what);
/* As proxy/objects_view.h takes it, and: "found": {finding: how many}, "differences": [{"what",
 * "mountpath", "bucket_id", "name", "detail"}], "warnings". */
json_t *validate_report_status(struct validate_report *r);
