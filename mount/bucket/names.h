/* Objects' names as paths: pure.
 *
 * A name is split at '/'.  A component is not shown if it is empty, "." or "..", or longer than
 * NAME_MAX_BYTES.  A directory's prefix is "" or ends with '/'. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NAME_MAX_BYTES 255
#define NAME_KEY_MAX 1024 /* the cluster's limit of a whole name */

enum name_kind {
    NAME_FILE,
    NAME_DIRECTORY, /* the key goes on behind a '/' */
    NAME_ITSELF,    /* the key is the prefix: the mark of an empty directory */
    NAME_HIDDEN,
};

struct name_part {
    enum name_kind kind;
    const char *text; /* in the key, not terminated */
    size_t len;
};

/* What the key shows in the directory. */
struct name_part name_in(const char *prefix, const char *key);
bool name_is_shown(const char *text, size_t len);

/* May an object have this name: 0, -ENAMETOOLONG, -EILSEQ where it is not UTF-8. */
int name_check_key(const char *key);

/* prefix + name, or prefix + name + "/"; malloc'ed. */
char *name_file(const char *prefix, const char *name);
char *name_directory(const char *prefix, const char *name);

/* "dfc://BUCKET[/PREFIX]": bucket and prefix, malloc'ed; the prefix is "" or ends with '/'.  False
 * where the text is none. */
bool name_parse_url(const char *url, char **bucket, char **prefix);
