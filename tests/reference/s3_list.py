"""ListObjectsV2 of the S3 service of tests (fake_s3.py): which names a page has, and its document."""

import xml.sax.saxutils


def page_of_many(count, after, limit):
    """A page of so many names, %09d."""
    first = int(after) + 1 if after else 0
    names = [(f"{i:09d}", False) for i in range(first, min(count, first + limit))]
    return names, first + limit < count


def page_of(names, prefix, delimiter, after, from_token, limit):
    """Items (name, is it a common prefix) greater than `after`; with a token, behind that item.
    And whether there are more."""
    page, last = [], None
    for name in names:
        if not name.startswith(prefix) or name.encode() <= after.encode():
            continue
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        item = (name, False) if cut < 0 else (name[:cut + len(delimiter)], True)
        if item == last or (from_token and item == (after, True)):
            continue
        if len(page) == limit:
            return page, True
        page.append(item)
        last = item
    return page, False


def document(entries, more, quote):
    """Of entries (name, None for a common prefix, or the object's tag and size)."""
    body = ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">")
    for name, facts in entries:
        if facts is None:
            body += f"<CommonPrefixes><Prefix>{quote(name)}</Prefix></CommonPrefixes>"
            continue
        etag, size = xml.sax.saxutils.escape(facts[0], {'"': "&quot;"}), facts[1]
        body += (f"<Contents><Key>{quote(name)}</Key><LastModified>2023-11-14T22:13:20.000Z"
                 f"</LastModified><ETag>{etag}</ETag><Size>{size}</Size>"
                 f"<Owner><ID>x</ID></Owner></Contents>")
    body += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
    if more:
        last = xml.sax.saxutils.escape(entries[-1][0])
        body += f"<NextContinuationToken>{last}</NextContinuationToken>"
    return body + "</ListBucketResult>"
