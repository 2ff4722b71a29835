/* libdfc: a client of a dfc cluster.
 *
 *     struct dfc_error err;
 *     struct dfc_client *c;
 *     if (dfc_client_open(NULL, &c, &err) != DFC_OK)           // endpoint from DFC_ENDPOINT
 *         die("%s", err.message);
 *     if (dfc_put_file(c, "train", "a/0001.tar", "0001.tar", NULL, NULL, &err) != DFC_OK)
 *         die("%s: %s", err.code, err.message);
 *     dfc_client_close(c);
 *
 * RESULTS.  Every call that can fail returns DFC_OK (0) or a negative enum dfc_result, and fills
 * the struct dfc_error that is its last parameter (which may be NULL).  Nothing is returned
 * through the other pointers when it fails.
 *
 * THREADS.  One client may be used by any number of threads at once; each call takes one of the
 * client's connections, or opens another.  A list iterator belongs to one thread at a time.
 * Only dfc_client_cancel() may be called from a signal handler.  A program that talks TLS should
 * ignore SIGPIPE.
 *
 * RETRIES.  A call is repeated, with growing, jittered pauses and a bound in number and time,
 * where that cannot do harm: nothing was sent; the server refused with 429, 503 or `stale_map`
 * (its Retry-After is honoured); or the connection broke under a call that may be made twice
 * (every read, DELETE of an object, PUT of a whole object whose source can be read again).  What
 * may have happened already and must not happen twice is reported instead.
 *
 * MEMORY.  What a call hands over is freed with the function named beside it, plain text with
 * dfc_free().  Objects are never held whole in memory except by dfc_get_memory().  The library
 * ends the program when the C library has no memory for its own few small blocks.
 *
 * DOCUMENTS.  Cluster, node, bucket and job documents are handed over as the JSON text that the
 * cluster sent (docs/reference/http.md shows their fields, which grow over time). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DFC_API __attribute__((visibility("default")))

/* ---- results ---- */

enum dfc_result {
    DFC_OK = 0,
    DFC_FAILED = -1,       /* the cluster failed (5xx), or a reply is not of the contract */
    DFC_INVALID = -2,      /* an argument, name or document is malformed; not supported */
    DFC_NOT_FOUND = -3,    /* no such bucket, object, job or node */
    DFC_DENIED = -4,       /* 401, 403 */
    DFC_UNREACHABLE = -5,  /* no endpoint answers, or the node that is needed does not */
    DFC_TIMED_OUT = -6,    /* connected, but silent for too long; or a wait ran out of time */
    DFC_CONFLICT = -7,     /* it exists already; the job's state does not allow this */
    DFC_PRECONDITION = -8, /* if_match, if_none_match; the object changed while it was read */
    DFC_CORRUPT = -9,      /* a checksum or length is wrong */
    DFC_LOCAL = -10,       /* a local file, descriptor or callback failed */
    DFC_CANCELLED = -11,   /* dfc_client_cancel() */
    DFC_NOT_MODIFIED = -12 /* if_none_match names the version that the object has */
};

struct dfc_error {
    int result;          /* enum dfc_result */
    int status;          /* HTTP status of the reply; 0 where there was none */
    char code[40];       /* stable name, e.g. "bucket_not_found" (docs/reference/http.md) */
    char message[768];   /* a sentence for people */
    char node[64];       /* the node that said so; "" where unknown */
    char request_id[72]; /* finds the call in the cluster's logs */
};

DFC_API void dfc_free(void *memory); /* what a call handed over as text or bytes; NULL is fine */
DFC_API const char *dfc_version(void);

/* ---- client ---- */

struct dfc_client;

