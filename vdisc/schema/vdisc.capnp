# The table of an image: NAME.vdsc is gzip of one message, or the message itself.
#
#     gzip -dc NAME.vdsc | capnp decode vdisc/schema/vdisc.capnp VDisc

@0xc6455bc28c9de795;

using V1 = import "vdisc_v1.capnp";
using V2 = import "vdisc_v2.capnp";

struct VDisc {
  v1 @0 :V1.VDisc;
  v2 @1 :V2.Image;
}
