/* A few threads that work off items in the order in which they come. */
#pragma once

struct workers;

/* run(context, item) is called from any of the threads; it owns the item. */
struct workers *workers_start(unsigned threads, void (*run)(void *context, void *item),
                              void *context);
void workers_give(struct workers *w, void *item); /* waits while many items are waiting */
void workers_finish(struct workers *w);           /* waits until all is done, and frees */