/* Zero means the default throughout; all zero is a good choice. */
struct dfc_client_options {
    /* "http://host:port" or "https://host:port", several separated by commas: any proxies of one
     * cluster.  The next is tried where one does not answer.  NULL: the environment's DFC_ENDPOINT,
     * without it those of the profile, and without one http://127.0.0.1:8080. */
    const char *endpoints;
    uint32_t connect_timeout_ms; /* 5000 */
    uint32_t idle_timeout_ms;    /* 60000: nothing sent and nothing received for so long */
    uint32_t attempts;           /* 6 tries in all; 1 turns repeating off */
    uint32_t retry_budget_ms;    /* 60000: no new try later than this after the last progress */
    uint32_t idle_connections;   /* 32 kept for reuse */
    const char *user_agent;      /* "libdfc/VERSION" */
    /* The file with the cluster's key, which signs the calls that administer (they say so below);
     * it is read by the first of them.  NULL: the environment's DFC_CLUSTER_KEY_FILE; "": none, as
     * for a cluster without a key. */
    const char *cluster_key_file;
    /* Control listeners of proxies, as `endpoints`: then calls that administer, and dfc_*_show(),
     * are made there, signed with that key, and no login is used for them.  So the key alone
     * administers a cluster with access control.  NULL: the environment's DFC_CONTROL_ENDPOINT;
     * without it, or "": none. */
    const char *control_endpoints;
    /* PEM file with the authorities that an https:// endpoint's certificate may be of.  NULL: the
     * environment's DFC_CA_FILE; without it, or "": the system's. */
    const char *ca_file;
    /* Who calls a cluster with access control: the access key of a user with its secret key, or a
     * token of POST /v1/auth/token.  With a secret the client logs in at its first call, and again
     * before the token ends; all threads share that.  Tokens go to nodes of the cluster alone,
     * never along a redirect, and never over plain HTTP where the endpoints are https://.  All
     * three NULL: the environment's DFC_ACCESS_KEY and DFC_SECRET_KEY, or DFC_TOKEN, and without
     * them those of the profile; "": none. */
    const char *access_key;
    const char *secret_key;
    const char *token;
    /* A profile ("profiles" below): what neither options nor the environment name.  NULL: the
     * environment's DFC_PROFILE; without it the file's current one, unless the endpoints that are
     * named are others than its own.  "": none. */
    const char *profile;
    /* Tokens are kept in $XDG_CACHE_HOME/dfc, without it in ~/.cache/dfc (mode 0600), so that the
     * next client with the same key and endpoints needs no login; not with `insecure`.  A token
     * that the cluster refuses is dropped.  dfc_profile_remove() drops those of its key. */
    bool keep_token;
    bool insecure; /* any certificate is taken, so that anybody can pose as the cluster */
};

/* Opens no connection yet.  options may be NULL. */
DFC_API int dfc_client_open(const struct dfc_client_options *options, struct dfc_client **client,
                            struct dfc_error *err);
/* Ends all running and later calls with DFC_CANCELLED.  Async-signal-safe; there is no way back. */
DFC_API void dfc_client_cancel(struct dfc_client *client);
/* The endpoint that answered last.  Valid as long as the client. */
DFC_API const char *dfc_client_endpoint(const struct dfc_client *client);
DFC_API void dfc_client_close(struct dfc_client *client); /* no call may be running; NULL is fine */

/* ---- profiles: $XDG_CONFIG_HOME/dfc/config.json, without it ~/.config/dfc/config.json ----
 *
 *     {"current": "lab", "profiles": {"lab": {"endpoints": "https://…", "access_key": "…",
 *                                             "secret_key": "…", "ca_file": "…"}}}
 *
 * A "token" may stand in place of the keys.  The file has mode 0600: one that others may read is
 * DFC_LOCAL.  A name that is NULL means DFC_PROFILE, else the current one, else "default". */

struct dfc_profile {
    const char *endpoints;
    const char *access_key, *secret_key; /* or NULL, and … */
    const char *token;                   /* … a token; it is not renewed */
    const char *ca_file; /* NULL: that of the profile before, if it had one; "": none */
};

/* malloc'ed; NULL: there is no home directory. */
DFC_API char *dfc_profile_path(void);
/* Adds it or puts it in place of the one of that name; it is the current one from then on.
 * *saved, its name, is the caller's to free; saved may be NULL. */
DFC_API int dfc_profile_save(const char *name, const struct dfc_profile *profile, char **saved,
                             struct dfc_error *err);
DFC_API int dfc_profile_remove(const char *name, char **removed, struct dfc_error *err);

/* ---- objects ---- */

struct dfc_meta {
    const char *name; /* without the "Dfc-Meta-"; case does not matter */
    const char *value;
};

