/* What a scrub does about what it finds.  A validation changes nothing. */
#pragma once

#include "target/scrub/validate_walk.h"

/* A file to be dealt with. */
struct sick {
    const char *path;
    const char *name; /* of the object whose place it is; "": not known */
    uint64_t inode;
    const struct attr *attr; /* of that object, or NULL */
    enum validate_finding what;
    const char *why;
};

/* Nothing, but for a scrub.  Under the name's lock, where there is a name. */
void walk_mend(const struct walk *w, const struct sick *s);
void walk_want_repair(const struct walk *w, const char *name);
bool walk_mends_index(enum validate_finding what); /* and the file is sound */
