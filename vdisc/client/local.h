/* Files of this machine: a directory as a list, and files one behind another as one body.
 *
 * A file is read twice: to know what it is, and to send it.  If its bytes are others the second
 * time, nothing of it is stored. */
#pragma once

#include "api/dfc.h"
#include "vdisc/iso_tree.h"

struct checksum;

struct local_file {
    char *path; /* to open it */
    char *name; /* in the image: "a/b" */
    char *target;
    uint64_t size;
    int64_t mtime_s; /* of a file; ISO_NO_TIME of what is none */
    uint32_t mode;   /* permissions */
    enum iso_kind kind;
    bool known; /* its SHA-256 is */
    uint8_t sha256[32];
};

struct local_files {
    struct local_file *files; /* in path order: a directory before what is in it */
    size_t count, room;
};

/* Files, directories and links below it.  DFC_LOCAL: something cannot be read, or is a device, a
 * pipe or a socket; the message has its path. */
int local_walk(const char *directory, struct local_files *all, struct dfc_error *err);
void local_files_done(struct local_files *all);

/* SHA-256 of a file of this size. */
int local_digest(struct local_file *f, struct dfc_error *err);

/* Files as one body.  It may be read again from its begin. */
struct local_body {
    const struct local_file *const *files; /* all of them are known */
    size_t count;
    bool padded; /* each is followed by zeros, up to packs_room() */
    size_t at;   /* the present file */
    uint64_t done;
    int fd;
    struct checksum *sum;
    struct dfc_error failure; /* what read() returned -1 for */
};

void local_body_init(struct local_body *b, const struct local_file *const *files, size_t count,
                     bool padded);
void local_body_done(struct local_body *b);
uint64_t local_body_size(const struct local_body *b);
/* struct dfc_source: up to `room` bytes; 0: the end; -1: b->failure. */
ptrdiff_t local_body_read(void *body, void *to, size_t room);
int local_body_rewind(void *body);
