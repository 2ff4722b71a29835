/* An object that is sent to a backend: what upload.h and upload_session.h share. */
#pragma once

#include "target/backend/exchange.h"

struct upload {
    const char *backend_url;
    const char *name;
    int fd;
    uint64_t size;
    const char *content_type; /* or NULL */
    const char *meta;         /* pairs (meta.h), or NULL */
    size_t meta_len;
    uint64_t part_bytes;          /* larger objects go in parts of this size */
    unsigned parallel;            /* parts at once */
    const char *from, *from_etag; /* of a copy: another object of the backend, and no `fd` */
};
