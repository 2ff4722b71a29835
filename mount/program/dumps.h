/* The dumps that the mount of a volume makes by itself (mount/volfs/dumper.h), over a client of its
 * own: the end of the mount ends its calls, and no other's. */
#pragma once

struct dumps;
struct meta;
struct mounted;
struct volume;

/* An exit code.  *out: NULL if the options ask for none, or the mount only reads. */
int dumps_start(const struct mounted *m, struct volume *v, struct meta *meta, const char *bucket,
                struct dumps **out);
void dumps_end(struct dumps *d); /* NULL is fine */
