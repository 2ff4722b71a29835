/* One file of a validation: is it what its attribute, its place and the index say? */
#pragma once

#include <sys/stat.h>

#include "target/scrub/validate_walk.h"

enum look { LOOK_WELL, LOOK_GONE, LOOK_WRONG };

struct file {
    struct stat st;
    struct attr attr; /* borrows from raw; with LOOK_WELL and what is wrong but for the attribute */
    bool read;        /* the attribute */
    bool elsewhere;   /* with VALIDATE_misplaced: its name belongs to another mountpath */
    unsigned char raw[ATTR_ENCODED_MAX];
    enum validate_finding what; /* with LOOK_WRONG */
    struct error why;
};

/* Without a lock: what looks wrong may be in the middle of a change. */
enum look walk_look(const struct walk *w, const char *path, struct file *f);
/* Under the name's lock.  What is wrong, and has a name, is reported and dealt with here. */
enum look walk_look_again(const struct walk *w, const char *path, struct file *f);
/* Reports what is wrong with it, and has it dealt with.  Under the name's lock. */
void walk_report(const struct walk *w, const char *path, const struct file *f);
