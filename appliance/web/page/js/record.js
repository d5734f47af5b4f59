// What this phone remembers of the box's record: the newest seal that it saw. A record that becomes shorter, or says
// something else where it had a seal, was rolled back or exchanged, which nobody can see from inside it.

import * as keys from './keys.js';

const KEPT = 8; // older anchors that are remembered after the record changed under this phone

// compare holds what the box shows now against what is remembered, {anchor, kept, shorter}, and returns what to remember.
// Where they contradict each other the old anchor stays, and shorter is what the box showed instead. That stays so, however
// long the other record grows, until the person has taken note.
export function compare(remembered, now) {
  const { anchor, kept = [], shorter } = remembered ?? {};
  const goesOn = !anchor || !shorter && (now.seq > anchor.seq || (now.seq === anchor.seq && now.seal === anchor.seal));
  return goesOn ? { anchor: now, kept } : { anchor, kept, shorter: now };
}

// accept goes on with the record as it is now. What was remembered of the other one stays in the file of anchors.
export function accept({ anchor, kept = [], shorter }) {
  return { anchor: shorter, kept: [anchor, ...kept].slice(0, KEPT) };
}

// lines is the file of anchors: seals in base64url, one a line, the newest first.
export const lines = ({ anchor, kept = [], shorter }) =>
  [anchor, ...(shorter ? [shorter] : []), ...kept].map((a) => `${a.seal}\n`).join('');

// Record is what the page knows of the record at the moment.
export class Record {
  now = null; // what the box showed when it was last connected; null where it showed no record
  memory = null;

  // connected takes the welcome, and resolves when the phone has kept what it must.
  async connected(welcome) {
    this.memory = await keys.remembered();
    this.now = welcome.seal ? { seal: welcome.seal, seq: welcome.head_seq, code: welcome.head_code, at: Date.now() } : null;
    if (this.now) await this.#keep(compare(this.memory, this.now));
  }

  async accept() { await this.#keep(accept(this.memory)); }

  async #keep(memory) {
    this.memory = memory;
    await keys.saveRemembered(memory);
  }
}
