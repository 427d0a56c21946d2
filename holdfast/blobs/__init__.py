"""Files by content: disk or object store, references, collection.

Other rooms count their references in their own transactions (`references`), bring content through `Files` and
`ResumableUploads`, and read it through `Files.open`. This room knows content, names and counts; it must not know who
refers to a file, nor what is in it. How a reference never loses its file: docs/rooms/blobs.md.
"""

from holdfast.blobs.check import verify_blobs, verify_references
from holdfast.blobs.collector import Collector
from holdfast.blobs.download import Download
from holdfast.blobs.files import Files
from holdfast.blobs.model import Blob, Digest, Partial
from holdfast.blobs.references import adjust, claim, find, find_by_md5, reference, release, unclaim
from holdfast.blobs.resumable import ResumableUploads
from holdfast.blobs.room import BlobRoom
from holdfast.blobs.upload import Upload

__all__ = [
    "Blob",
    "BlobRoom",
    "Collector",
    "Digest",
    "Download",
    "Files",
    "Partial",
    "ResumableUploads",
    "Upload",
    "adjust",
    "claim",
    "find",
    "find_by_md5",
    "reference",
    "release",
    "unclaim",
    "verify_blobs",
    "verify_references",
]
