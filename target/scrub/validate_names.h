/* The names that the index of a mountpath has: has each a file?  They also say whose a file is that
 * does not say so itself. */
#pragma once

#include "target/scrub/validate_file.h"

/* Those behind w->at.name. */
int walk_names(struct walk *w, struct error *err);
/* A file whose attribute does not say whose it is, until the index says it. */
void walk_nameless_add(struct walk *w, const char *path, const struct file *f);
/* The files that no name of the index has claimed. */
void walk_nameless_rest(struct walk *w);