struct dfc_object_info {
    uint64_t size;       /* of the whole object, also where a range was read */
    int64_t modified_ms; /* Unix time; 0 where the reply does not say */
    char *content_type;  /* texts are "" where the reply does not say */
    char *etag;          /* with its quotes, ready for if_match */
    char *version;
    char *checksum_type; /* "xxh3" */
    char *checksum;      /* hexadecimal */
    size_t meta_count;
    struct dfc_meta *meta;
};

DFC_API void dfc_object_info_free(struct dfc_object_info *info);

/* Called now and then while bytes move, from the calling thread.  total is UINT64_MAX where it is
 * not known.  done may fall back when a try is repeated. */
typedef void dfc_progress(void *context, uint64_t done, uint64_t total);

struct dfc_put_options {
    const char *content_type; /* NULL: application/octet-stream by the server */
    const struct dfc_meta *meta;
    size_t meta_count;
    bool if_absent;       /* DFC_PRECONDITION where the object exists */
    const char *if_match; /* etag; DFC_PRECONDITION where the object is another */
    bool no_checksum;     /* do not read the source once more to send its checksum */
    dfc_progress *progress;
    void *progress_context;
};

/* Where a body comes from. */
struct dfc_source {
    /* Up to `room` bytes into `to`; 0 at the end; -1 ends the call with DFC_LOCAL. */
    ptrdiff_t (*read)(void *context, void *to, size_t room);
    /* Back to the first byte: 0 or -1.  NULL where the source can be read only once; then the
     * call is repeated only as long as no more than its first 256 KiB were sent. */
    int (*rewind)(void *context);
    void *context;
    int64_t size; /* bytes; -1 where unknown */
};

/* Store an object; readers see the old or the new one, never a mixture.  The checksum (xxh3) of
 * a memory or file source is sent along, so that damage on the way is refused; that of other
 * sources is compared with the one that the server computed.  options and info may be NULL. */
DFC_API int dfc_put_memory(struct dfc_client *client, const char *bucket, const char *object,
                           const void *data, size_t size, const struct dfc_put_options *options,
                           struct dfc_object_info **info, struct dfc_error *err);
DFC_API int dfc_put_file(struct dfc_client *client, const char *bucket, const char *object,
                         const char *path, const struct dfc_put_options *options,
                         struct dfc_object_info **info, struct dfc_error *err);
/* From the descriptor's position to its end: a regular file (by pread(2); the position does not
 * move), a pipe, a socket. */
DFC_API int dfc_put_fd(struct dfc_client *client, const char *bucket, const char *object, int fd,
                       const struct dfc_put_options *options, struct dfc_object_info **info,
                       struct dfc_error *err);
DFC_API int dfc_put_source(struct dfc_client *client, const char *bucket, const char *object,
                           const struct dfc_source *source, const struct dfc_put_options *options,
                           struct dfc_object_info **info, struct dfc_error *err);

struct dfc_append_options {
    const char *if_match; /* etag of the archive; DFC_PRECONDITION where it is another */
    bool overwrite;       /* members that the archive has: the new ones count */
    bool create;          /* the archive, where there is none (NAME.tar, NAME.zip) */
    bool no_checksum;     /* do not read the source once more to send its checksum */
    dfc_progress *progress;
    void *progress_context;
};
#define DFC_APPEND_MEMBERS_MAX 262144    /* of one call, and … */
#define DFC_APPEND_NAMES_MAX (32u << 20) /* … bytes of their names */

/* Put the members of a plain tar, which source gives and rewind()s, into a plain tar or a zip, all
 * or none.  DFC_CONFLICT: the archive has one of the names.  The reply may take as long as it does.
 * A call that broke off is repeated unless it overwrites without if_match; code `in_doubt`: the
 * repetition finds a changed archive, by the first try or another client. */
DFC_API int dfc_append_source(struct dfc_client *client, const char *bucket, const char *archive,
                              const struct dfc_source *source,
                              const struct dfc_append_options *options,
                              struct dfc_object_info **info, struct dfc_error *err);

