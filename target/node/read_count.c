#include "target/node/read_count.h"

#include "io/meter.h"
#include "io/reader.h"
#include "target/node/call.h"
#include "target/node/target.h"
#include "target/store/last_use.h"

void object_read_count(const struct object_call *call, uint64_t length, const struct reader *reader)
{
    if (call->bucket->props.backend != NULL)
        last_use_note(call->target->last_use, call->bucket->id, call->name);
    bool get = http_method(call->req) == HTTP_GET;
    meter_sent(reader_meter(reader), get ? length : 0);
    metric_add(call->target->reads, get);
    metric_add(call->target->reads_beside, call->read.beside);
    metric_add(call->target->read_bytes, get ? length : 0);
}
