/* The reply to a request for records (sort/task/records.h).
 *
 * Threads of a class of their own read the disks, a piece ahead of what the connection sends, so
 * that no HTTP thread waits for a disk.  They wait for nothing else: no two targets can wait for
 * each other. */
#pragma once

#include <stdbool.h>

struct http_request;
struct pool;
struct sort_records;
struct records_reply;

/* `release(held)` is called once when the reply has ended, by any thread: until then the records
 * and their task are there.  All is given away. */
void records_reply(struct http_request *req, struct pool *readers, struct sort_records *records,
                   void (*release)(void *held), void *held);
