"""Where AWS's tools get keys for S3 that end, beside the S3 that takes them: STS (web identities),
a container's agent,
and the metadata service of an instance.  fake_s3.py's faults, and its words for tests.

    with FakeAWS() as aws:
        os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = aws.url
        aws.put("bucket", "a/b", b"bytes")
        aws.end_keys()                       # all that were given: S3 refuses them with
        ExpiredToken

Written from Amazon's descriptions and not from the code that is tested.  What is asked has these
names, for faults and
counts: STS, CONTAINER, and of the metadata service SESSION, ROLE and KEYS.  Their errors are in the
service's own form.

What is secret has NobodyMaySee in it.  said_life: seconds that keys are said to be good for, where
it is for longer."""

import json
import re
import time
import urllib.parse

from fake_s3 import FakeS3, Handler, Refused

STS, CONTAINER, SESSION, ROLE, KEYS = "(sts)", "(container)", "(session)", "(role)", "(keys)"
ROLES = "/latest/meta-data/iam/security-credentials/"
ROLE_NAME, ROLE_ARN = "tests+role", "arn:aws:iam::123456789012:role/tests"
CONTAINER_PATH = "/v2/credentials/aPathThatNobodyMaySee"
PLACES = {"/latest/api/token": SESSION, ROLES: ROLE, ROLES + urllib.parse.quote(ROLE_NAME): KEYS,
          CONTAINER_PATH: CONTAINER, "/": STS}
LIFE = 3600


def when(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class AwsHandler(Handler):
    def send_error_document(self, status, code, message, headers):
        key = self.server.service.locate(self)[1]
        if key == STS:
            body = (
                "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
                "<Error><Type>Sender</Type>"
                f"<Code>{code}</Code><Message>{message}</Message></Error>"
                "<RequestId>r</RequestId></ErrorResponse>"
            )
            self.send_whole(status, body.encode(), {"Content-Type": "text/xml", **headers})
        elif key == CONTAINER:
            self.send_whole(status,
                            json.dumps({"code": code, "message": message}).encode(), headers)
        elif key in PLACES.values():
            self.send_whole(status, b"<html><body>" + code.encode() + b"</body></html>", headers)
        else:
            super().send_error_document(status, code, message, headers)

    def send_object(self, data, fault):
        service = self.server.service
        key = service.locate(self)[1]
        if key == ROLE:
            self.send_whole(200, ROLE_NAME.encode(), {"Content-Type": "text/plain"})
        elif key == KEYS:
            document = {"Code": "Success", "Type": "AWS-HMAC", **service.document()}
            self.send_whole(200, json.dumps(document).encode(), {"Content-Type": "text/plain"})
        elif key == CONTAINER:
            self.send_whole(200,
                            json.dumps({"RoleArn": ROLE_ARN, **service.document()}).encode(), {})
        else:
            super().send_object(data, fault)

    def write(self, service, bucket, key, fault):
        if key == SESSION:
            self.send_whole(200, service.new_session().encode(), {"Content-Type": "text/plain"})
        elif key == STS:
            service.check_identity(self.command, dict(urllib.parse.parse_qsl(self.body.decode())))
            keys = service.document()
            fields = "".join(f"<{name}>{keys[given]}</{name}>"
                             for name, given in (("SessionToken", "Token"), ("SecretAccessKey",
                                                                             "SecretAccessKey"),
                                                 ("Expiration", "Expiration"), ("AccessKeyId",
                                                                                "AccessKeyId")))
            root, result = "AssumeRoleWithWebIdentityResponse", "AssumeRoleWithWebIdentityResult"
            self.send_whole(200, (
                f"<{root} xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{result}>"
                "<SubjectFromWebIdentityToken>s</SubjectFromWebIdentityToken>"
                "<Audience>a</Audience>"
                f"<Credentials>{fields}</Credentials><Provider>p</Provider></{result}>"
                f"</{root}>").encode(), {"Content-Type": "text/xml"})
        else:
            super().write(service, bucket, key, fault)


class FakeAWS(FakeS3):
    handler = AwsHandler

    def __init__(self, keys=None):
        super().__init__(keys={"AKIDOFNOBODY": "aSecretThatNobodyMaySee", **(keys or {})})
        self.host = self.url.removeprefix("http://")
        self.given, self.sessions, self.said_life = {}, set(), None  # access key: (token, end)
        self.identity = "ey.anIdentityThatNobodyMaySee.+/="
        self.authorization = "Bearer anAuthorization/NobodyMaySee="

    # What is given.

    def document(self):
        """New keys."""
        with self.lock:
            number = len(self.given) + 1
            access, secret, token = (f"ASIATESTS{number}", f"aSecret/NobodyMaySee+{number}",
                                     f"IQoJaToken/NobodyMaySee+{number}==" + "x" * 900)
            self.keys[access] = secret
            self.given[access] = (token, time.time() + LIFE)
        return {
            "AccessKeyId": access, "SecretAccessKey": secret, "Token": token,
            "LastUpdated": when(time.time()),
            "Expiration": when(time.time() + (self.said_life or LIFE))
        }

    def new_session(self):
        with self.lock:
            self.sessions.add(session := f"AQAEaSession_NobodyMaySee{len(self.sessions)}==")
        return session

    def end_keys(self):
        with self.lock:
            self.given = {access: (token, 0) for access, (token, _) in self.given.items()}

    # Who is let in.

    def check_identity(self, method, fields):
        name = fields.pop("RoleSessionName", "")
        wanted = {
            "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": ROLE_ARN,
            "WebIdentityToken": self.identity
        }
        if method != "POST" or not re.fullmatch(r"[\w+=,.@-]{2,64}", name):
            raise Refused(400, "ValidationError",
                          f"method {method}, a session that is called {name}")
        if fields != wanted:
            raise Refused(403, "AccessDenied",
                          "Not authorized to perform sts:AssumeRoleWithWebIdentity")

    def authorize(self, request):
        key = self.locate(request)[1]
        if key == SESSION and (request.command != "PUT" or not request.headers.get(
                "X-aws-ec2-metadata-token-ttl-seconds", "").isdigit()):
            raise Refused(400, "BadRequest", "no time to live")
        if key in (ROLE,
                   KEYS) and request.headers.get("X-aws-ec2-metadata-token") not in self.sessions:
            raise Refused(401, "Unauthorized", "no token")
        if key == CONTAINER and request.headers.get("Authorization") != self.authorization:
            raise Refused(401, "AccessDeniedException", "the authorization is another one")
        if key in PLACES.values():
            return
        access = re.search(r"Credential=([^/]*)/", request.headers.get("Authorization", ""))
        with self.lock:
            token, end = self.given.get(access and access[1], (None, None))
        if request.headers.get("x-amz-security-token") != token:
            raise Refused(400, "InvalidToken",
                          "The provided token is malformed or otherwise invalid.")
        if end is not None and end < time.time():
            raise Refused(400, "ExpiredToken", "The provided token has expired.")
        super().authorize(request)

    # Where.

    def locate(self, request):
        place = PLACES.get(urllib.parse.urlsplit(request.path).path)
        return ("", place) if place is not None else super().locate(request)

    def get(self, bucket, key):
        return b"" if key in PLACES.values() else super().get(bucket, key)