struct dfc_get_options {
    int64_t offset;            /* first byte; negative: so many bytes before the end */
    uint64_t length;           /* 0: to the end (ignored with a negative offset) */
    const char *if_match;      /* etag; DFC_PRECONDITION where the object is another */
    const char *if_none_match; /* etag; DFC_NOT_MODIFIED where the object is this one */
    bool no_verify;            /* do not compare a whole object with its checksum */
    uint64_t memory_limit;     /* of dfc_get_memory(), bytes; 0: 1 GiB */
    dfc_progress *progress;
    void *progress_context;
    /* The version that is read is known, and no byte of it has been written: 0, or -1 ends the call
     * with DFC_LOCAL.  Again where the read begins anew.  NULL: nothing to do. */
    int (*begin)(void *context, const struct dfc_object_info *info);
    void *begin_context;
};

/* Where bytes go. */
struct dfc_sink {
    /* All of them, in order: 0, or -1 ends the call with DFC_LOCAL. */
    int (*write)(void *context, const void *data, size_t size);
    /* Forget what was written: 0 or -1.  NULL where that cannot be; then a call whose object
     * changed or came damaged fails instead of beginning anew. */
    int (*rewind)(void *context);
    void *context;
};

/* Read an object or a range.  A transfer that is cut goes on where it stopped, with If-Match on
 * the version it began with.  A whole object is compared with its checksum at the end:
 * DFC_CORRUPT.  The bytes of a failed call are not to be used. */
DFC_API int dfc_get_memory(struct dfc_client *client, const char *bucket, const char *object,
                           const struct dfc_get_options *options, void **data, size_t *size,
                           struct dfc_object_info **info, struct dfc_error *err);
/* Written at the descriptor's position.  A regular file that is not open for appending is
 * rewound to it (and cut) when the read begins anew. */
DFC_API int dfc_get_fd(struct dfc_client *client, const char *bucket, const char *object, int fd,
                       const struct dfc_get_options *options, struct dfc_object_info **info,
                       struct dfc_error *err);
DFC_API int dfc_get_sink(struct dfc_client *client, const char *bucket, const char *object,
                         const struct dfc_sink *sink, const struct dfc_get_options *options,
                         struct dfc_object_info **info, struct dfc_error *err);

DFC_API int dfc_head(struct dfc_client *client, const char *bucket, const char *object,
                     struct dfc_object_info **info, struct dfc_error *err);
struct dfc_digest_options {
    const char *if_match;     /* etag; DFC_PRECONDITION where the object is another */
    uint32_t idle_timeout_ms; /* the reply comes after all bytes were read; 0: the client's */
};
/* The object's checksum of a type ("sha256", "md5", "crc32c", "xxh3"), computed by the target that
 * has it: no byte of the object moves.  *info has size, version, etag and this checksum.  options
 * may be NULL.  DFC_INVALID: also where the target is of a release that cannot do so. */
DFC_API int dfc_digest(struct dfc_client *client, const char *bucket, const char *object,
                       const char *type, const struct dfc_digest_options *options,
                       struct dfc_object_info **info, struct dfc_error *err);
/* What each target has of the object, as it is on its disk (docs/reference/http.md, "Copies of one
 * object"); verify: each reads its bytes and compares them with their checksum. *document is the
 * caller's to free. */
DFC_API int dfc_object_copies(struct dfc_client *client, const char *bucket, const char *object,
                              bool verify, char **document, struct dfc_error *err);
/* A URL with which anybody can download (method "GET") or upload ("PUT") the object, in the name of
 * the client's user; for `seconds`, 3600 at most.  In a cluster with access control alone.
 * document: {"url", "expires_ms"}. */
DFC_API int dfc_object_url(struct dfc_client *client, const char *bucket, const char *object,
                           const char *method, uint64_t seconds, char **document,
                           struct dfc_error *err);
/* DFC_NOT_FOUND where there is none, unless an earlier try of this call may have removed it. */
DFC_API int dfc_delete(struct dfc_client *client, const char *bucket, const char *object,
                       struct dfc_error *err);
/* if_match: etag; DFC_PRECONDITION where the object is another, DFC_NOT_FOUND where there is none,
 * also if an earlier try of this call may have removed it.  NULL: as dfc_delete(). */
