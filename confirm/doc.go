// Package confirm is the box's front panel: it shows one request at a time, word for word, and turns a deliberate press at
// the box into a receipt for exactly that request. Nothing else in the product can make one.
//
// # Parts
//
//   - Desk is what the guard talks to. Desk.Run is the one goroutine that owns the display, the buttons and the state.
//   - machine is a pure state machine: events in, actions out, no goroutine, no timer, no device. All rules are there.
//   - confirm/screen turns text into pages; confirm/receipt lays out what a receipt claims; confirm/internal/mint signs it.
//
// # Rules of a press
//
// A card first waits (180 s from NEXT REQUEST on, nothing can arm) until a tap on approve opens it. Reading then lasts 60 s, and
// 6 s more for each page beyond two, at most 300 s, but never less than twice what its pages must stay on the glass: what may be
// asked can be read. A card that would need more than a quarter of an hour is refused before it is shown. A tap
// turns a page once the page was on the glass for 700 ms and 15 ms for each of its code points; a press before the last page that
// lasts a second is no tap, and the card is announced again. The last page arms when it, too, had its time and the approve line was
// seen up after it was drawn. Then a hold of 1.5 s completes, if the line is still down, the glass acknowledged the full bar, and the
// deadline has not passed. The glass says LET GO, and the receipt is made when the release is seen: a hold that goes on to 6 s looks
// like a stuck or taped button, and so does one whose end no edge told by then; the card ends without approval. A press on
// deny denies the card, from its announcement on and whichever page is being drawn, and deny for 5 s is panic, whatever approve does
// meanwhile, unless both went down as one gesture. From its first second on the glass says what it leads to and how far that is, over
// whatever else is there; a press under way ends with it, and what was covered is read again. Levels that say for 2 s that deny is
// down are believed without an edge. A change of card shows NEXT REQUEST for 1 s in which edges are thrown away.
//
// A loose contact presses, too. Three presses within a minute that no finger has a reason for (on the idle screen, NEXT REQUEST or an
// outcome, too early or too long on a page) make the button doubtful until ten minutes have passed without another: a card then asks
// for 2 to 4 taps before the hold, as it does on a display that cannot be read back, in the dwell, and where this card alone met
// such presses. Two wrong numbers end it; the number, the hold and its release, all done well, end the doubt. A tap, a pause and a hold are all that a card of one page takes: there, a contact that
// goes bad as the card comes may still be taken for a finger.
//
// While nothing else needs the glass it shows what the box has to say (Bulletin), until a press turns its pages and closes it; that
// press does nothing else, unless both buttons stay down for the gesture.
//
// An administrative prompt is read in the same way, page by page; on its last page both buttons are held for 3 s. The release of a
// freeze, and what destroys a part of the record, take a tap on approve after that. A prompt that is offered waits until both buttons are held for 3 s on the idle screen or on
// a notice: that gesture opens it in place of pairing mode, and opens nothing else. The release of a freeze goes before it.
//
// Whatever makes it doubtful what the glass shows or what the finger did ends in fewer rights, never in more: a draw without an
// acknowledgement ends the card, an edge older than the acknowledgement of what is shown is ignored, a gap in the edge count or
// a suspend cancels the hold and asks for a new release.
//
// # Clocks
//
// Deadlines are on the boot-time clock, which runs through suspend and cannot be set. Presses are compared with draws on
// the monotonic clock, the only one that edges carry. The wall clock is never read.
package confirm
