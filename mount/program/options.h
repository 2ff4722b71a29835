/* The command line of dfc-mount; dfcctl passes its flags on under the same names.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct options {
    const char *verb;      /* "mount" or "umount" */
    const char *url;       /* dfc://BUCKET[/PREFIX], of mount */
    const char *directory; /* where */
    const char *endpoint, *profile, *ca_file, *log_file;
    uint64_t retries;
    uint64_t idle_timeout_ms; /* 0: libdfc's */
    uint64_t buffer_bytes;
    uint64_t readahead_bytes;
    uint64_t parallel;
    uint64_t ttl_ms;
    uint64_t uid, gid;
    uint64_t file_mode, directory_mode;
    uint64_t timeout_ms;
    bool insecure;
    bool allow_other;
    bool foreground;
    bool help;
};

/* Texts are argv's.  uid and gid are those of a file whose owner nobody named. */
int options_parse(struct options *o, int argc, char *const *argv, uint64_t uid, uint64_t gid,
                  struct error *err);
