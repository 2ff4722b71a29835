#!/usr/bin/env python3
"""Replies of S3 as a real client reads them, for the unit test s3/reply_test.c.

    s3_replies.py --check FILE    botocore's parser gives each `parsed`; 77 without botocore
    s3_replies.py --write FILE    fills `parsed`, which then wants a reader's eye

A row of the file has a name, an operation, the document and what botocore makes of it.  An element
that botocore does not know is passed over, and is missing in `parsed`.
"""

import argparse
import json
import sys


def parsed_by_botocore(model, row):
    """What the parser gives, without what is about the reply itself; times are texts."""
    from botocore.parsers import create_parser
    reply = {"status_code": 200, "headers": {}, "body": row["document"].encode()}
    shape = model.operation_model(row["operation"]).output_shape
    parsed = create_parser("rest-xml").parse(reply, shape)
    del parsed["ResponseMetadata"]
    return json.loads(json.dumps(parsed, default=lambda time: time.isoformat()))


def s3_model():
    """botocore's description of S3."""
    try:
        from botocore.loaders import Loader
        from botocore.model import ServiceModel
    except ImportError:
        print("botocore is not installed")
        sys.exit(77)
    return ServiceModel(Loader().load_service_model("s3", "service-2"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", metavar="FILE")
    parser.add_argument("--write", metavar="FILE")
    args = parser.parse_args()
    model, wrong = s3_model(), 0
    with open(args.check or args.write, encoding="utf-8") as file:
        document = json.load(file)
    for row in document["replies"]:
        parsed = parsed_by_botocore(model, row)
        if args.write:
            row["parsed"] = parsed
        elif parsed != row["parsed"]:
            wrong += 1
            print(f"{row['name']}: botocore reads\n  {parsed}\nand not\n  {row['parsed']}")
    if args.write:
        with open(args.write, "w", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
