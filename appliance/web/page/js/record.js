// What this phone remembers of the box's record: the newest seal that it saw. A record that becomes shorter, or says
// something else where it had a seal, was rolled back or exchanged, which nobody can see from inside it.

import * as keys from './keys.js';
import { recordOf } from './seal.js';

const KEPT = 8; // older anchors that are remembered

// compare holds what the box shows now against what is remembered, {anchor, kept, shorter}, and returns what to remember.
// Where they contradict each other the old anchor stays, and shorter is what the box showed instead. That stays so, however
// long the other record grows, until the person has taken note. A record that began with another key is another record.
export function compare(remembered, now) {
  const { anchor, kept = [], shorter } = remembered ?? {};
  const same = !anchor?.root || !now.root || now.root === anchor.root;
  const goesOn = !anchor || !shorter && same && (now.seq > anchor.seq || (now.seq === anchor.seq && now.seal === anchor.seal));
  return goesOn ? { anchor: now, kept: keep(anchor, kept, now) } : { anchor, kept, shorter: now };
}

const day = (a) => a && new Date(a.at).toDateString();

// keep returns the older anchors: of each day the first. A seal that nobody made can look like one, since only the whole
// record proves it; what it takes the place of is so not lost at once.
const keep = (anchor, kept, now) =>
  !anchor || anchor.seal === now.seal || day(kept[0]) === day(anchor) ? kept : [anchor, ...kept].slice(0, KEPT);

// accept goes on with the record as it is now. What was remembered of the other one stays in the file of anchors.
export function accept({ anchor, kept = [], shorter }) {
  return { anchor: shorter, kept: [anchor, ...kept].slice(0, KEPT) };
}

// lines is the file of anchors: seals in base64url, one a line, the newest first.
export const lines = ({ anchor, kept = [], shorter }) =>
  [anchor, ...(shorter ? [shorter] : []), ...kept].map((a) => `${a.seal}\n`).join('');

// Record is what the page knows of the record at the moment.
export class Record {
  now = null; // what the box showed when it was last asked; null where it showed no record
  memory = null;
  odd = false; // what the box showed is not the seal of the record that it named
  #last = Promise.resolve(); // of what reads what is remembered and writes it again, one thing at a time

  // take takes what the box says of its record, in a welcome or when asked, and resolves when the phone has kept what it must
  // with whether anything is different now. before is what the phone remembered before it asked: another tab may remember more
  // by now, and only what was known before the question speaks against the answer.
  take(answer, before) {
    return this.#alone(async () => {
      const was = this.#shown();
      this.memory = await keys.remembered();
      // The box's word for the number is not taken: a seal says itself of which record it is.
      this.odd = Boolean(answer.seal) && recordOf(answer.seal) !== answer.head_seq;
      this.now = answer.seal && !this.odd ? { seal: answer.seal, seq: answer.head_seq, code: answer.head_code, root: answer.root, at: Date.now() } : null;
      const overtaken = this.now && this.memory?.anchor?.seq > this.now.seq && !compare(before, this.now).shorter;
      if (this.now && !overtaken) await this.#keep(compare(this.memory, this.now));
      return this.#shown() !== was;
    });
  }

  accept() { return this.#alone(() => this.#keep(accept(this.memory))); }

  #shown() { return JSON.stringify([this.odd, this.now?.seal, this.now?.root, this.memory?.shorter?.seal]); }

  #alone(work) {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #keep(memory) {
    this.memory = memory;
    await keys.saveRemembered(memory);
  }
}
