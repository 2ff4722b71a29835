/* Which source of keys for S3 counts: the first that is set, in the order of AWS's own tools.
 *
 *   AWS_ENV            AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN)
 *   AWS_WEB_IDENTITY   AWS_WEB_IDENTITY_TOKEN_FILE (with AWS_ROLE_ARN)        keys that end
 *   AWS_FILE           the section AWS_PROFILE, or "default", of the shared file
 *   AWS_CONTAINER      AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, …_FULL_URI     keys that end
 *   AWS_INSTANCE       nothing; AWS_EC2_METADATA_DISABLED=true excludes it    keys that end
 *
 * A bucket's profile is its section of the file, and nothing else.  The file is
 * AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials, and read each time.  What is set and cannot
 * be used is an error: nobody else is asked then, who might take us for somebody else. */
#pragma once

#include "common/error.h"
#include "target/backend/aws_keys.h"

enum aws_source { AWS_ENV, AWS_WEB_IDENTITY, AWS_FILE, AWS_CONTAINER, AWS_INSTANCE, AWS_SOURCES };

/* *keys is set by the two that have keys themselves; the others are asked (aws_question.h).
 * `profile`: "" for none.  E_BACKEND_DENIED, with where was looked. */
int aws_source_find(const char *profile, enum aws_source *out, struct aws_keys *keys,
                    struct error *err);
