/* What those sources of keys for S3 are asked that have to be asked (aws_source.h), and where.  Of
 * this process's environment and the files that it names, which are read for each question.
 *
 *   AWS_WEB_IDENTITY   POST AssumeRoleWithWebIdentity to STS: AWS_ENDPOINT_URL_STS, else that of
 *                      AWS_REGION or AWS_DEFAULT_REGION, else the global one; not signed
 *   AWS_CONTAINER      GET http://169.254.170.2 and the relative URI, else the full one; with what
 *                      is in AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, or …_TOKEN, as Authorization.
 *                      By http only to this machine and to the agents of ECS and EKS
 *   AWS_INSTANCE       version 2 of the metadata service at AWS_EC2_METADATA_SERVICE_ENDPOINT, or
 *                      at the address of …_ENDPOINT_MODE (IPv4, IPv6): PUT for a token, GET for
 *                      the role's name, GET for its keys
 *
 * All texts are the arena's.  E_BACKEND_DENIED where it cannot be asked.  Neither secrets nor
 * paths, which may be secret (ECS), stand in messages. */
#pragma once

#include "common/arena.h"
#include "common/error.h"
#include "target/backend/question.h"

int aws_question_web_identity(struct arena *a, struct question *out, struct error *err);
int aws_question_container(struct arena *a, struct question *out, struct error *err);
int aws_question_instance_token(struct arena *a, struct question *out, struct error *err);
/* token: the answer to the question before.  role: NULL asks which one it is. */
int aws_question_instance(struct arena *a, const char *token, const char *role,
                          struct question *out, struct error *err);
