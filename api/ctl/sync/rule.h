/* Whether a file or object has to be sent: pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What one side has under a name. */
struct sync_entry {
    const char *name; /* below the side's directory or prefix */
    uint64_t size;
    int64_t modified_ms;
    const char *checksum_type; /* "" where it is not known: of files, always */
    const char *checksum;
    bool local;
    bool link; /* a symbolic link: at the destination, it is replaced */
};

enum sync_verdict {
    SYNC_SAME,
    SYNC_DIFFERS,
    SYNC_COMPARE, /* the file's bytes with the object's checksum */
};

/* Both sides have the name.  quick: times that agree are enough. */
enum sync_verdict sync_compare(const struct sync_entry *from, const struct sync_entry *to,
                               bool quick);

/* A file that an unfinished fetch has left (part.h), or one that was ended (landing.h): of no side.
 */
bool sync_is_unfinished(const char *name);
