/* The records of one output, window by window: for those of a window one stream from each other
 * target that holds some of them is opened, all at once; whoever builds then takes the window's
 * records in order.  An output of at most RECORDS_MAX records is one window: one stream for each
 * (output, source).  One thread; it is used for output after output. */
#pragma once

#include "sort/task/context.h"
#include "sort/rows/orders.h"
#include "sort/task/records.h"

struct window {
    struct sort_context *c;
    struct order_record *records; /* RECORDS_MAX */
    size_t count;
    struct record_ref *refs; /* RECORDS_MAX: one source's part of the window */
    struct link **streams;   /* by target; NULL where none is open */
};

void window_init(struct window *w, struct sort_context *c);
void window_done(struct window *w);
/* The next records of the order, of which `left` are left; others are asked for their part. */
int window_begin(struct window *w, struct decoder *order, uint64_t left, enum records_form form,
                 struct error *err);
/* What that target sends. */
struct source window_stream(const struct window *w, unsigned source);
/* Every stream must have come to its end, with the window. */
int window_end(struct window *w, struct error *err);
void window_drop(struct window *w);
int window_stream_error(const struct window *w, unsigned source, struct error *err);