DFC_API int dfc_delete_match(struct dfc_client *client, const char *bucket, const char *object,
                             const char *if_match, struct dfc_error *err);
/* Within the bucket; an object that has the new name is replaced.  A reader finds one of the two
 * names, for a moment both; so it is after an end in doubt, and the same call again does the rest.
 */
DFC_API int dfc_rename(struct dfc_client *client, const char *bucket, const char *object,
                       const char *new_name, struct dfc_error *err);

/* ---- uploads in parts ----
 *
 *     dfc_upload_begin     -> the upload's id
 *     dfc_upload_part      for each part, in any order, from any thread, again after a failure
 *     dfc_upload_complete  the parts become the object; or dfc_upload_abort
 *
 * Parts have the numbers 1 to 10000 and at most 5 GiB; each but the last has at least 5 MiB.  The
 * tag of a part is the MD5 of its bytes, in hexadecimal.  Readers see nothing before the
 * completion.  The cluster removes an upload that is neither completed nor aborted after the
 * target's parameter uploads_expire.  DFC_NOT_FOUND with the code "not_found": the upload was
 * completed, aborted or removed, or the node that has it has left the cluster.
 *
 * All calls are repeated as a read is.  A repeated begin may leave an empty upload. */

/* Of the options: content_type and meta.  *upload must be freed with dfc_free(). */
DFC_API int dfc_upload_begin(struct dfc_client *client, const char *bucket, const char *object,
                             const struct dfc_put_options *options, char **upload,
                             struct dfc_error *err);
/* Stores a part, in place of one that has its number.  Of the options: no_checksum and the
 * progress.  Unless there is no_checksum, the reply's tag is compared with the bytes that were
 * sent: DFC_CORRUPT.  *tag must be freed with dfc_free(); tag may be NULL. */
DFC_API int dfc_upload_part(struct dfc_client *client, const char *bucket, const char *object,
                            const char *upload, uint32_t number, const struct dfc_source *source,
                            const struct dfc_put_options *options, char **tag,
                            struct dfc_error *err);
/* A page of the parts above the number `after`, by number.
 * document: {"parts": [{"part", "tag", "size", "time"}], "more"} */
DFC_API int dfc_upload_parts(struct dfc_client *client, const char *bucket, const char *object,
                             const char *upload, uint32_t after, char **document,
                             struct dfc_error *err);
/* parts: a JSON list of {"part", "tag"}; numbers ascend.  Of the options: if_absent and if_match.
 * *info has the size, version and etag of the object; info may be NULL.  A completion that is
 * repeated within the target's parameter uploads_keep gets the first one's reply.  While it is at
 * work, a repeated one fails with the code "not_ready". */
DFC_API int dfc_upload_complete(struct dfc_client *client, const char *bucket, const char *object,
                                const char *upload, const char *parts,
                                const struct dfc_put_options *options,
                                struct dfc_object_info **info, struct dfc_error *err);
DFC_API int dfc_upload_abort(struct dfc_client *client, const char *bucket, const char *object,
                             const char *upload, struct dfc_error *err);
/* A page of a bucket's open uploads, by object, then by time: those of objects that begin with
 * `prefix`, behind the object `after`, or behind its upload `after_upload`.  Each of the three
 * may be NULL.  document: {"uploads": [{"object", "upload", "time"}], "more"} */
DFC_API int dfc_upload_list(struct dfc_client *client, const char *bucket, const char *prefix,
                            const char *after, const char *after_upload, char **document,
                            struct dfc_error *err);

/* ---- lists ---- */

struct dfc_list_options {
    const char *prefix;      /* names that begin so */
    const char *delimiter;   /* "/": names with one after the prefix are folded into one entry */
    const char *start_after; /* names greater than this, bytewise */
    uint32_t page_size;      /* entries asked for at once; 0: 1000 */
    bool partial;            /* go on without targets that cannot be asked, see _incomplete() */
    bool cached;             /* of a bucket with a backend: what is here, alone */
    bool internal;           /* also names that begin with ".dfc-", as with such a prefix */
};

