/* libdfc: sorts and other jobs.  A part of dfc.h, which includes it. */
#pragma once

#include "dfc.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dfc_job {
    char *id;
    char *kind;
    char *state; /* queued running (a sort: extracting merging creating) finished failed aborted */
    bool ended;  /* one of the last three */
    double percent;
    char *error;    /* the first error's message; "" */
    char *document; /* everything */
};

DFC_API void dfc_job_free(struct dfc_job *job);

/* spec is the JSON of docs/reference/sort-spec.md.  id must be freed with dfc_free(). */
DFC_API int dfc_sort_start(struct dfc_client *client, const char *spec, char **id,
                           struct dfc_error *err);
DFC_API int dfc_sort_show(struct dfc_client *client, const char *id, struct dfc_job **job,
                          struct dfc_error *err);
/* Sorts whose description matches the regular expression (NULL: all); {"jobs": [...]}. */
DFC_API int dfc_sort_list(struct dfc_client *client, const char *regex, char **document,
                          struct dfc_error *err);
DFC_API int dfc_sort_abort(struct dfc_client *client, const char *id, struct dfc_error *err);
DFC_API int dfc_sort_forget(struct dfc_client *client, const char *id, struct dfc_error *err);

DFC_API int dfc_job_show(struct dfc_client *client, const char *id, struct dfc_job **job,
                         struct dfc_error *err);
DFC_API int dfc_job_list(struct dfc_client *client, const char *kind, const char *state,
                         char **document, struct dfc_error *err); /* either may be NULL */
/* A job of a kind that needs nothing but its name: "cleanup".  id must be freed with dfc_free(). */
DFC_API int dfc_job_start(struct dfc_client *client, const char *kind, char **id,
                          struct dfc_error *err);
/* A job that compares the indexes of all targets with their files, and with `checksums` the files'
 * bytes with what they were stored with, at no more than rate_bytes_s at each mountpath (0: as fast
 * as it goes).  Its document says what differs: targets.ID.status.found and .differences. */
DFC_API int dfc_validate_start(struct dfc_client *client, bool checksums, uint64_t rate_bytes_s,
                               char **id, struct dfc_error *err);
/* A job that reads everything on the disks of the targets that answer, checks it, and moves aside
 * what is damaged; at no more than *rate_bytes_s at each mountpath, or, with NULL, as the setting
 * scrub_rate says.  DFC_CONFLICT while there is one.  Its document: as a validation's, and
 * targets.ID.status.mended. */
DFC_API int dfc_scrub_start(struct dfc_client *client, const uint64_t *rate_bytes_s, char **id,
                            struct dfc_error *err);
/* A job that deletes what the lifecycle rules of this bucket expire, or with NULL of all buckets.
 * DFC_CONFLICT while there is one. */
DFC_API int dfc_expire_start(struct dfc_client *client, const char *bucket, char **id,
                             struct dfc_error *err);
DFC_API int dfc_job_abort(struct dfc_client *client, const char *id, struct dfc_error *err);
/* Asks until the job has ended, at growing intervals of at most a second; `watch` (or NULL) sees
 * every answer.  DFC_OK whatever the end was: look at job->state.  timeout_ms 0: no limit;
 * afterwards DFC_TIMED_OUT (the job goes on). */
DFC_API int dfc_job_wait(struct dfc_client *client, const char *id, uint64_t timeout_ms,
                         void (*watch)(void *context, const struct dfc_job *job), void *context,
                         struct dfc_job **job, struct dfc_error *err);

#ifdef __cplusplus
}
#endif
