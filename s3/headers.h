/* Headers that ask for what this project does not do, by the table headers.def.  Pure. */
#pragma once

#include "s3/request.h"

/* S3_OK, or the error of the first header with a value that its row does not have. */
enum s3_error s3_headers_check(const struct s3_request *r, struct s3_failure *why);