struct dfc_entry {
    const char *name;
    bool is_prefix; /* a folded one; the fields below are empty */
    uint64_t size;
    int64_t modified_ms;
    const char *version;
    const char *checksum_type;
    const char *checksum;
    bool cold; /* the bucket's backend has it, and no target: no version, no checksum */
};

struct dfc_list;

/* The names of a bucket in bytewise order, asked for page by page as they are needed.
 * options may be NULL; its texts are copied. */
DFC_API int dfc_list_open(struct dfc_client *client, const char *bucket,
                          const struct dfc_list_options *options, struct dfc_list **list,
                          struct dfc_error *err);
/* 1 and the next entry (valid until the next call), 0 at the end, or a negative result. */
DFC_API int dfc_list_next(struct dfc_list *list, const struct dfc_entry **entry,
                          struct dfc_error *err);
DFC_API bool dfc_list_incomplete(const struct dfc_list *list); /* a target could not be asked */
DFC_API void dfc_list_close(struct dfc_list *list);

/* ---- buckets ---- */

/* properties is a JSON object ({"copies": 1, "durability": "sync", ...}) or NULL. */
DFC_API int dfc_bucket_create(struct dfc_client *client, const char *bucket, const char *properties,
                              struct dfc_error *err);
/* The same, after the cluster has asked the bucket's backend, if it has one: an error where the
 * backend does not answer, or has no such bucket. */
DFC_API int dfc_bucket_create_checked(struct dfc_client *client, const char *bucket,
                                      const char *properties, struct dfc_error *err);
DFC_API int dfc_bucket_destroy(struct dfc_client *client, const char *bucket,
                               struct dfc_error *err); /* and all that it holds */
DFC_API int dfc_bucket_show(struct dfc_client *client, const char *bucket, char **document,
                            struct dfc_error *err);
DFC_API int dfc_bucket_set(struct dfc_client *client, const char *bucket, const char *properties,
                           struct dfc_error *err);
DFC_API int dfc_bucket_list(struct dfc_client *client, char **document, struct dfc_error *err);
/* DFC_CONFLICT where a bucket has the new name, or an unfinished job works on this one. */
DFC_API int dfc_bucket_rename(struct dfc_client *client, const char *bucket, const char *new_name,
                              struct dfc_error *err);
/* Jobs over the objects of a bucket.  value is a JSON object: "list", "template" or "prefix" say
 * which (docs/reference/jobs.md); a copy has "to", the bucket, and may have "prepend". id must be
 * freed with dfc_free(). */
DFC_API int dfc_bucket_delete_objects(struct dfc_client *client, const char *bucket,
                                      const char *value, char **id, struct dfc_error *err);
DFC_API int dfc_bucket_copy_objects(struct dfc_client *client, const char *bucket,
                                    const char *value, char **id, struct dfc_error *err);
/* Of a bucket with a backend: its objects are brought here, or let go of here. */
DFC_API int dfc_bucket_prefetch(struct dfc_client *client, const char *bucket, const char *value,
                                char **id, struct dfc_error *err);
DFC_API int dfc_bucket_evict(struct dfc_client *client, const char *bucket, const char *value,
                             char **id, struct dfc_error *err);
/* Objects become the object "archive", also of another bucket, "to", or shards, "to": {"bucket",
 * "template"}; files of archives become objects; files of "path" on the targets' machines do. */
DFC_API int dfc_bucket_archive(struct dfc_client *client, const char *bucket, const char *value,
                               char **id, struct dfc_error *err);
/* A dataset image; value: docs/guide/images.md. */
DFC_API int dfc_bucket_burn(struct dfc_client *client, const char *bucket, const char *value,
                            char **id, struct dfc_error *err);
DFC_API int dfc_bucket_unarchive(struct dfc_client *client, const char *bucket, const char *value,
                                 char **id, struct dfc_error *err);
/* Plogs (dfc_plog.h) become plain objects. */
DFC_API int dfc_bucket_flatten(struct dfc_client *client, const char *bucket, const char *value,
                               char **id, struct dfc_error *err);
DFC_API int dfc_bucket_promote(struct dfc_client *client, const char *bucket, const char *value,
                               char **id, struct dfc_error *err);
