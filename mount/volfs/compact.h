/* Chunks of files that are stored anew: their lists are long, or their slices mostly hidden. */
#pragma once

struct volfs;

/* Those that are due, some at a time.  What fails is logged, and tried again later. */
void compact_due(struct volfs *v);
