#include "s3/element.h"

#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "s3/xml_write.h"

void s3_put_time(struct buf *out, const char *name, int64_t ms)
{
    char text[32];
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&s, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(out, "<%s>%s.%03dZ</%s>", name, text, (int)(ms % 1000), name);
}

void s3_put_owner(struct buf *out, const char *name, const struct s3_owner *owner)
{
    xml_put_open(out, name);
    xml_put_element(out, "ID", owner->id);
    xml_put_element(out, "DisplayName", owner->name);
    xml_put_close(out, name);
}

void s3_put_etag(struct buf *out, const char *etag)
{
    buf_puts(out, "<ETag>&quot;");
    xml_put_text(out, etag);
    buf_puts(out, "&quot;</ETag>");
}

void s3_put_name(struct buf *out, bool is_url_encoded, const char *element, const char *name)
{
    _cleanup_buf_ struct buf escaped = BUF_INIT;
    if (is_url_encoded)
        buf_put_url_escaped(&escaped, name, strlen(name), "/");
    xml_put_element(out, element, is_url_encoded ? buf_str(&escaped) : name);
}

/* With `parts` its count follows the value, as in an entity tag. */
static void put_sum(struct buf *out, const struct s3_sum_value *value, unsigned parts)
{
    char text[S3_SUM_BASE64_MAX];
    const char *algorithm = s3_sum_algorithm(value->type);
    buf_printf(out, "<Checksum%s>%s", algorithm, s3_sum_print(value, text));
    if (parts > 0)
        buf_printf(out, "-%u", parts);
    buf_printf(out, "</Checksum%s>", algorithm);
}

void s3_put_sum(struct buf *out, const struct s3_sum_value *value)
{
    put_sum(out, value, 0);
}

void s3_put_object_sum(struct buf *out, const struct s3_object_sum *sum)
{
    if (sum == NULL)
        return;
    put_sum(out, &sum->value, sum->parts);
    xml_put_element(out, "ChecksumType", sum->parts > 0 ? "COMPOSITE" : "FULL_OBJECT");
}