/* http(s) URLs become objects of the bucket: "list" or "template", "prepend". */
DFC_API int dfc_bucket_download(struct dfc_client *client, const char *bucket, const char *value,
                                char **id, struct dfc_error *err);

/* ---- cluster ---- */

/* what: NULL (the overview) or one of "state", "smap", "bmd", "config", "jobs", "settings". */
DFC_API int dfc_cluster_show(struct dfc_client *client, const char *what, char **document,
                             struct dfc_error *err);
/* What happened of late: nodes, disks, buckets, settings, jobs.  Events later than `after`, "next"
 * of an earlier document; NULL: the latest.  The call waits so long at most for one, and not longer
 * than the primary allows.  limit 0: 100.  document: "events", "next". */
DFC_API int dfc_cluster_events(struct dfc_client *client, const char *after, uint32_t wait_ms,
                               uint32_t limit, char **document, struct dfc_error *err);
/* How fast the targets are: so many of the last samples, of all together or also of each. */
DFC_API int dfc_cluster_stats(struct dfc_client *client, uint32_t samples, bool nodes,
                              char **document, struct dfc_error *err);
/* what: NULL or "info", "smap", "bmd", "config", "params", "mountpaths", "summary", "stats".  Asks
 * the node itself, at the public address that the cluster knows. */
DFC_API int dfc_node_show(struct dfc_client *client, const char *node, const char *what,
                          char **document, struct dfc_error *err);

/* Login with a person's password.  document: {"token", "expires_ms", "user"}; whoever has the token
 * is the user until it expires: free it as a secret.  The client needs no identity.  DFC_INVALID
 * where an endpoint is neither https:// nor of this machine: the password is not sent. */
DFC_API int dfc_login(struct dfc_client *client, const char *user, const char *password,
                      char **document, struct dfc_error *err);
/* Who the client is, in a cluster with access control: the user's document. */
DFC_API int dfc_whoami(struct dfc_client *client, char **document, struct dfc_error *err);

/* Administration: from here to "jobs" every call but dfc_*_show() is made
 * - at the control_endpoints, where they are given;
 * - else with the client's login, where it has one, at the endpoints or at the public address of
 *   the node that it is for;
 * - else at control listeners, whose addresses the cluster tells, signed with the cluster's key
 *   (cluster_key_file).
 * DFC_DENIED without the right, without the key, or with another key. */

/* Sets a cluster-wide setting; value NULL: back to its default.  document: the settings that are
 * not at theirs. */
DFC_API int dfc_cluster_set(struct dfc_client *client, const char *name, const char *value,
                            char **document, struct dfc_error *err);

/* A parameter of one running node (docs/reference/parameters.md has their names); it lasts until
 * that ends. document: all its parameters. */
DFC_API int dfc_node_set(struct dfc_client *client, const char *node, const char *name,
                         const char *value, char **document, struct dfc_error *err);

/* The last lines of a node's log, later than line number `after`. document: "lines",
 * "next", "boot". Another boot than before: the node was restarted, and numbers its lines anew. */
DFC_API int dfc_node_log(struct dfc_client *client, const char *node, uint64_t after,
                         char **document, struct dfc_error *err);

/* The cluster's documents as a whole (docs/reference/http.md, "Administration"). The copies that
 * nodes have whom the primary has refused, and which would be believed; cluster and node may be
 * NULL. */
DFC_API int dfc_documents_copies(struct dfc_client *client, const char *cluster, const char *node,
                                 char **document, struct dfc_error *err);
/* The documents with nothing left out, for a backup: dfc_cluster_show("state") cuts the queries of
 * URLs, which may be secrets.  Always with the cluster's key. */
DFC_API int dfc_documents_state(struct dfc_client *client, char **document, struct dfc_error *err);
/* action: "migrate", "restore", "recover", "set_primary"; value is a JSON object.  May be called
 * again after a doubtful end. */
DFC_API int dfc_documents_act(struct dfc_client *client, const char *action, const char *value,
                              char **document, struct dfc_error *err);

/* action: "startmaintenance", "stopmaintenance", "decommission" (docs/reference/http-api.md);
 * force: also where what only this target has cannot be moved. What is so already is fine. */
