# What every reader knows; the form is NVIDIA VDisc's.

@0xad3f2ae443d613d9;

struct VDisc {
  blockSize @0 :UInt16;
  fsType @1 :Text;
  uris @2 :List(ITrie);
  extents @3 :List(Extent);
}

# The text of node n is that of its parent and then its own; node 0 is its own parent, and empty.
struct ITrie {
  parent @0 :UInt32;
  content @1 :Text;
}

# The address is the text of node uriPrefix and then uriSuffix, relative to the address of the table.
struct Extent {
  uriPrefix @0 :UInt32;
  uriSuffix @1 :Text;
  blocks @2 :UInt32;
  padding @3 :UInt16;  # bytes of the last block that the object does not have
}
