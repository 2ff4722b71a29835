/* Names of a tree that come and go: 0 or -errno.
 *
 * A directory is there as long as a name in it is.  Whoever takes its last name away leaves a mark,
 * the empty object "PREFIX/", so that the directory stays until it is removed. */
#pragma once

struct tree;

/* The object alone: no mark is left. */
int tree_delete(struct tree *t, const char *key);

/* The directory has lost a name: a mark is left if it was the last. */
void tree_keep(struct tree *t, const char *prefix);
int tree_unlink(struct tree *t, const char *prefix, const char *name);
int tree_mkdir(struct tree *t, const char *prefix, const char *name); /* EEXIST */
int tree_rmdir(struct tree *t, const char *prefix, const char *name); /* ENOTEMPTY, ENOENT */

struct tree_name {
    const char *prefix; /* of the directory */
    const char *name;
};
/* Of a file; an object of the new name is replaced.  EXDEV: it is a directory, so that programs
 * copy it.  EISDIR: the new name is one. */
int tree_rename(struct tree *t, const struct tree_name *from, const struct tree_name *to);