DFC_API int dfc_node_act(struct dfc_client *client, const char *node, const char *action,
                         bool force, struct dfc_error *err);

/* Out of the map for good, with what it alone had: a node that is unreachable.  Not repeated after
 * a doubtful end. */
DFC_API int dfc_node_remove(struct dfc_client *client, const char *node, struct dfc_error *err);

enum dfc_mountpath_flag {
    DFC_MOUNTPATH_LOST = 1,   /* with "detach": it is given up with every object on it */
    DFC_MOUNTPATH_CREATE = 2, /* with "attach": the directory is made if it is absent */
};

/* action: "attach", "detach", "enable", "disable", "resilver" (docs/reference/http-api.md) of a
 * target's mountpath; path may be NULL for the last. flags: of enum dfc_mountpath_flag. document:
 * the mountpaths afterwards. */
DFC_API int dfc_node_mountpath(struct dfc_client *client, const char *node, const char *action,
                               const char *path, unsigned flags, char **document,
                               struct dfc_error *err);

/* A target's indexes, by which objects are listed: how they are, and having them rebuilt from the
 * files while it serves (docs/reference/http-api.md). mountpath: its path or id, or NULL for all.
 * Returns at once; document: the indexes, with "rebuilding" until it is done. */
DFC_API int dfc_node_indexes(struct dfc_client *client, const char *node, char **document,
                             struct dfc_error *err);
DFC_API int dfc_node_reindex(struct dfc_client *client, const char *node, const char *mountpath,
                             char **document, struct dfc_error *err);

/* Users and roles of a cluster with access control (docs/reference/http-api.md has their form).
 * value and grant are JSON objects: {"name", "kind", "roles", "grants", …} of a user, {"grants"} of
 * a role, {"rights", "bucket", "prefix"} of a grant; without a bucket it is on the cluster.
 * document: the user or role afterwards. */
DFC_API int dfc_user_list(struct dfc_client *client, char **document, struct dfc_error *err);
DFC_API int dfc_user_show(struct dfc_client *client, const char *user, char **document,
                          struct dfc_error *err);
DFC_API int dfc_user_create(struct dfc_client *client, const char *value, char **document,
                            struct dfc_error *err);
/* Changes the fields that value has. */
DFC_API int dfc_user_change(struct dfc_client *client, const char *user, const char *value,
                            char **document, struct dfc_error *err);
DFC_API int dfc_user_remove(struct dfc_client *client, const char *user, struct dfc_error *err);
/* The user "anonymous" is everybody. */
DFC_API int dfc_user_grant(struct dfc_client *client, const char *user, const char *grant,
                           char **document, struct dfc_error *err);
DFC_API int dfc_user_revoke(struct dfc_client *client, const char *user, const char *grant,
                            char **document, struct dfc_error *err);
/* Of a person.  DFC_INVALID as dfc_login(): the password is not sent in clear. */
DFC_API int dfc_user_password(struct dfc_client *client, const char *user, const char *password,
                              struct dfc_error *err);
/* document: {"access", "secret"}; the secret is told this once. */
DFC_API int dfc_user_key_add(struct dfc_client *client, const char *user, char **document,
                             struct dfc_error *err);
DFC_API int dfc_user_key_remove(struct dfc_client *client, const char *user, const char *access_key,
                                struct dfc_error *err);
DFC_API int dfc_role_list(struct dfc_client *client, char **document, struct dfc_error *err);
DFC_API int dfc_role_show(struct dfc_client *client, const char *role, char **document,
                          struct dfc_error *err);
/* Makes the role, or replaces it. */
DFC_API int dfc_role_set(struct dfc_client *client, const char *role, const char *value,
                         char **document, struct dfc_error *err);
DFC_API int dfc_role_remove(struct dfc_client *client, const char *role, struct dfc_error *err);
/* document: {"allowed", "rule"}.  bucket NULL: on the cluster; object NULL: on some key. */
DFC_API int dfc_access_explain(struct dfc_client *client, const char *user, const char *right,
                               const char *bucket, const char *object, char **document,
                               struct dfc_error *err);

#ifdef __cplusplus
}
#endif

#include "dfc_jobs.h" /* sorts and other jobs */
