// The sheet about what happened: outcomes that nobody can speak for, and the box's record.

import { byID, el, foreign, marked } from './dom.js';
import { lines } from './record.js';
import * as words from './words.js';

// unknownCard tells of one call of which nobody can say whether it took effect. seen() resolves when the box has recorded
// that the person has read it.
function unknownCard(u, slot, seen) {
  const problem = el('p', { class: 'problem', role: 'status', hidden: true });
  const button = el('button', { class: 'quiet wide', type: 'button', onclick: async () => {
    button.disabled = true;
    problem.hidden = true;
    try {
      await seen(u.invocation);
    } catch (error) {
      problem.textContent = words.told(error, 'it could not be signed; reload the page');
      problem.hidden = false;
      button.disabled = false;
    }
  } }, 'Seen');
  const facts = [
    [words.when(u.at)],
    u.destination ? ['to ', el('span', { dir: 'ltr' }, u.destination)] : [],
    u.slot === slot ? ['asked by this phone'] : ['asked by ', u.phone ? foreign('span', '', u.phone) : 'a phone that is gone'],
    u.record ? [`record ${u.record.toLocaleString()}`] : [],
  ].filter(([first]) => first);
  return el('section', { class: 'card lost', 'data-invocation': u.invocation },
    el('p', {}, words.cutOff(u)),
    u.text ? el('p', { class: 'said', dir: 'auto' }, marked(u.text)) : null,
    el('p', {}, words.went(u)),
    el('p', { class: 'small' }, ...facts.flatMap((fact, at) => (at ? [' · ', ...fact] : fact))),
    problem,
    button);
}

const records = (anchor) => `${(anchor.seq + 1).toLocaleString()} records`;

// shorter tells of a record that is not the one that this phone remembers.
export function shorter({ anchor, shorter: now }) {
  const then = words.day(anchor.at);
  if (now.seq >= anchor.seq && now.root !== anchor.root && anchor.root) {
    return `This box’s record is not the one that it was on ${then}: it began with another key.`;
  }
  return now.seq < anchor.seq
    ? `This box’s record is shorter than it was on ${then}: it had ${records(anchor)} then, and ${records(now)} now.`
    : `This box’s record is not the one that it was on ${then}: it says something else about that day.`;
}

function save(memory) {
  const url = URL.createObjectURL(new Blob([lines(memory)], { type: 'text/plain' }));
  el('a', { href: url, download: `assent-anchor-${memory.anchor.code}.txt` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// rootPart shows the fingerprint of the key that the record began with, to be written down once.
function rootPart(root) {
  const groups = (text) => text.match(/.{1,4}/g).join(' ');
  return el('div', { class: 'root' },
    el('p', {}, 'Key of this record'),
    el('p', { class: 'root-code', id: 'root' }, groups(root.slice(0, 16))),
    el('p', { class: 'small' }, 'It stays the same for as long as the box keeps this record. Write it down once: with it anybody can check, on any computer, that a copy is this box’s own.'),
    el('details', {}, el('summary', {}, 'All of it'), el('p', { class: 'code small', id: 'root-whole' }, root)));
}

function recordPart(record, accept) {
  const { now, memory } = record;
  const parts = [];
  if (memory?.shorter) {
    parts.push(el('div', { class: 'shorter', role: 'alert' },
      el('p', {}, shorter(memory)),
      el('p', {}, 'Somebody may have taken out what it recorded. If nobody at the box began a new record, do not trust what it says about the past. This phone keeps what it remembers; save it before you go on.'),
      el('button', { class: 'quiet wide', type: 'button', onclick: accept }, 'I know: go on with this record')));
  }
  if (now) {
    parts.push(
      el('p', { class: 'head-code', 'aria-label': `log ${[...now.code].join(' ')}` }, el('span', { class: 'small' }, 'log '), now.code),
      el('p', {}, `${records(now)}. The box’s own screen shows the same code after “log”, unless it has written more since.`));
    if (now.root) parts.push(rootPart(now.root));
  } else {
    parts.push(el('p', {}, record.odd ? 'What the box showed is not the seal of the record that it named. This phone keeps what it remembers.' : 'The box shows no record at the moment.'));
  }
  if (memory?.anchor) {
    parts.push(
      el('p', { class: 'small' }, `This phone last kept a seal of it on ${words.when(memory.anchor.at)}, at record ${memory.anchor.seq.toLocaleString()}. If the record is ever cut short, this phone says so.`),
      el('button', { class: 'quiet wide', type: 'button', id: 'save-anchor', onclick: () => save(memory) }, 'Save the anchor as a file'),
      el('p', { class: 'small' }, 'The file holds that seal. Kept away from the box, it proves what the record held today: assent audit verify --anchor checks a copy of the record against it.'));
  }
  return parts;
}

// About is the sheet and the buttons that open it. actions are seen(invocation), accept() and refresh().
export class About {
  inbox = { items: [], older: 0 };
  record;
  slot = 0;
  #actions;

  constructor(record, actions) {
    this.record = record;
    this.#actions = actions;
    for (const id of ['record', 'lost']) byID(id).addEventListener('click', () => this.open());
    byID('about-close').addEventListener('click', () => byID('about').close());
    byID('about').addEventListener('click', (event) => { if (event.target === byID('about')) byID('about').close(); });
  }

  open() {
    this.show();
    this.#actions.refresh();
    byID('about').showModal();
    byID('about-title').focus();
  }

  // show brings the strip that tells of unknown outcomes, and the sheet behind it, up to date.
  show() {
    const { items, older } = this.inbox;
    const count = items.length + older;
    byID('lost').hidden = count === 0;
    byID('lost').replaceChildren(count === 1 ? 'Outcome unknown: what happened?' : 'Outcomes unknown: what happened?', el('span', { class: 'count' }, String(count)));
    byID('about-title').textContent = count ? 'What happened?' : 'The box’s record';
    byID('about-body').replaceChildren(
      ...items.map((u) => unknownCard(u, this.slot, this.#actions.seen)),
      ...(older ? [el('p', {}, `${older} more of these are older. Only the box’s record still has them.`)] : []),
      count ? el('h3', {}, 'The box’s record') : '',
      ...recordPart(this.record, this.#actions.accept));
    const sheet = byID('about');
    if (sheet.open && !sheet.contains(document.activeElement)) byID('about-title').focus(); // its button is gone
  }
}
