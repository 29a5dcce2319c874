"""Where users say that something is: directories of this machine, and URIs of other places.

What begins with a scheme is a URI: ``s3://bucket/x``, and ``s3:/bucket/x``, which is what ``pathlib`` makes of it. Contract: a
URI that cannot be opened is refused by its scheme; it never becomes a local directory called ``s3:``.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from everview.errors import UnsupportedOperation

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/")
"""Of two letters at least: a single one is a drive on Windows."""


def scheme_of(place: str) -> str | None:
    """The scheme of a URI; None for a path.

    >>> [scheme_of(place) for place in ("s3://bucket/x", "S3:/bucket/x", "shop/", "/data/a:b", "C:/shop")]
    ['s3', 's3', None, None, None]
    """
    found = _SCHEME.match(place)
    return None if found is None else found[1].lower()


def local_directory(place: str | os.PathLike[str], owner: str) -> str:
    """The path of a directory of this machine, given as a path (``~`` is the user's own) or as a ``file:`` URI.

    >>> local_directory("file:///tmp/my%20shop", "the database"), local_directory("shop/", "the database")
    ('/tmp/my shop', 'shop/')

    Raises:
        UnsupportedOperation: it is a URI of another place, or no path; ``owner`` says what was to be there.
    """
    text = os.fspath(place)
    if not text or "\0" in text:
        raise UnsupportedOperation(
            f"{owner} is kept in a directory, and {text!r} is no path.", hint="give the path of one."
        )
    scheme = scheme_of(text)
    if scheme is None:
        return os.path.expanduser(text)
    parts = urlsplit(text)
    if scheme == "file" and parts.netloc in ("", "localhost"):
        return url2pathname(parts.path)
    raise UnsupportedOperation(
        f"{owner} is kept in a directory of this machine, and '{text}' is a place of scheme '{scheme}'.",
        hint="give a path, such as that of a directory where the store is mounted.",
    )
