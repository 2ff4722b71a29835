/* Where writers put objects.  The functions return 0 or -errno; texts that they hand over are
 * malloc'ed.  Any thread may call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What must hold for the name when the object appears; else -ESTALE. */
struct write_condition {
    const char *if_match; /* the entity tag of the object that is replaced; NULL: there is none */
};

struct write_store {
    void *context;
    /* The bytes become the object; *etag is its tag. */
    int (*put)(void *context, const char *key, const void *data, size_t size,
               const struct write_condition *condition, char **etag);
    /* An upload in parts: the object appears with its completion.  parts: [{"part", "tag"}]. */
    int (*begin)(void *context, const char *key, char **upload);
    int (*part)(void *context, const char *key, const char *upload, uint32_t number,
                const void *data, size_t size, char **tag);
    int (*complete)(void *context, const char *key, const char *upload, const char *parts,
                    const struct write_condition *condition, char **etag);
    void (*abort)(void *context, const char *key, const char *upload);
};
