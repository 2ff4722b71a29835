/* The parts of one upload: which of them the cluster has, and sending the others.
 *
 *     upload_parts_init
 *     upload_parts_ask     of an upload that an earlier run has begun
 *     upload_parts_send    what is missing, or has other bytes
 *     upload_parts_list    for the completion
 *     upload_parts_done */
#pragma once

#include <pthread.h>

#include "api/ctl/upload/upload.h"

#define UPLOAD_PARTS_MAX 10000u

struct upload_part {
    struct upload_parts *all;
    uint32_t number; /* from 1 on */
    char *tag;       /* NULL: it is not there */
};

struct upload_parts {
    const struct upload_order *order;
    const char *upload; /* its id; the caller's */
    int fd;             /* of the file */
    uint64_t size;      /* of the file */
    uint64_t part_size;
    struct upload_part *parts;
    uint32_t count;
    pthread_mutex_t lock; /* everything below */
    struct dfc_error failure;
    uint64_t resumed; /* bytes that were there */
};

/* The size of the parts of a file of `size` bytes: `wanted`, or more where they would be too many.
 */
uint64_t upload_part_size(uint64_t size, uint64_t wanted);

void upload_parts_init(struct upload_parts *all, const struct upload_order *order, int fd,
                       uint64_t size, uint64_t part_size);
void upload_parts_forget(struct upload_parts *all); /* none is there */
void upload_parts_done(struct upload_parts *all);

/* Fills err with what went wrong on this side. */
int upload_fail(struct dfc_error *err, int result, const struct error *e);

/* DFC_NOT_FOUND: the upload is gone. */
int upload_parts_ask(struct upload_parts *all, struct dfc_error *err);
int upload_parts_send(struct upload_parts *all, struct dfc_error *err);
/* The tags as the file's bytes have them. */
int upload_parts_read(struct upload_parts *all, struct dfc_error *err);
/* [{"part", "tag"}], malloc'ed. */
char *upload_parts_list(const struct upload_parts *all);
