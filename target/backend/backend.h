/* What one kind of backend is to the target: one file with one row (dfc.c, gcs.c, http.c,
 * s3.c).  A row is
 * pure: it makes a request out of what is wanted, and reads what the reply's head says of the
 * object. Everything else (connections, retries, timeouts, storing) is the same for all of them:
 * exchange.h.
 *
 *   spec (the bucket's URL) + ask ──request()──▶ URL, headers ──exchange──▶ head ──sums()──▶ facts
 *
 * A row says which verbs it knows besides reading: who cannot write, or list, leaves them out, and
 * nobody else asks which provider it is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/props/backend.h"
#include "common/arena.h"
#include "common/checksum.h"
#include "common/error.h"
#include "net/client/client.h"

struct aws_keys;

enum {
    BACKEND_ETAG_MAX = 256,
    BACKEND_TYPE_MAX = 256,
    BACKEND_ENCODING_MAX = 64,
    BACKEND_META_MAX = 1536, /* user metadata: names, values and their terminators */
};

enum backend_verb {
    BACKEND_READ, /* an object, a range of it, or its head */
    BACKEND_PUT,
    BACKEND_DELETE,
    BACKEND_PARTS_BEGIN, /* an object in parts (upload.h) … */
    BACKEND_PART,
    BACKEND_PARTS_END,
    BACKEND_PARTS_ABORT,
    BACKEND_LIST,          /* a page of names */
    BACKEND_SESSION_BEGIN, /* an object in a session (upload_session.h) … */
    BACKEND_SESSION_SEND,
    BACKEND_SESSION_ABORT,
    BACKEND_COPY,      /* another object of the backend, under this name … */
    BACKEND_PART_COPY, /* … a range of it, as a part … */
    BACKEND_REWRITE,   /* … or step by step */
};

struct backend_part {
    struct checksum_value md5;
    char etag[BACKEND_ETAG_MAX];
};

/* Of what is written. */
struct backend_write {
    const char *content_type; /* or NULL */
    const char *meta;         /* pairs (meta.h), or NULL */
    size_t meta_len;
    struct checksum_value md5;        /* of these bytes; type NONE: not known */
    const char *upload_id;            /* of parts: what BACKEND_PARTS_BEGIN was answered with */
    unsigned part;                    /* 1, 2, … */
    const struct backend_part *parts; /* of BACKEND_PARTS_END */
    size_t part_count;
    uint64_t size;                /* of the whole: BACKEND_SESSION_BEGIN */
    const char *content_range;    /* of BACKEND_SESSION_SEND: "bytes 0-9/10" */
    const char *from, *from_etag; /* of copies: the other name, and which version of it */
    const char *from_range;       /* of BACKEND_PART_COPY: "bytes=0-9" */
    const char *token;            /* of BACKEND_REWRITE: of the step before, or NULL */
};

/* Of a list: names that the bucket here has for them, that is, without the backend's prefix. */
struct backend_list_ask {
    const char *prefix, *delimiter, *start_after; /* "" for none */
    const char *token;                            /* of the page before, or NULL */
    size_t limit;
};

struct backend_ask {
    enum backend_verb verb;
    enum http_method method;             /* of BACKEND_READ: GET or HEAD */
    const char *name;                    /* of the object */
    const char *range;                   /* "bytes=0-99", or NULL */
    const char *if_match;                /* an entity tag, or NULL */
    int64_t wall_ms;                     /* now: signatures have a time */
    const struct backend_write *write;   /* or NULL */
    const struct backend_list_ask *list; /* or NULL */
    const char *url;   /* http: this, not the base and the name; of sessions: theirs; or NULL */
    const char *token; /* of who bears_token, where requests are signed … */
    const struct aws_keys *keys; /* … and of who signs with keys */
    const char *if_none_match;   /* what is here: 304 where it is that still; or NULL … */
    int64_t if_modified_since_s; /* … and then the same by time; 0: not asked so */
};

struct backend_request {
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated */
    const char *body;           /* or NULL: the object's bytes, or none */
};

/* What is known of an object from a reply's head. */
struct backend_facts {
    int status;
    int64_t length;  /* of this body; -1: unknown */
    int64_t size;    /* of the whole object; -1: unknown */
    bool ends;       /* the body's end is told: by a length, or by chunks */
    uint64_t offset; /* of a 206: where it begins; of a session that goes on: what has come */
    char etag[BACKEND_ETAG_MAX]; /* as it came, quotes included; "": none, or too long */
    char content_type[BACKEND_TYPE_MAX];
    char encoding[BACKEND_ENCODING_MAX]; /* Content-Encoding; "": the bytes are the object's */
    int64_t modified_s;                  /* -1: unknown */
    struct checksum_value sum;           /* of the whole object; type NONE: none is given */
    char meta[BACKEND_META_MAX];         /* the user's own: pairs (meta.h) … */
    size_t meta_len;
    bool meta_lost; /* … but there is more than can be kept, and so nothing is */
};

/* A page of a backend's list: what is not a name of ours (empty, too long, no UTF-8) is left out.
 */
