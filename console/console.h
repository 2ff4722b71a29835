/* The web console: what a browser gets from /ui/.  console/embed.py writes the table at build time
 * from the files of this folder, so that a proxy needs no directory of its own for them. */
#pragma once

#include <stddef.h>

struct console_file {
    const char *path; /* below /ui/: "index.html", "views/jobs.js"; NULL ends the table */
    const char *type; /* of the Content-Type header */
    const char *etag; /* weak: the same of both forms */
    const unsigned char *plain;
    size_t plain_len;
    const unsigned char *packed; /* by gzip */
    size_t packed_len;
};
extern const struct console_file console_files[];

/* NULL: there is none of this path.  "" is index.html. */
const struct console_file *console_find(const char *path);
