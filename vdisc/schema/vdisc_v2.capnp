# What dfc adds: what an image's objects were when it was burned.  No reader needs it to read.

@0x9c1f0e6d5b3a7428;

struct Image {
  pins @0 :List(Pin);       # of each extent of v1, in the same order
  imageId @1 :Data;         # SHA-256 of header, sizes and pins
  contentId @2 :Data;       # SHA-256 of paths, kinds, sizes and contents; empty where one is unknown
  members @3 :List(Member); # contents that share an object with others: packs; by lba
}

struct Pin {
  etag @0 :Text;            # with its quotes
  checksum @1 :Text;        # "sha256:HEX", "xxh3:HEX", ...
}

struct Member {
  lba @0 :UInt32;           # of the image: the first block of the content
  sha256 @1 :Data;
}
