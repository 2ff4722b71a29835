#include "gateway/operations_page.h"

static bool is_done(const struct gateway_handler *h, enum s3_op_id op)
{
    while (h->begin != NULL && h->op != op)
        h++;
    return h->begin != NULL;
}

static const char *outcome(const struct gateway_handler *handlers, enum s3_op_id id)
{
    if (s3_op(id)->answer != S3_OK)
        return s3_error_code(s3_op(id)->answer);
    return is_done(handlers, id) ? "done" : s3_error_code(S3_NOT_IMPLEMENTED);
}

static void put_call(const struct s3_op *op, struct buf *out)
{
    static const char *const paths[] = {
        [S3_LEVEL_SERVICE] = "/",
        [S3_LEVEL_BUCKET] = "/BUCKET",
        [S3_LEVEL_OBJECT] = "/BUCKET/KEY",
    };
    buf_printf(out, "`%s %s", op->method, paths[op->level]);
    if (op->query[0] != '\0')
        buf_printf(out, "?%s", op->query);
    buf_puts(out, "`");
    if (op->header[0] != '\0')
        buf_printf(out, " with `%s`", op->header);
}

void gateway_operations_page(const struct gateway_handler *handlers, struct buf *out)
{
    buf_puts(out, "| operation | request | right | outcome |\n|---|---|---|---|\n");
    for (enum s3_op_id id = 0; id < S3_OPS; id++) {
        const struct s3_op *op = s3_op(id);
        buf_printf(out, "| %s | ", op->name);
        put_call(op, out);
        buf_printf(out, " | %s | %s |\n", right_name(op->right), outcome(handlers, id));
    }
}
