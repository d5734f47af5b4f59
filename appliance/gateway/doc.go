// Package gateway is the box's side towards the household: it serves the phone page and one websocket a phone, keeps the
// conversations going, and passes on what the guard allows it to know.
//
// It is the one role that strangers can reach, so it is built to be worth little: it cannot mint, execute, write the
// audit, open a connection outward, or invent a person or a turn. Who a phone is and whether a question is really its
// own is the guard's verdict over signatures that the gateway only carries. No message approves anything.
//
// # A phone's connection
//
// Host and Origin are checked against an allow-list before anything else, so that no foreign page in a household's
// browser can reach the box through a name of its own (DNS rebinding). The first frame on the socket is a challenge; until
// a signature over it is accepted the only other thing a phone may do is to ask to be paired. Frames are bounded, strictly
// decoded and limited in rate; whoever keeps breaking the rules is hung up on.
//
// # Resuming
//
// A turn runs for the phone and not for its connection. What it says goes into the phone's ring of numbered frames, from
// which each connection reads at its own pace: a reader that is slow costs nobody anything and, once the ring has moved
// past it, is disconnected. A phone that returns is sent what it missed, or the conversation as it is.
package gateway