struct backend_entry {
    const char *name;
    const char *etag; /* with its quotes; "" for none */
    uint64_t size;
    int64_t modified_ms;
};

struct backend_page {
    struct arena *arena; /* of all texts; the caller's, before it is read */
    struct backend_entry *entries;
    size_t entry_count, entry_room;
    const char **prefixes;
    size_t prefix_count, prefix_room;
    const char *token; /* leads to the next page; NULL: the last */
};

struct backend_ops {
    const char *provider;
    unsigned verbs; /* BACKEND_VERB() of those that it knows besides BACKEND_READ */
    /* Texts are the arena's.  E_OBJECT_NOT_FOUND for a name that this backend cannot have. */
    int (*request)(const struct backend_spec *spec, const struct backend_ask *ask, struct arena *a,
                   struct backend_request *out, struct error *err);
    /* The checksum of the whole object, where the head tells one for certain. */
    void (*sum)(const struct http_head *head, struct checksum_value *out);
    /* What else is this service's own: an entity tag by another name, …  NULL: nothing. */
    void (*facts)(const struct http_head *head, struct backend_facts *out);
    /* What the service itself says of a failure: "NoSuchKey: …", from the reply's body.  NULL: its
     * bodies say nothing. */
    void (*words)(const char *body, size_t len, struct buf *out);
    /* Of PARTS_BEGIN's answer: the upload's id.  With BACKEND_PARTS_BEGIN. */
    int (*upload_id)(const char *body, size_t len, struct buf *out, struct error *err);
    /* Of the answer that ends an upload (PARTS_END, which may be an error in spite of its status;
     * SESSION_SEND): the entity tag. */
    int (*end_etag)(const char *body, size_t len, struct buf *out, struct error *err);
    /* Of a copy's answer, which may be an error in spite of its status: of COPY and PART_COPY the
     * entity tag; of REWRITE the token that the next step needs, empty where it was the last. */
    int (*copied)(const char *body, size_t len, struct buf *out, struct error *err);
    /* With BACKEND_LIST. */
    int (*page)(const struct backend_spec *spec, const char *body, size_t len,
                struct backend_page *out, struct error *err);
    const char *meta_prefix; /* of headers with user metadata; NULL: it has none */
    bool takes_meta;         /* … and takes it with what is written */
    bool keeps_headers;      /* Cache-Control and its like, too (own_meta.h) */
    bool redirects;          /* are they followed? */
    bool bears_token;        /* asks with a token (google_token.h), unless it is public … */
    bool signs;              /* … and signs with keys (aws_temporary.h) */
};

extern const struct backend_ops backend_dfc, backend_gcs, backend_http, backend_s3;

#define BACKEND_VERB(verb) (1u << (verb))
#define BACKEND_WRITES (BACKEND_VERB(BACKEND_PUT) | BACKEND_VERB(BACKEND_DELETE))
#define BACKEND_PARTS                                                      \
    (BACKEND_VERB(BACKEND_PARTS_BEGIN) | BACKEND_VERB(BACKEND_PART) |      \
     BACKEND_VERB(BACKEND_PARTS_END) | BACKEND_VERB(BACKEND_PARTS_ABORT) | \
     BACKEND_VERB(BACKEND_PART_COPY))
#define BACKEND_SESSIONS                                                        \
    (BACKEND_VERB(BACKEND_SESSION_BEGIN) | BACKEND_VERB(BACKEND_SESSION_SEND) | \
     BACKEND_VERB(BACKEND_SESSION_ABORT))

bool backend_can(const struct backend_ops *ops, enum backend_verb verb);
/* With which method HTTP says it. */
enum http_method backend_method(const struct backend_ask *ask);
/* Adds to the page, as far as these are names of ours: `name` without the backend's prefix. */
void backend_page_add_entry(struct backend_page *page, const struct backend_entry *entry);
void backend_page_add_prefix(struct backend_page *page, const char *name);

/* NULL for a provider that this release has not. */
const struct backend_ops *backend_ops_of(const char *provider);
/* The lines that all rows have in common: Range, If-Match, If-None-Match, If-Modified-Since. */
enum { BACKEND_ASK_LINES = 4 };
size_t backend_ask_lines(const struct backend_ask *ask, struct arena *a, const char **out);
/* Is it a question whose answer may be 304? */
bool backend_ask_compares(const struct backend_ask *ask);
/* "bytes 0-99/1000" */
bool backend_parse_content_range(const char *text, uint64_t *offset, uint64_t *length,
                                 int64_t *size);
/* "2009-10-12T17:50:30.000Z", a fraction is left out; 0: it is none. */
int64_t backend_parse_time_ms(const char *text);
/* Is this tag one that tells bytes apart (not weak), and so good for If-Match? */
bool backend_etag_is_strong(const char *etag);
/* In base64, as headers have it. */
enum { BACKEND_DIGEST_MAX = (CHECKSUM_MAX + 2) / 3 * 4 + 1 };
const char *backend_format_digest(const struct checksum_value *sum,
                                  char out[static BACKEND_DIGEST_MAX]);
